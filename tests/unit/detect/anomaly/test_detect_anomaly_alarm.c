/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Thresholds by extreme values, the fleet's budget, hysteresis, and rows made of samples. */
#include "tests/unit/detect/anomaly/node_simulation.h"

#include <errno.h>

#include "detect/anomaly/level.h"
#include "detect/anomaly/minute.h"
#include "detect/anomaly/pareto.h"
#include "detect/anomaly/spot.h"

static void a_pareto_tail_is_found_again(void **state)
{
	static const double shapes[] = {-0.3, 0.0, 0.4};
	double excess[4000];

	(void)state;
	for (int s = 0; s < 3; s++) {
		const struct nt_pareto truth = {shapes[s], 2.0};
		struct nt_pareto found;
		uint64_t seed = 5;

		for (int i = 0; i < 4000; i++)
			excess[i] = nt_pareto_quantile(&truth, 1.0 - sim_random(&seed));
		found = nt_pareto_fit(excess, 4000);
		assert_true(fabs(found.shape - truth.shape) < 0.1);
		assert_true(fabs(found.scale - truth.scale) < 0.2);
	}
	assert_true(nt_pareto_fit(NULL, 0).scale == 0.0);
	assert_true(nt_pareto_fit((double[]){0.0, 0.0}, 2).scale == 0.0);
}

static void spot_flags_as_many_normal_values_as_it_was_told(void **state)
{
	for (uint32_t depth = 0; depth <= 200; depth += 200) {
		struct nt_spot_rules rules = nt_spot_rules_default();
		struct nt_spot *spot = NULL;
		uint64_t seed = 3;
		double threshold;
		int flagged = 0;

		(void)state;
		rules.depth = depth;
		assert_int_equal(nt_spot_new(&rules, &spot), 0);
		for (int i = 0; i < 101000; i++)
			flagged += nt_spot_take(spot, sim_normal(&seed) + (depth ? 1e-3 * i : 0.0),
						&threshold);
		assert_true(flagged > 30 && flagged < 400);
		assert_true(nt_spot_take(spot, 1000.0, &threshold));
		nt_spot_free(spot);
	}
	assert_int_equal(nt_spot_new(&(struct nt_spot_rules){.level = 0.9, .first = 9}, NULL),
			 -EINVAL);
}

static void more_false_alarms_allow_a_lower_threshold(void **state)
{
	struct nt_alarm_budget few, many;

	(void)state;
	nt_alarm_budget_init(&few, 0.02, NT_ANOMALY_DAY_ROWS);
	nt_alarm_budget_init(&many, 2.0, NT_ANOMALY_DAY_ROWS);
	assert_true(few.threshold > 2.0 * many.threshold);
	assert_true(many.threshold > NT_ANOMALY_PEAK);
	nt_alarm_budget_init(&few, 0.0, NT_ANOMALY_DAY_ROWS);
	assert_true(isinf(few.threshold)); /* none is accepted: no alarm */
}

static void a_calm_fleet_lowers_its_threshold_within_a_factor(void **state)
{
	struct nt_alarm_budget budget;
	nt_autobuf struct nt_buf saved = {0};
	struct nt_codec codec = {.out = &saved};
	double prior;

	(void)state;
	nt_alarm_budget_init(&budget, NT_ANOMALY_FALSE_ALARMS, NT_ANOMALY_DAY_ROWS);
	prior = budget.threshold;
	for (int i = 0; i < 4000000; i++) {
		nt_alarm_budget_row(&budget);
		if (i % 50000 == 0)
			nt_alarm_budget_peak(&budget, NT_ANOMALY_PEAK + 0.1 + 1e-6 * i / 50000);
	}
	assert_true(budget.threshold < prior / 2.0);
	assert_true(budget.threshold >= prior / NT_ANOMALY_PRIOR_FACTOR);
	nt_alarm_budget_code(&codec, &budget);
	assert_int_equal(codec.error, 0);
	codec = (struct nt_codec){.loads = true, .in = saved.data, .in_size = saved.len};
	prior = budget.threshold;
	nt_alarm_budget_init(&budget, NT_ANOMALY_FALSE_ALARMS, NT_ANOMALY_DAY_ROWS);
	nt_alarm_budget_code(&codec, &budget);
	assert_int_equal(codec.error, 0);
	assert_true(fabs(budget.threshold - prior) < 0.01 * prior);
}

static void an_alarm_takes_rows_to_begin_and_ends_well_below_its_threshold(void **state)
{
	const struct nt_score_alarm_rules rules = {.rows = 3, .release = 0.5};
	struct nt_score_alarm alarm = {0};

	(void)state;
	assert_int_equal(nt_score_alarm_take(&alarm, &rules, 11, 10), NT_SCORE_ALARM_SAME);
	assert_int_equal(nt_score_alarm_take(&alarm, &rules, 11, 10), NT_SCORE_ALARM_SAME);
	assert_int_equal(nt_score_alarm_take(&alarm, &rules, 9, 10), NT_SCORE_ALARM_SAME);
	for (int i = 0; i < 2; i++)
		assert_int_equal(nt_score_alarm_take(&alarm, &rules, 11, 10), NT_SCORE_ALARM_SAME);
	assert_int_equal(nt_score_alarm_take(&alarm, &rules, 11, 10), NT_SCORE_ALARM_BEGAN);
	assert_int_equal(nt_score_alarm_take(&alarm, &rules, 5, 10), NT_SCORE_ALARM_SAME);
	assert_int_equal(nt_score_alarm_take(&alarm, &rules, 4.9, 10), NT_SCORE_ALARM_ENDED);
	assert_false(alarm.is_raised);
	assert_int_equal(nt_score_alarm_take(&alarm, &rules, NAN, 10), NT_SCORE_ALARM_SAME);
}

static void a_level_is_a_quantile_of_the_last_scores(void **state)
{
	struct nt_score_level level = {0};

	(void)state;
	assert_true(nt_score_level_quantile(&level, 0.9) == 0.0);
	for (int i = 0; i < 1000; i++)
		nt_score_level_add(&level, i % 10 == 0 ? 0.5 : 0.001, 1.0);
	assert_true(fabs(nt_score_level_quantile(&level, 0.5) / 0.001 - 1.0) < 0.3);
	assert_true(fabs(nt_score_level_quantile(&level, 0.95) / 0.5 - 1.0) < 0.3);
	nt_score_level_add(&level, 1e9, 1.0); /* beyond the last bin */
	nt_score_level_add(&level, 0.0, 1.0); /* below the first */
}

static double close_one(struct nt_minute *minute)
{
	double row[1];

	nt_minute_close(minute, 1, row);
	return row[0];
}

static void add_seconds(struct nt_minute *minute, enum nt_minute_kind kind, uint64_t second,
			double value)
{
	nt_minute_add(minute, 0, kind, value, second * 1000000000);
}

static void gauges_are_averaged_and_counters_become_rates(void **state)
{
	struct nt_minute minute = {0};

	(void)state;
	for (uint64_t s = 600; s < 660; s += 5)
		add_seconds(&minute, NT_MINUTE_GAUGE, s, (double)(s - 600));
	assert_false(nt_minute_is_over(&minute, 659000000000));
	assert_true(nt_minute_is_over(&minute, 660000000000));
	assert_true(close_one(&minute) == 27.5);
	assert_true(isnan(close_one(&minute)));
	minute = (struct nt_minute){0};
	for (uint64_t s = 600; s < 660; s += 5)
		add_seconds(&minute, NT_MINUTE_COUNTER, s, 1e9 + 7.0 * (double)s);
	assert_true(fabs(close_one(&minute) - 7.0) < 1e-9);
	minute = (struct nt_minute){0};
	add_seconds(&minute, NT_MINUTE_TROUBLE, 600, 0);
	add_seconds(&minute, NT_MINUTE_TROUBLE, 605, 50);
	add_seconds(&minute, NT_MINUTE_TROUBLE, 610, 50);
	assert_true(close_one(&minute) == 10.0);
}

static void counters_wrap_reset_and_pause(void **state)
{
	struct nt_minute minute = {0};

	(void)state;
	add_seconds(&minute, NT_MINUTE_COUNTER, 600, 4294967290.0);
	add_seconds(&minute, NT_MINUTE_COUNTER, 605, 4.0); /* wrapped: 10 in 5 s */
	assert_true(close_one(&minute) == 2.0);
	add_seconds(&minute, NT_MINUTE_COUNTER, 610, 1e15);
	add_seconds(&minute, NT_MINUTE_COUNTER, 615, 10.0); /* reset */
	assert_int_equal(minute.resets, 1);
	(void)close_one(&minute);
	add_seconds(&minute, NT_MINUTE_COUNTER, 615 + 3600, 1e12); /* a gap */
	assert_int_equal(minute.gaps, 1);
	assert_true(isnan(close_one(&minute)));
	add_seconds(&minute, NT_MINUTE_COUNTER, 5000, NAN);
	add_seconds(&minute, NT_MINUTE_COUNTER, 5000, INFINITY);
	assert_true(isnan(close_one(&minute)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pareto_tail_is_found_again),
		cmocka_unit_test(spot_flags_as_many_normal_values_as_it_was_told),
		cmocka_unit_test(more_false_alarms_allow_a_lower_threshold),
		cmocka_unit_test(a_calm_fleet_lowers_its_threshold_within_a_factor),
		cmocka_unit_test(an_alarm_takes_rows_to_begin_and_ends_well_below_its_threshold),
		cmocka_unit_test(a_level_is_a_quantile_of_the_last_scores),
		cmocka_unit_test(gauges_are_averaged_and_counters_become_rates),
		cmocka_unit_test(counters_wrap_reset_and_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
