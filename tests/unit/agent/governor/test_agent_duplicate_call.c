/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/governor/duplicate_call.h"
#include "common/system/clock.h"

static struct nt_duplicate_calls duplicates;
static uint64_t now_ns;

static bool is_second(uint32_t tid, uint64_t word, bool own)
{
	struct nt_event_call call = {
		.h = {.tid = tid, .row = 3, .flags = own ? NT_CALL_OWN : 0, .entry_ns = now_ns},
		.word = {word},
	};

	now_ns += 500;
	return nt_duplicate_calls_check(&duplicates, &call);
}

static int begin(void **state)
{
	(void)state;
	duplicates = (struct nt_duplicate_calls){0};
	now_ns = NT_SECOND;
	return 0;
}

static void of_two_events_of_a_call_the_second_is_dropped(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		assert_false(is_second(7, i, false));
		assert_true(is_second(7, i, true));
	}
	/* In either order. */
	assert_false(is_second(7, 99, true));
	assert_true(is_second(7, 99, false));
}

static void equal_calls_in_a_row_count_each(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_false(is_second(7, 1, false));
		assert_true(is_second(7, 1, true));
	}
	for (int i = 0; i < 10; i++)
		assert_false(is_second(7, 1, false));
}

static void links_that_come_and_go_between_equal_calls_lose_none(void **state)
{
	unsigned int taken = 0;

	(void)state;
	taken += !is_second(7, 1, false); /* shared alone */
	taken += !is_second(7, 1, true); /* both */
	taken += !is_second(7, 1, false);
	taken += !is_second(7, 1, true); /* both */
	taken += !is_second(7, 1, false);
	now_ns += 20 * NT_MILLISECOND;
	taken += !is_second(7, 1, true); /* own alone */
	assert_int_equal(taken, 4);
}

static void other_threads_other_arguments_and_later_calls_are_others(void **state)
{
	(void)state;
	assert_false(is_second(7, 1, false));
	assert_false(is_second(8, 1, true));
	assert_false(is_second(7, 2, true));
	assert_false(is_second(9, 1, false));
	now_ns += NT_SECOND;
	assert_false(is_second(9, 1, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(of_two_events_of_a_call_the_second_is_dropped, begin),
		cmocka_unit_test_setup(equal_calls_in_a_row_count_each, begin),
		cmocka_unit_test_setup(links_that_come_and_go_between_equal_calls_lose_none, begin),
		cmocka_unit_test_setup(other_threads_other_arguments_and_later_calls_are_others,
				       begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
