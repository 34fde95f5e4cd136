/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where sums, tails and pasts become something else: the last value on either side. */
#include "tests/unit/detect/detect_borders.h"

#include "detect/math/threshold_adaptation.h"
#include "detect/model/detector_state.h"

static void a_mean_is_without_its_largest_window_where_there_are_two(void **state)
{
	struct nt_cusum cusum = {
		.cost = 5.0, .cost_peak = 3.0, .peer_deviation = 7.0, .peer_deviation_peak = 4.0};

	(void)state;
	for (cusum.windows = 0; cusum.windows < 2; cusum.windows++) {
		assert_true(nt_cusum_cost(&cusum) == 5.0);
		assert_true(nt_cusum_peer_deviation(&cusum) == 7.0);
	}
	assert_true(nt_cusum_cost(&cusum) == 2.0);
	assert_true(nt_cusum_peer_deviation(&cusum) == 3.0);
	cusum.windows = 3;
	assert_true(nt_cusum_cost(&cusum) == 1.0);
	assert_true(nt_cusum_peer_deviation(&cusum) == 1.5);
}

static void a_sum_that_is_nothing_remembers_nothing(void **state)
{
	const struct nt_rules rules = {.z_clip = 3.0, .drift = 1.0, .size_floor = 0.25};
	static const double leaving[] = {1.0, 0.5, -3.0, NAN};

	(void)state;
	for (size_t i = 0; i < sizeof(leaving) / sizeof(leaving[0]); i++) {
		struct nt_cusum cusum = {.sum = 0.0};
		struct nt_cusum_window window = {
			.start_ns = 7, .frame = 2, .z = leaving[i], .ceiling = 9.0};

		nt_cusum_add(&cusum, &rules, &window);
		assert_true(cusum.sum == 0.0 && cusum.windows == 0 && cusum.onset_ns == 0);
		window.z = 1.25;
		nt_cusum_add(&cusum, &rules, &window);
		assert_true(cusum.sum == 0.25 && cusum.windows == 1);
		assert_true(cusum.onset_ns == 7 && cusum.onset_frame == 2);
	}
}

static void a_window_is_costly_from_half_the_floor_on(void **state)
{
	const struct nt_rules rules = {.z_clip = 3.0, .drift = 1.0, .size_floor = 0.25};
	struct nt_cusum cusum = {.sum = 0.0};
	struct nt_cusum_window window = {.z = 2.0, .cost = 0.125, .ceiling = 99.0};

	(void)state;
	nt_cusum_add(&cusum, &rules, &window);
	assert_int_equal(cusum.costly, 1);
	assert_true(nt_cusum_lasts(&cusum));
	window.cost = 0.1249;
	nt_cusum_add(&cusum, &rules, &window);
	assert_int_equal(cusum.costly, 1);
	/* One of two is enough, one of three is not. */
	assert_true(nt_cusum_lasts(&cusum));
	nt_cusum_add(&cusum, &rules, &window);
	assert_int_equal(cusum.windows, 3);
	assert_false(nt_cusum_lasts(&cusum));
	/* Windows are counted as far as there are numbers. */
	cusum.windows = UINT32_MAX - 1;
	window.cost = 1.0;
	nt_cusum_add(&cusum, &rules, &window);
	assert_true(cusum.windows == UINT32_MAX && cusum.costly == 2);
	nt_cusum_add(&cusum, &rules, &window);
	assert_true(cusum.windows == UINT32_MAX && cusum.costly == 2);
}

static void a_threshold_is_worked_out_from_windows_a_day(void **state)
{
	const struct nt_rules rules = {.threshold_base = 3.0, .false_alarms_a_day = 0.5};
	struct nt_cusum cusum = {.sum = 5.0};

	(void)state;
	assert_true(is_near(nt_cusum_threshold(&rules, 10.0, 1e9),
			    3.0 + 0.5 * log(10.0 * 86400.0 / 0.5)));
	/* Windows are not shorter than a tenth of a second, and not longer than an hour. */
	assert_true(nt_cusum_threshold(&rules, 10.0, 1e8) == nt_cusum_threshold(&rules, 10.0, 1e7));
	assert_true(nt_cusum_threshold(&rules, 10.0, 1e8) >
		    nt_cusum_threshold(&rules, 10.0, 1.1e8));
	assert_true(nt_cusum_threshold(&rules, 10.0, 3600e9) ==
		    nt_cusum_threshold(&rules, 10.0, 7200e9));
	assert_true(nt_cusum_threshold(&rules, 10.0, 3600e9) <
		    nt_cusum_threshold(&rules, 10.0, 3500e9));
	assert_true(is_near(nt_cusum_threshold(&rules, 1.0, 3600e9), 3.0 + 0.5 * log(48.0)));
	/* And where there is less than one window to the false alarm, no more is asked. */
	assert_true(nt_cusum_threshold(&rules, 0.01, 3600e9) == 3.0);

	assert_true(nt_cusum_raised(&rules, 7.0, 2.5) == 13.0);
	assert_true(nt_cusum_raised(&rules, 7.0, 1.0) == 7.0);
	assert_true(is_near(nt_cusum_chance(cusum.sum, &rules, 0.5, 1.0), 0.5 * exp(-4.0)));
	assert_true(is_near(nt_cusum_chance(cusum.sum, &rules, 0.5, 4.0), 0.5 * exp(-1.0)));
	cusum.sum = 3.0;
	assert_true(nt_cusum_chance(cusum.sum, &rules, 0.5, 1.0) == 0.5);
	cusum.sum = 2.0;
	assert_true(nt_cusum_chance(cusum.sum, &rules, 0.5, 1.0) == 0.5);
	assert_true(nt_cusum_chance(cusum.sum, &rules, 4.0, 1.0) == 1.0);
}

/* ---- tails ----------------------------------------------------------------------------------- */

static void a_factor_balances_far_windows_with_the_rest(void **state)
{
	(void)state;
	for (double entries = 3.0; entries < 40.0; entries += 1.0) {
		const struct nt_adaptation tail = {.windows = 80.0, .entries = entries};
		const double p = (entries - 1.0 - 2.0) / 80.0;
		const double factor = nt_adaptation_factor(&tail), t = 2.0 / factor;

		/* An entry more than one, and than one in forty, is one too many. */
		if (p <= 0.0) {
			assert_true(factor == 1.0);
			continue;
		}
		if (p * exp(2.0 * 0.125) + (1.0 - p) * exp(0.125 * 0.125 / 2.0 - 0.125) >= 1.0) {
			assert_true(factor == 16.0);
			continue;
		}
		assert_true(factor > 1.0 && factor < 16.0);
		assert_true(fabs(p * exp(2.0 * t) + (1.0 - p) * exp(t * t / 2.0 - t) - 1.0) < 1e-5);
	}
}

static void far_is_two_widths_and_counts_once(void **state)
{
	struct nt_adaptation tail = {.windows = 100.0, .entries = 50.0};

	(void)state;
	assert_true(nt_adaptation_is_far(2.0));
	assert_false(nt_adaptation_is_far(1.9999));
	nt_adaptation_fade(&tail);
	assert_true(is_near(tail.windows, 99.0) && is_near(tail.entries, 49.5));
	nt_adaptation_add(&tail, true, true);
	nt_adaptation_add(&tail, true, false);
	assert_true(is_near(tail.windows, 99.0) && is_near(tail.entries, 49.5));
	nt_adaptation_add(&tail, false, false);
	assert_true(is_near(tail.windows, 100.0) && is_near(tail.entries, 49.5));
	nt_adaptation_add(&tail, false, true);
	assert_true(is_near(tail.windows, 101.0) && is_near(tail.entries, 50.5));
	/* Fewer than one window are one. */
	tail = (struct nt_adaptation){.windows = 0.5, .entries = 1.1};
	assert_true(nt_adaptation_factor(&tail) > 1.0 && nt_adaptation_factor(&tail) < 16.0);
}

/* ---- the past -------------------------------------------------------------------------------- */

static void three_windows_before_an_onset_are_a_past(void **state)
{
	struct nt_past past = {.count = 0};
	struct nt_lesson lesson;
	double peer_deviation = 42.0, value = 42.0;

	(void)state;
	for (uint64_t i = 1; i <= 5; i++)
		nt_past_learn(&past, &lesson, 0.1 * (double)i, 100.0 * (double)i, 10 * i);
	assert_false(nt_past_before(&past, &lesson, 30, &peer_deviation, &value));
	assert_true(peer_deviation == 42.0 && value == 42.0);
	assert_true(nt_past_before(&past, &lesson, 31, &peer_deviation, &value));
	assert_true(is_near(peer_deviation, 0.2) && is_near(value, 200.0));
	assert_true(nt_past_before(&past, &lesson, 40, &peer_deviation, &value));
	assert_true(is_near(value, 200.0));
	assert_true(nt_past_before(&past, &lesson, 41, &peer_deviation, &value));
	assert_true(is_near(value, 250.0));
	/* Of that frame itself it is no longer the past. */
	nt_past_unlearn(&past, &lesson, 51);
	assert_int_equal(past.count, 5);
	nt_past_unlearn(&past, &lesson, 50);
	assert_int_equal(past.count, 4);
	nt_past_unlearn(&past, &lesson, 0);
	assert_int_equal(past.count, 0);
	nt_past_unlearn(&past, &lesson, 0);
	assert_int_equal(past.count, 0);
}

static void twenty_windows_are_a_whole_past(void **state)
{
	struct nt_past past = {.count = 0};
	struct nt_lesson lesson;
	double peer_deviation, value;

	(void)state;
	for (uint64_t i = 1; i <= NT_PAST_WINDOWS; i++) {
		assert_false(past.ready);
		nt_past_learn(&past, &lesson, i % 2 ? 0.2 : 0.3, i % 2 ? 90.0 : 110.0, i);
	}
	assert_true(past.ready);
	assert_true(is_near(past.peer_deviation_centre, 0.25) && is_near(past.value_centre, 100.0));
	assert_true(is_near(past.peer_deviation_width, 0.07413) &&
		    is_near(past.value_width, 0.14826));
	assert_true(nt_past_before(&past, &lesson, 0, &peer_deviation, &value));
	assert_true(is_near(peer_deviation, 0.25) && is_near(value, 100.0));
	assert_true(is_near(nt_past_doubt(&past), 2.5 * 0.14826 / sqrt(20.0)));
	assert_true(is_near(nt_past_floor(&past, 1.0), 0.25 - 1.25 * 0.07413 / sqrt(20.0)));
	assert_true(is_near(nt_past_floor(&past, 0.01), 0.24));
	nt_past_clear(&past);
	assert_true(!past.ready && past.count == 0 && past.peer_deviation_centre == 0.0);
	/* Of nothing there is no part. */
	for (uint64_t i = 1; i <= NT_PAST_WINDOWS; i++)
		nt_past_learn(&past, &lesson, 0.0, i % 2 ? -1.0 : 1.0, i);
	assert_true(past.value_centre == 0.0 && past.value_width == 0.0);
}

/* ---- recovery -------------------------------------------------------------------------------- */

static void a_fault_is_over_after_its_time_and_its_windows(void **state)
{
	const struct nt_rules rules = {
		.size_floor = 0.25, .resolve_min_ns = 160, .resolve_windows = 16};
	static const struct {
		uint64_t window_ns;
		uint32_t windows;
	} then[] = {{10, 16}, {20, 16}, {5, 32}};

	(void)state;
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_recovery recovery = {.buckets = 0};
		uint64_t now = 0;

		assert_false(nt_recovery_is_over(&recovery, &rules, 1000, 0));
		for (uint32_t j = 1; j <= then[i].windows; j++) {
			nt_recovery_add(&recovery, &rules, now, now + then[i].window_ns, 0.0, 0.0);
			now += then[i].window_ns;
			assert_int_equal(nt_recovery_is_over(&recovery, &rules, now, 0),
					 j == then[i].windows);
		}
		/* That of the first window: an incident opens in a bad one. */
		assert_true(recovery.bad_ns == then[i].window_ns);
	}
}

static void add(struct nt_recovery *recovery, const struct nt_rules *rules, uint32_t windows,
		double cost)
{
	for (uint32_t i = 0; i < windows; i++)
		nt_recovery_add(recovery, rules, recovery->seen_ns, recovery->seen_ns + 1, cost,
				0.5);
}

static void a_fault_ends_with_its_last_bad_window(void **state)
{
	const struct nt_rules rules = {
		.size_floor = 0.25, .resolve_min_ns = 160, .resolve_windows = 32};
	struct nt_recovery recovery = {.buckets = 0};

	(void)state;
	add(&recovery, &rules, 10, 0.5);
	assert_true(recovery.bad_ns == 10 && !recovery.ended);
	/* Half of the fault is no less than the fault. */
	add(&recovery, &rules, 1, 0.25);
	assert_true(recovery.bad_ns == 11);
	add(&recovery, &rules, 4, 0.0);
	assert_true(recovery.bad_ns == 11 && !recovery.ended);
	add(&recovery, &rules, 1, 0.0);
	assert_true(recovery.bad_ns == 11 && recovery.ended);
	/* A single bad window among healthy ones is noise, five in a row are the fault. */
	add(&recovery, &rules, 1, 0.5);
	assert_true(recovery.bad_ns == 11 && !recovery.ended);
	add(&recovery, &rules, 1, 0.0);
	assert_true(recovery.bad_ns == 11 && recovery.ended);
	add(&recovery, &rules, 5, 0.5);
	assert_true(recovery.bad_ns == 23 && !recovery.ended);
}

/* In a fifth of the windows, five times as long: its mean is that of a fault in all of them. */
static void a_fault_that_pauses_has_not_ended(void **state)
{
	const struct nt_rules rules = {
		.size_floor = 0.25, .resolve_min_ns = 160, .resolve_windows = 32};
	struct nt_recovery recovery = {.buckets = 0};

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		add(&recovery, &rules, 1, 2.5);
		assert_true(recovery.bad_ns == recovery.seen_ns);
		add(&recovery, &rules, i % 2 ? 1 : 7, 0.0);
		assert_false(recovery.ended);
	}
	add(&recovery, &rules, 23, 0.0);
	assert_false(recovery.ended);
	add(&recovery, &rules, 1, 0.0);
	assert_true(recovery.ended);
}

/* The fault's cost is known from its bad windows, as a burst is judged by itself: the pauses are learned. */
static void the_end_of_a_fault_that_pauses_is_its_last_bad_window(void **state)
{
	const struct nt_rules rules = {
		.size_floor = 0.25, .resolve_min_ns = 160, .resolve_windows = 32};
	static const struct {
		uint32_t bad, healthy,
			late; /* of a burst, so many of its windows are not the end yet */
	} pattern[] = {{1, 4, 0}, {5, 15, 3}, {10, 10, 4}};

	(void)state;
	for (size_t i = 0; i < sizeof(pattern) / sizeof(pattern[0]); i++) {
		struct nt_recovery recovery = {.buckets = 0};

		for (uint32_t burst = 0; burst < 20; burst++) {
			for (uint32_t j = 0; j < pattern[i].bad; j++) {
				nt_recovery_add(&recovery, &rules, recovery.seen_ns,
						recovery.seen_ns + 1, 2.5, 2.5);
				assert_true(j < pattern[i].late ||
					    recovery.bad_ns == recovery.seen_ns);
			}
			add(&recovery, &rules, pattern[i].healthy, 0.0);
		}
		/* What follows is healthy, with an outlier. */
		add(&recovery, &rules, 100, 0.0);
		nt_recovery_add(&recovery, &rules, recovery.seen_ns, recovery.seen_ns + 1, 2.5,
				2.5);
		assert_true(recovery.bad_ns + pattern[i].healthy + 100 + 1 == recovery.seen_ns);
		assert_true(recovery.ended);
	}
}

/* As much as the floor itself, over 32 windows and 160 ns: over where none of them accused the rank. */
static void what_remains_of_a_fault_is_no_fault(void **state)
{
	const struct nt_rules rules = {
		.size_floor = 0.0625, .resolve_min_ns = 30, .resolve_windows = 32};
	static const struct {
		double rest;
		uint32_t absent;
		bool is_over;
	} then[] = {
		{0.0625, 0, false}, {0.0625, 31, false}, {0.0625, 32, true}, {0.12, 32, true},
		{0.125, 32, false}, {0.03125, 32, true}, {0.03, 0, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_recovery recovery = {.buckets = 0};

		add(&recovery, &rules, 64, 0.5);
		add(&recovery, &rules, 32, then[i].rest);
		assert_int_equal(
			nt_recovery_is_over(&recovery, &rules, recovery.seen_ns, then[i].absent),
			then[i].is_over);
	}
}

static void buckets_are_cut_and_the_oldest_goes(void **state)
{
	const struct nt_rules rules = {
		.size_floor = 0.25, .resolve_min_ns = 160, .resolve_windows = 32};
	struct nt_recovery recovery = {.buckets = 0};
	uint64_t now = 0;

	(void)state;
	/* Both must be full: ten of time, two of windows. */
	nt_recovery_add(&recovery, &rules, 0, 100, 1.0, 0.0);
	nt_recovery_add(&recovery, &rules, 100, 200, 2.0, 0.0);
	assert_int_equal(recovery.buckets, 1);
	assert_int_equal(recovery.bucket[0].windows, 2);
	assert_true(recovery.bucket[0].sum == 3.0);
	nt_recovery_add(&recovery, &rules, 200, 205, 4.0, 0.0);
	assert_int_equal(recovery.buckets, 2);
	assert_true(recovery.bucket[1].start_ns == 200 && recovery.bucket[1].sum == 4.0);
	nt_recovery_add(&recovery, &rules, 205, 208, 4.0, 0.0);
	nt_recovery_add(&recovery, &rules, 208, 210, 4.0, 0.0);
	assert_int_equal(recovery.buckets, 2);
	assert_int_equal(recovery.bucket[1].windows, 3);
	nt_recovery_add(&recovery, &rules, 210, 211, 4.0, 0.0);
	assert_int_equal(recovery.buckets, 3);
	recovery.bucket[2].windows = UINT32_MAX;
	nt_recovery_add(&recovery, &rules, 211, 212, 4.0, 0.0);
	assert_true(recovery.bucket[2].windows == UINT32_MAX && recovery.bucket[2].sum == 8.0);

	recovery = (struct nt_recovery){.buckets = 0};
	for (uint32_t i = 0; i < 2 * (NT_RECOVERY_BUCKETS + 3); i++, now += 10)
		nt_recovery_add(&recovery, &rules, now, now + 10, i, 0.0);
	assert_int_equal(recovery.buckets, NT_RECOVERY_BUCKETS);
	for (uint32_t i = 0; i < NT_RECOVERY_BUCKETS; i++) {
		assert_true(recovery.bucket[i].start_ns == 20ull * (i + 3));
		assert_true(recovery.bucket[i].sum == 4.0 * (i + 3) + 1.0);
		assert_int_equal(recovery.bucket[i].windows, 2);
	}
}

/* ---- gaps ------------------------------------------------------------------------------------ */

static void a_gap_is_a_nanosecond_and_what_lies_behind_its_onset(void **state)
{
	struct nt_completeness gaps = {0};
	struct nt_frame frame = {.start_ns = 100, .end_ns = 200, .completeness = 1.0};

	(void)state;
	frame.missed_ns = 0.99;
	nt_completeness_add(&gaps, &frame);
	frame.missed_ns = -0.99;
	nt_completeness_add(&gaps, &frame);
	assert_true(gaps.gaps == 0 && gaps.missing_ns == 0.0);
	frame.missed_ns = 1.0;
	nt_completeness_add(&gaps, &frame);
	assert_true(gaps.gaps == 1 && gaps.missing_ns == 1.0);
	assert_true(nt_completeness_share(&gaps, 0.0, 100, 200) == 0.99);
	assert_true(nt_completeness_share(&gaps, 0.01, 100, 200) == 1.0);
	assert_true(nt_completeness_share(&gaps, 0.0, 200, 200) == 0.0);
	assert_true(nt_completeness_share(&gaps, 0.0, 201, 200) == 0.0);
	assert_true(nt_completeness_share(&gaps, 0.0, 200, 201) == 0.0);

	gaps = (struct nt_completeness){0};
	frame.missed_ns = 0.0;
	frame.completeness = 0.5;
	nt_completeness_add(&gaps, &frame);
	assert_true(nt_completeness_before(&gaps, 99) == 0.0);
	assert_true(nt_completeness_before(&gaps, 100) == 0.0);
	assert_true(is_near(nt_completeness_before(&gaps, 150), 25.0));
	assert_true(nt_completeness_before(&gaps, 200) == 50.0);
	/* One nanosecond between two is enough for them to be two. */
	frame.start_ns = 201;
	frame.end_ns = 301;
	nt_completeness_add(&gaps, &frame);
	assert_int_equal(gaps.gaps, 2);
	frame.start_ns = 301;
	frame.end_ns = 401;
	nt_completeness_add(&gaps, &frame);
	assert_int_equal(gaps.gaps, 2);
	assert_true(gaps.gap[1].end_ns == 401 && gaps.gap[1].missing_ns == 100.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mean_is_without_its_largest_window_where_there_are_two),
		cmocka_unit_test(a_sum_that_is_nothing_remembers_nothing),
		cmocka_unit_test(a_window_is_costly_from_half_the_floor_on),
		cmocka_unit_test(a_threshold_is_worked_out_from_windows_a_day),
		cmocka_unit_test(a_factor_balances_far_windows_with_the_rest),
		cmocka_unit_test(far_is_two_widths_and_counts_once),
		cmocka_unit_test(three_windows_before_an_onset_are_a_past),
		cmocka_unit_test(twenty_windows_are_a_whole_past),
		cmocka_unit_test(a_fault_is_over_after_its_time_and_its_windows),
		cmocka_unit_test(a_fault_ends_with_its_last_bad_window),
		cmocka_unit_test(a_fault_that_pauses_has_not_ended),
		cmocka_unit_test(the_end_of_a_fault_that_pauses_is_its_last_bad_window),
		cmocka_unit_test(what_remains_of_a_fault_is_no_fault),
		cmocka_unit_test(buckets_are_cut_and_the_oldest_goes),
		cmocka_unit_test(a_gap_is_a_nanosecond_and_what_lies_behind_its_onset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
