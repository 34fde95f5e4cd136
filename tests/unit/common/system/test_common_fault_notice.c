/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/system/clock.h"
#include "common/system/fault_notice.h"

enum {
	AWAY = 2,
	DENIED = 31,
};

static void what_is_well_is_no_news(void **state)
{
	struct nt_fault_notice fault_notice = {0};

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(nt_fault_notice_look(&fault_notice, 0, i * NT_SECOND),
				 NT_FAULT_NOTICE_NONE);
}

static void each_cause_is_told_once(void **state)
{
	struct nt_fault_notice fault_notice = {0};

	(void)state;
	assert_int_equal(nt_fault_notice_look(&fault_notice, AWAY, NT_SECOND),
			 NT_FAULT_NOTICE_BEGINS);
	assert_int_equal(nt_fault_notice_look(&fault_notice, AWAY, 2 * NT_SECOND),
			 NT_FAULT_NOTICE_NONE);
	assert_int_equal(nt_fault_notice_look(&fault_notice, DENIED, 3 * NT_SECOND),
			 NT_FAULT_NOTICE_BEGINS);
	assert_int_equal(nt_fault_notice_look(&fault_notice, AWAY, 4 * NT_SECOND),
			 NT_FAULT_NOTICE_NONE);
	assert_int_equal(nt_fault_notice_look(&fault_notice, DENIED, NT_HOUR),
			 NT_FAULT_NOTICE_NONE);
}

static void its_end_is_told_after_a_while_and_it_may_begin_again(void **state)
{
	struct nt_fault_notice fault_notice = {0};

	(void)state;
	assert_int_equal(nt_fault_notice_look(&fault_notice, AWAY, 100 * NT_SECOND),
			 NT_FAULT_NOTICE_BEGINS);
	for (uint64_t i = 101; i < 106; i++)
		assert_int_equal(nt_fault_notice_look(&fault_notice, 0, i * NT_SECOND),
				 NT_FAULT_NOTICE_NONE);
	assert_int_equal(nt_fault_notice_look(&fault_notice, 0, 106 * NT_SECOND),
			 NT_FAULT_NOTICE_ENDS);
	assert_int_equal(nt_fault_notice_look(&fault_notice, 0, 107 * NT_SECOND),
			 NT_FAULT_NOTICE_NONE);
	assert_int_equal(nt_fault_notice_look(&fault_notice, AWAY, 108 * NT_SECOND),
			 NT_FAULT_NOTICE_BEGINS);
}

static void what_flickers_is_told_once(void **state)
{
	struct nt_fault_notice fault_notice = {0};

	(void)state;
	assert_int_equal(nt_fault_notice_look(&fault_notice, AWAY, NT_SECOND),
			 NT_FAULT_NOTICE_BEGINS);
	for (uint64_t i = 2; i < 1000; i++)
		assert_int_equal(
			nt_fault_notice_look(&fault_notice, i % 4 ? 0 : AWAY, i * NT_SECOND),
			NT_FAULT_NOTICE_NONE);
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
