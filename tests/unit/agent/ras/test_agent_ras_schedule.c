/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras_schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define START (1000 * NT_SECOND)

static struct nt_ras_want want_of(uint64_t file, uint32_t node)
{
	return (struct nt_ras_want){
		.pid = 1, .start_ns = 2, .file = file, .has_node = true, .node = node};
}

static void the_nodes_of_a_job_take_turns(void **state)
{
	const struct nt_ras_want first = want_of(7, 0), third = want_of(7, 2);
	struct nt_ras_schedule schedule = {0}, other = {0};

	(void)state;
	assert_ptr_equal(nt_ras_schedule_pick(&schedule, &first, 1, START), &first);
	assert_null(nt_ras_schedule_pick(&other, &third, 1, START));
	assert_null(nt_ras_schedule_pick(&other, &third, 1, START + 2 * NT_MINUTE - 1));
	assert_ptr_equal(nt_ras_schedule_pick(&other, &third, 1, START + 2 * NT_MINUTE), &third);
}

static void a_node_requests_once_a_minute(void **state)
{
	const struct nt_ras_want wants[] = {want_of(7, 0), want_of(8, 0)};
	struct nt_ras_schedule schedule = {0};

	(void)state;
	assert_ptr_equal(nt_ras_schedule_pick(&schedule, wants, 2, START), &wants[0]);
	assert_null(nt_ras_schedule_pick(&schedule, wants, 2, START + NT_MINUTE - 1));
	assert_ptr_equal(nt_ras_schedule_pick(&schedule, wants, 2, START + NT_MINUTE), &wants[1]);
	assert_null(nt_ras_schedule_pick(&schedule, wants, 2, START + 2 * NT_MINUTE));
}

static void a_file_is_tried_three_times_an_hour_apart(void **state)
{
	const struct nt_ras_want want = want_of(7, 0);
	struct nt_ras_schedule schedule = {0};
	uint64_t now_ns = START;

	(void)state;
	for (int i = 0; i < NT_RAS_SCHEDULE_TRIES; i++) {
		assert_ptr_equal(nt_ras_schedule_pick(&schedule, &want, 1, now_ns), &want);
		assert_null(nt_ras_schedule_pick(&schedule, &want, 1, now_ns + NT_HOUR - 1));
		now_ns += NT_HOUR;
	}
	assert_null(nt_ras_schedule_pick(&schedule, &want, 1, now_ns + 100 * NT_HOUR));
}

static void a_job_whose_node_is_not_known_is_counted_and_not_requested(void **state)
{
	const struct nt_ras_want want = {.pid = 1, .file = 7};
	struct nt_ras_schedule schedule = {0};

	(void)state;
	assert_null(nt_ras_schedule_pick(&schedule, &want, 1, START));
	assert_null(nt_ras_schedule_pick(&schedule, &want, 1, START + NT_HOUR));
	assert_int_equal(schedule.unplaced, 1);
}

static void files_over_the_cap_wait_until_another_is_not_wanted(void **state)
{
	struct nt_ras_want wants[NT_RAS_SCHEDULE_FILES + 1];
	struct nt_ras_schedule schedule = {0};

	(void)state;
	for (uint32_t i = 0; i <= NT_RAS_SCHEDULE_FILES; i++)
		wants[i] = want_of(i + 1, 1000000);
	wants[NT_RAS_SCHEDULE_FILES].node = 0;
	assert_null(nt_ras_schedule_pick(&schedule, wants, NT_RAS_SCHEDULE_FILES + 1, START));
	assert_int_equal(schedule.over_cap, 1);
	assert_ptr_equal(nt_ras_schedule_pick(&schedule, &wants[1], NT_RAS_SCHEDULE_FILES, START),
			 &wants[NT_RAS_SCHEDULE_FILES]);
	assert_int_equal(schedule.over_cap, 1);
}

/* It counts minutes from when the file was wanted first, by whichever job. */
static void the_first_turn_is_that_of_the_job_that_is_here(void **state)
{
	const struct nt_ras_want far = want_of(7, 500), near = want_of(7, 1);
	struct nt_ras_schedule schedule = {0};

	(void)state;
	assert_null(nt_ras_schedule_pick(&schedule, &far, 1, START));
	assert_null(nt_ras_schedule_pick(&schedule, &near, 1, START + NT_MINUTE - 1));
	assert_ptr_equal(nt_ras_schedule_pick(&schedule, &near, 1, START + NT_MINUTE), &near);
}

static void owners_have_tries_of_their_own(void **state)
{
	struct nt_ras_want wants[] = {want_of(7, 0), want_of(7, 0)};
	struct nt_ras_schedule schedule = {0};

	(void)state;
	wants[1].owner = 1;
	assert_ptr_equal(nt_ras_schedule_pick(&schedule, wants, 2, START), &wants[0]);
	assert_ptr_equal(nt_ras_schedule_pick(&schedule, wants, 2, START + NT_MINUTE), &wants[1]);
	assert_null(nt_ras_schedule_pick(&schedule, wants, 2, START + 2 * NT_MINUTE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nodes_of_a_job_take_turns),
		cmocka_unit_test(a_node_requests_once_a_minute),
		cmocka_unit_test(a_file_is_tried_three_times_an_hour_apart),
		cmocka_unit_test(a_job_whose_node_is_not_known_is_counted_and_not_requested),
		cmocka_unit_test(files_over_the_cap_wait_until_another_is_not_wanted),
		cmocka_unit_test(the_first_turn_is_that_of_the_job_that_is_here),
		cmocka_unit_test(owners_have_tries_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
