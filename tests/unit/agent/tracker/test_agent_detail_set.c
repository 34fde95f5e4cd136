/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Processes at level L1, and how the rates of the node are divided among them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/tracker/detail_set.h"

static const struct nt_detail_set_limits limits = {.rank = 4000, .owner = 8000, .node = 16000};

static uint64_t sum_of(struct nt_detail_set *set, uint64_t owner)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nt_detail_set_count(set); i++)
		if (!owner || nt_detail_set_at(set, i)->owner == owner)
			sum += nt_detail_set_at(set, i)->rate;
	return sum;
}

static void one_process_has_the_rate_of_a_rank(void **state)
{
	nt_auto(nt_detail_set) struct nt_detail_set *set = NULL;

	(void)state;
	assert_int_equal(nt_detail_set_new(&limits, &set), 0);
	nt_detail_set_divide(set);
	assert_int_equal(nt_detail_set_put(set, 7, 70, 1, 1), 0);
	nt_detail_set_divide(set);
	assert_int_equal(nt_detail_set_find(set, 7)->rate, 4000);
	assert_null(nt_detail_set_find(set, 8));
}

static void no_owner_and_no_node_has_more_than_its_limit(void **state)
{
	nt_auto(nt_detail_set) struct nt_detail_set *set = NULL;

	(void)state;
	assert_int_equal(nt_detail_set_new(&limits, &set), 0);
	for (uint32_t pid = 1; pid <= 100; pid++)
		assert_int_equal(nt_detail_set_put(set, pid, pid, 1, 1 + pid % 3), 0);
	assert_int_equal(nt_detail_set_put(set, 200, 200, 2, 9), 0);
	nt_detail_set_divide(set);
	for (uint64_t owner = 1; owner <= 3; owner++)
		assert_true(sum_of(set, owner) <= 8000 && sum_of(set, owner) > 4000);
	assert_true(sum_of(set, 0) <= 16000);
	/* Others do not take what the node has for one of another owner. */
	assert_int_equal(nt_detail_set_find(set, 200)->rate, 16000 / 101);
	assert_int_equal(nt_detail_set_find(set, 200)->level, 2);
}

static void a_process_at_level_3_has_four_times_the_rate(void **state)
{
	nt_auto(nt_detail_set) struct nt_detail_set *set = NULL;

	(void)state;
	assert_int_equal(nt_detail_set_new(&limits, &set), 0);
	assert_int_equal(nt_detail_set_put(set, 1, 10, 3, 1), 0);
	nt_detail_set_divide(set);
	/* That of its owner is less. */
	assert_int_equal(nt_detail_set_find(set, 1)->rate, 8000);
	for (uint32_t pid = 2; pid <= 5; pid++)
		assert_int_equal(nt_detail_set_put(set, pid, 10, 1, 1), 0);
	nt_detail_set_divide(set);
	assert_int_equal(nt_detail_set_find(set, 1)->rate, 4000);
	assert_int_equal(nt_detail_set_find(set, 2)->rate, 1000);
	assert_true(sum_of(set, 1) <= 8000);
	/* The level ends. */
	assert_int_equal(nt_detail_set_put(set, 1, 10, 1, 1), 0);
	nt_detail_set_divide(set);
	assert_int_equal(nt_detail_set_find(set, 1)->rate, 1600);
}

static void more_processes_than_records_have_none(void **state)
{
	const struct nt_detail_set_limits few = {.rank = 32, .owner = 32, .node = 32};
	nt_auto(nt_detail_set) struct nt_detail_set *set = NULL;

	(void)state;
	assert_int_equal(nt_detail_set_new(&few, &set), 0);
	for (uint32_t pid = 1; pid <= 33; pid++)
		assert_int_equal(nt_detail_set_put(set, pid, pid, 1, 1), 0);
	nt_detail_set_divide(set);
	assert_int_equal(sum_of(set, 0), 0);
}

static void the_set_is_capped_and_a_reused_pid_is_another_process(void **state)
{
	nt_auto(nt_detail_set) struct nt_detail_set *set = NULL;

	(void)state;
	assert_int_equal(nt_detail_set_new(&limits, &set), 0);
	for (uint32_t pid = 1; pid <= NT_DETAIL_SET_MOST; pid++)
		assert_int_equal(nt_detail_set_put(set, pid, pid, 1, pid), 0);
	assert_int_equal(nt_detail_set_put(set, 5000, 1, 1, 1), -ENOSPC);
	assert_int_equal(nt_detail_set_put(set, 17, 17, 3, 17), 0); /* it is there */
	assert_int_equal(nt_detail_set_find(set, 17)->level, 3);
	nt_detail_set_find(set, 17)->is_limited = true;
	assert_int_equal(nt_detail_set_put(set, 17, 18, 1, 17), 0);
	assert_false(nt_detail_set_find(set, 17)->is_limited);
	assert_false(nt_detail_set_remove(set, 17, 17));
	assert_true(nt_detail_set_remove(set, 17, 18));
	assert_null(nt_detail_set_find(set, 17));
	assert_int_equal(nt_detail_set_count(set), NT_DETAIL_SET_MOST - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_has_the_rate_of_a_rank),
		cmocka_unit_test(no_owner_and_no_node_has_more_than_its_limit),
		cmocka_unit_test(a_process_at_level_3_has_four_times_the_rate),
		cmocka_unit_test(more_processes_than_records_have_none),
		cmocka_unit_test(the_set_is_capped_and_a_reused_pid_is_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
