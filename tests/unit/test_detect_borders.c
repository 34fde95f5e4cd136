/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where one thing becomes another: the last value on either side. */
#include "detect_frames.h"

#include "detect/core.h"
#include "detect/ksigma.h"
#include "detect/unit.h"

/* Ranks make ten calls in a step of 100 ns; the third makes others. */
static void a_unit_is_another_where_calls_and_time_differ_alike(void **state)
{
	static const struct {
		double calls, step;
		bool another;
	} then[] = {
		{14.0, 140.0, true},   {13.9, 139.0, false}, {7.0, 70.0, true},
		{7.2, 72.0, false},    {20.0, 250.0, true},  {20.0, 251.0, false},
		{20.0, 150.0, true},   {20.0, 149.0, false}, {20.0, 100.0, false},
		{10.0, 200.0, false},  {0.0, 200.0, false},  {20.0, 0.0, false},
		{-20.0, 200.0, false},
	};
	static const uint32_t index[] = {0, 1, 2};
	struct nt_detect *detect = sim_detect();
	struct nt_group group = {0};
	struct sim sim;

	(void)state;
	sim_init(&sim, 3, 401);
	sim_pass(&sim, detect, 2);
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		for (uint32_t j = 0; j < 3; j++) {
			struct nt_rank *rank = &detect->rank[j];

			rank->has_habit = false;
			rank->pace[NT_PACE_CALLS] = j == 2 ? then[i].calls : 10.0;
			rank->pace[NT_PACE_STEP] = j == 2 ? then[i].step : 100.0;
			rank->pace[NT_PACE_OWN] = 50.0;
		}
		/* The upper one of the medians is what a step is. */
		nt_unit_align(detect, &group, index, 3);
		assert_true(detect->rank[0].pace[NT_PACE_OWN] == 50.0);
		assert_true(fabs(detect->rank[2].pace[NT_PACE_OWN] -
				 (then[i].another ? 50.0 * 100.0 / then[i].step : 50.0)) < 1e-9);
	}
	nt_detect_free(detect);
	sim_free(&sim);
}

/* More than half of those that have a habit must have left it. */
static void habits_are_forgotten_where_most_have_another_unit(void **state)
{
	static const uint32_t index[] = {0, 1, 2, 3};

	(void)state;
	for (uint32_t changed = 0; changed <= 4; changed++) {
		struct nt_detect *detect = sim_detect();
		struct nt_group group = {0};
		struct sim sim;

		sim_init(&sim, 4, 402);
		sim_pass(&sim, detect, 2);
		for (uint32_t j = 0; j < 4; j++) {
			struct nt_rank *rank = &detect->rank[j];

			rank->has_habit = true;
			rank->pace[NT_PACE_CALLS] = 20.0;
			rank->pace[NT_PACE_STEP] = 200.0;
			rank->habit[NT_PACE_CALLS] = j < changed ? 10.0 : 20.0;
			rank->habit[NT_PACE_STEP] = j < changed ? 100.0 : 200.0;
		}
		/* Thrice in a row. */
		for (uint32_t i = 0; i < 6; i++) {
			if (i == 2)
				detect->rank[0].pace[NT_PACE_CALLS] =
					detect->rank[1].pace[NT_PACE_CALLS] =
						detect->rank[2].pace[NT_PACE_CALLS] =
							detect->rank[3].pace[NT_PACE_CALLS] = 10.0;
			nt_unit_align(detect, &group, index, 4);
			for (uint32_t j = 0; j < 4; j++) {
				assert_int_equal(detect->rank[j].has_habit, changed <= 2 || i < 5);
				detect->rank[j].pace[NT_PACE_CALLS] = 20.0;
			}
		}
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void assert_z(const struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules,
		     double value, double z)
{
	const struct nt_ksigma_answer answer = nt_ksigma_judge(ksigma, rules, value);

	assert_true(answer.ready);
	assert_true(answer.centre == 100.0);
	assert_true(fabs(answer.z - z) < 1e-9 * fmax(1.0, fabs(z)));
}

static void a_z_is_how_many_widths_a_value_is_away(void **state)
{
	struct nt_ksigma_rules rules = nt_ksigma_rules_default();
	struct nt_ksigma ksigma = {.count = 0};

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_false(nt_ksigma_judge(&ksigma, &rules, 500.0).ready);
		nt_ksigma_learn(&ksigma, &rules, i % 2 ? 96.0 : 104.0);
	}
	assert_z(&ksigma, &rules, 104.0, 1.0 / 1.4826);
	assert_z(&ksigma, &rules, 88.0, -3.0 / 1.4826);
	/* As many as three are still normal. */
	rules.mean = true;
	assert_z(&ksigma, &rules, 112.0, 3.0);
	assert_false(nt_ksigma_judge(&ksigma, &rules, 112.0).abnormal);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 112.001).abnormal);
	/* A width of nothing. */
	rules = nt_ksigma_rules_default();
	rules.min_width = 0.0;
	for (int i = 0; i < 20; i++)
		nt_ksigma_learn(&ksigma, &rules, 100.0);
	assert_z(&ksigma, &rules, 100.0, 0.0);
	assert_z(&ksigma, &rules, 100.5, 1e9);
	assert_z(&ksigma, &rules, 99.5, -1e9);
	assert_false(nt_ksigma_judge(&ksigma, &rules, 100.0).abnormal);
	assert_true(nt_ksigma_judge(&ksigma, &rules, 100.5).abnormal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_is_another_where_calls_and_time_differ_alike),
		cmocka_unit_test(habits_are_forgotten_where_most_have_another_unit),
		cmocka_unit_test(a_z_is_how_many_widths_a_value_is_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
