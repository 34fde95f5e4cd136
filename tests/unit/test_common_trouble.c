/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/trouble.h"

enum {
	AWAY = 2,
	DENIED = 31,
};

static void what_is_well_is_no_news(void **state)
{
	struct nt_trouble trouble = {0};

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(nt_trouble_look(&trouble, 0, i * NT_SECOND), NT_TROUBLE_NONE);
}

static void each_cause_is_told_once(void **state)
{
	struct nt_trouble trouble = {0};

	(void)state;
	assert_int_equal(nt_trouble_look(&trouble, AWAY, NT_SECOND), NT_TROUBLE_BEGINS);
	assert_int_equal(nt_trouble_look(&trouble, AWAY, 2 * NT_SECOND), NT_TROUBLE_NONE);
	assert_int_equal(nt_trouble_look(&trouble, DENIED, 3 * NT_SECOND), NT_TROUBLE_BEGINS);
	assert_int_equal(nt_trouble_look(&trouble, AWAY, 4 * NT_SECOND), NT_TROUBLE_NONE);
	assert_int_equal(nt_trouble_look(&trouble, DENIED, NT_HOUR), NT_TROUBLE_NONE);
}

static void its_end_is_told_after_a_while_and_it_may_begin_again(void **state)
{
	struct nt_trouble trouble = {0};

	(void)state;
	assert_int_equal(nt_trouble_look(&trouble, AWAY, 100 * NT_SECOND), NT_TROUBLE_BEGINS);
	for (uint64_t i = 101; i < 106; i++)
		assert_int_equal(nt_trouble_look(&trouble, 0, i * NT_SECOND), NT_TROUBLE_NONE);
	assert_int_equal(nt_trouble_look(&trouble, 0, 106 * NT_SECOND), NT_TROUBLE_ENDS);
	assert_int_equal(nt_trouble_look(&trouble, 0, 107 * NT_SECOND), NT_TROUBLE_NONE);
	assert_int_equal(nt_trouble_look(&trouble, AWAY, 108 * NT_SECOND), NT_TROUBLE_BEGINS);
}

static void what_flickers_is_told_once(void **state)
{
	struct nt_trouble trouble = {0};

	(void)state;
	assert_int_equal(nt_trouble_look(&trouble, AWAY, NT_SECOND), NT_TROUBLE_BEGINS);
	for (uint64_t i = 2; i < 1000; i++)
		assert_int_equal(nt_trouble_look(&trouble, i % 4 ? 0 : AWAY, i * NT_SECOND),
				 NT_TROUBLE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_well_is_no_news),
		cmocka_unit_test(each_cause_is_told_once),
		cmocka_unit_test(its_end_is_told_after_a_while_and_it_may_begin_again),
		cmocka_unit_test(what_flickers_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
