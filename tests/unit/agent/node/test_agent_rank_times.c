/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/rank_times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void times_are_means_of_a_step_over_windows(void **state)
{
	struct nt_rank_times times = {0};
	struct nt_metric_value metric[NT_RANK_TIMES_METRICS];
	struct nt_window window = {
		.steps = 5, .step_ns = 500000000, .own_ns = 400000000, .own_tier = NT_TIER_T2};

	(void)state;
	nt_rank_times_add(&times, &window);
	window.steps = 1;
	window.step_ns = 300000000;
	window.own_ns = 100000000;
	window.own_tier = NT_TIER_T3;
	nt_rank_times_add(&times, &window);
	assert_int_equal(nt_rank_times_take(&times, metric), 2);
	assert_string_equal(metric[0].name, "rank_step_seconds");
	assert_float_equal(metric[0].value, 0.2, 1e-9);
	assert_string_equal(metric[1].name, "rank_own_work_seconds");
	assert_float_equal(metric[1].value, 0.09, 1e-9);
	/* The next interval begins with nothing. */
	assert_int_equal(nt_rank_times_take(&times, metric), 0);
}

static void windows_without_steps_or_own_work_do_not_count(void **state)
{
	struct nt_rank_times times = {0};
	struct nt_metric_value metric[NT_RANK_TIMES_METRICS];
	struct nt_window window = {.own_ns = 7, .own_tier = NT_TIER_T2};

	(void)state;
	nt_rank_times_add(&times, &window);
	assert_int_equal(nt_rank_times_take(&times, metric), 0);
	window.steps = 1;
	window.step_ns = 1000000000;
	window.own_tier = NT_TIER_T1; /* own work is not observable */
	nt_rank_times_add(&times, &window);
	assert_int_equal(nt_rank_times_take(&times, metric), 1);
	assert_float_equal(metric[0].value, 1.0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_means_of_a_step_over_windows),
		cmocka_unit_test(windows_without_steps_or_own_work_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
