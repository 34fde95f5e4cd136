/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults in some steps only: how often a rank is far behind its peers. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/math/cusum.h"
#include "detect/math/far_rate.h"
#include "detect/thresholds/thresholds.h"

static const struct nt_far_rate unknown = {0};

/* Of a rank of which nothing is known, in the only group. */
static double gain(const struct nt_far_rate *others, uint8_t size)
{
	return nt_far_rate_gain(others, &unknown, &(struct nt_far_own){0}, 1, size);
}

/* The largest sum over such windows. */
static double largest_sum(struct nt_far_rate *rate, double part, uint32_t windows, uint64_t seed)
{
	struct sim sim = {.seed = seed};
	struct nt_far_own own = {0};
	double sum = 0.0, most = 0.0;

	for (uint32_t i = 0; i < windows; i++) {
		const uint8_t size = sim_uniform(&sim) < part;
		double start = 0.0;

		if (sum <= 0.0) {
			own = (struct nt_far_own){0};
			start = size ? nt_far_rate_start() : 0.0;
		}
		sum = fmax(0.0, sum + start + nt_far_rate_gain(rate, &unknown, &own, 1, size));
		own.windows[size]++;
		most = fmax(most, sum);
	}
	return most;
}

static struct nt_far_rate watch(double part, uint32_t windows)
{
	struct nt_far_rate rate = {0};
	struct sim sim = {.seed = 11};

	for (uint32_t i = 0; i < windows; i++) {
		if (i % 8 == 0)
			nt_far_rate_fade(&rate);
		nt_far_rate_add(&rate, sim_uniform(&sim) < part);
	}
	return rate;
}

/* P(sum > h) is at most exp(-exponent × h) a window: a threshold for a false one in 10^8. */
static const double threshold = 9.2;

static void healthy_ranks_stay_below_the_threshold_at_any_rate(void **state)
{
	(void)state;
	for (int i = 0; i <= 10; i++) {
		const double part = 0.02 * i;
		struct nt_far_rate rate = watch(part, 8000);

		assert_true(largest_sum(&rate, part, 1000000, 40 + (uint64_t)i) < threshold);
	}
}

/* How often a healthy rank's sum reaches a threshold of one in thirty, per window: less often. */
static void a_start_keeps_the_rate_of_false_alarms(void **state)
{
	const double reached = log(30.0) / nt_cusum_exponent();
	const uint32_t windows = 2000000;
	struct nt_far_rate rate = watch(0.02, 8000);
	struct sim sim = {.seed = 12};
	struct nt_far_own own = {0};
	uint32_t alarms = 0;
	double sum = 0.0;

	(void)state;
	for (uint32_t i = 0; i < windows; i++) {
		const uint8_t size = sim_uniform(&sim) < 0.02;

		if (sum <= 0.0)
			own = (struct nt_far_own){0};
		sum += (sum <= 0.0 && size ? nt_far_rate_start() : 0.0) +
		       nt_far_rate_gain(&rate, &unknown, &own, 1, size);
		own.windows[size]++;
		alarms += sum >= reached;
		if (sum <= 0.0 || sum >= reached)
			sum = 0.0;
	}
	assert_in_range(alarms, 1, windows / 1000);
}

static void a_tenth_of_the_windows_is_found_within_a_hundred(void **state)
{
	struct nt_far_rate rate = watch(0.002, 8000);

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		assert_true(largest_sum(&rate, 0.10, 250, seed) > threshold);
		assert_true(largest_sum(&rate, 0.30, 60, seed) > threshold);
	}
}

static void where_all_are_far_at_times_one_that_is_proves_nothing(void **state)
{
	struct nt_far_rate rate = watch(0.35, 8000);

	(void)state;
	assert_true(gain(&rate, 1) == 0.0);
	assert_true(gain(&rate, 0) < 0.0);
	/* A size that none of them reaches still does. */
	assert_true(gain(&rate, 3) > 1.0);
	rate = watch(0.9, 8000);
	for (uint8_t size = 0; size <= NT_FAR_SIZES; size++)
		assert_true(gain(&rate, size) == 0.0);
}

static void a_few_healthy_windows_do_not_make_one_far_window_decide(void **state)
{
	struct nt_far_rate rate = {0};
	double last;

	(void)state;
	/* Half of the healthy ones are of the least size, and a sixth of a faulty rank's. */
	last = gain(&rate, 1);
	assert_true(last < log(0.033 / 0.01) / 2.0);
	assert_true(last > log(0.02 / 0.01) / 2.0);
	nt_far_rate_add(&rate, 0);
	assert_true(gain(&rate, 1) > last);
	nt_far_rate_add(&rate, 1);
	assert_true(gain(&rate, 1) < last);
	assert_true(gain(&rate, 0) < 0.0);
}

/* Its first far window counts as one of the group's, and is no reference for its second one. */
static void a_ranks_own_far_window_is_not_held_against_its_evidence(void **state)
{
	struct nt_far_rate rate = {0}, given = {0}, others;

	(void)state;
	for (int i = 0; i < 100; i++)
		nt_far_rate_add(&rate, 0);
	nt_far_rate_add(&rate, 1);
	nt_far_rate_add(&given, 1);
	for (int i = 0; i < 3; i++) {
		nt_far_rate_fade(&rate);
		nt_far_rate_fade(&given);
	}
	others = rate;
	nt_far_rate_minus(&others, &given);
	assert_true(fabs(others.far[1]) < 1e-9);
	assert_true(fabs(others.windows - 100.0 * pow(NT_FAR_RATE_KEPT, 3)) < 1e-9);
	assert_true(gain(&others, 1) > gain(&rate, 1));
}

/* Of as few healthy windows, larger sizes are more seldom: half as often as the one before. */
static void a_larger_size_is_more_evidence(void **state)
{
	struct nt_far_rate rate = {0};

	(void)state;
	assert_true(fabs(gain(&rate, 2) - gain(&rate, 1) - log(2.0) / 2.0) < 1e-9);
	assert_true(fabs(gain(&rate, 3) - gain(&rate, 2) - log(2.0) / 2.0) < 1e-9);
	/* The last one has the rest of the tail. */
	assert_true(fabs(gain(&rate, 6) - gain(&rate, 5)) < 1e-9);
}

/*
 * A fault costs about as much each time: of ten far windows five are expected to be of that size then,
 * and not a sixth. Where nothing is known of the others, theirs may be of that size as well.
 */
static void a_size_that_returns_is_more_evidence(void **state)
{
	const struct nt_far_own same = {.windows = {10, 4}};
	struct nt_far_rate rate = watch(0.002, 8000);
	double more;

	(void)state;
	more = nt_far_rate_gain(&rate, &unknown, &same, 1, 1) - gain(&rate, 1);
	assert_true(more > log(2.9) / 2.0 && more < log(3.0) / 2.0);
	assert_true(nt_far_rate_gain(&rate, &unknown, &same, 1, 2) < gain(&rate, 2));
	assert_true(nt_far_rate_gain(&unknown, &unknown, &same, 1, 1) - gain(&unknown, 1) <
		    log(2.0) / 2.0);
}

/* Healthy work of a heavy tail: what lies beyond the tail is as telling as if there were none. */
static void beyond_a_heavy_tail_few_windows_are_enough(void **state)
{
	const struct nt_far_own none = {0};
	struct nt_far_rate rate = {0};

	(void)state;
	assert_int_equal(nt_far_rate_least(&rate, &unknown), 1);
	for (int i = 0; i < 1000; i++)
		nt_far_rate_add(&rate, i % 10 ? 0 : i % 20 ? 1 : 2);
	assert_int_equal(nt_far_rate_least(&rate, &unknown), 3);
	assert_true(gain(&rate, 1) < 0.05 && gain(&rate, 2) < 0.05);
	assert_true(nt_far_rate_gain(&rate, &unknown, &none, 3, 3) > 1.5);
	/* What healthy ranks reach often tells as little as that it is not far. */
	assert_true(nt_far_rate_gain(&rate, &unknown, &none, 3, 2) ==
		    nt_far_rate_gain(&rate, &unknown, &none, 3, 0));
	/* A tail without an end. */
	for (int i = 0; i < 1000; i++)
		nt_far_rate_add(&rate, NT_FAR_SIZES);
	assert_int_equal(nt_far_rate_least(&rate, &unknown), 1);
}

/*
 * Four of ten windows far: where the others have hardly been seen, all may be so. Where they are
 * known not to be, it is this rank.
 */
static void what_little_is_known_of_the_others_may_be_true_of_all(void **state)
{
	const struct nt_far_own none = {0}, often = {.windows = {6, 1, 1, 1, 1}};
	struct nt_far_rate rate = {0};
	double least;

	(void)state;
	for (int i = 0; i < 10; i++)
		nt_far_rate_add(&rate, 0);
	least = nt_far_rate_gain(&rate, &unknown, &often, 1, 1);
	assert_true(least < 0.7 * nt_far_rate_gain(&rate, &unknown, &none, 1, 1));
	for (int i = 0; i < 300; i++)
		nt_far_rate_add(&rate, 0);
	assert_true(nt_far_rate_gain(&rate, &unknown, &often, 1, 1) > 2.0 * least);
	assert_true(nt_far_rate_gain(&rate, &unknown, &often, 1, 1) >
		    0.99 * nt_far_rate_gain(&rate, &unknown, &none, 1, 1));
}

static void what_is_not_known_of_a_group_is_taken_from_the_rest(void **state)
{
	const struct nt_far_own none = {0};
	struct nt_far_rate rate = {0}, rest = {0}, often;

	(void)state;
	for (int i = 0; i < 1000; i++)
		nt_far_rate_add(&rest, i % 500 == 0);
	assert_true(nt_far_rate_gain(&rate, &rest, &none, 1, 1) > 1.5 * gain(&rate, 1));
	/* What the group itself shows outweighs it. */
	for (int i = 0; i < 1000; i++)
		nt_far_rate_add(&rate, i % 50 == 0);
	assert_true(nt_far_rate_gain(&rate, &rest, &none, 1, 1) < 1.1 * gain(&rate, 1));
	often = rest;
	nt_far_rate_plus(&often, &rate);
	assert_true(often.windows == 2000.0 && often.far[1] == 22.0);
	nt_far_rate_minus(&often, &rest);
	assert_true(often.windows == 1000.0 && often.far[1] == 20.0);
	nt_far_rate_minus(&often, &rest);
	nt_far_rate_minus(&often, &rest);
	assert_true(often.windows == 0.0 && often.far[1] > 0.0);
}

static void two_far_windows_are_too_few_however_large(void **state)
{
	struct nt_far_own own = {.windows = {[0] = 40, [NT_FAR_SIZES] = 2}};

	(void)state;
	assert_false(nt_far_own_suffices(&own));
	own.windows[1]++;
	assert_true(nt_far_own_suffices(&own));
}

static void a_size_is_twice_as_large_as_the_one_before(void **state)
{
	(void)state;
	assert_int_equal(nt_far_size(3.0), 1);
	assert_int_equal(nt_far_size(5.9), 1);
	assert_int_equal(nt_far_size(6.0), 2);
	assert_int_equal(nt_far_size(12.0), 3);
	assert_int_equal(nt_far_size(24.0), 4);
	assert_int_equal(nt_far_size(96.0), 6);
	assert_int_equal(nt_far_size(1e300), 6);
}

/* The rhythm after far windows at these distances, of which the last decides. */
static bool is_regular(const double *gap, size_t gaps)
{
	struct nt_far_rhythm rhythm = {0};
	double step = 20.0;

	nt_far_rhythm_add(&rhythm, step, 1.0, 0.5);
	for (size_t i = 0; i < gaps; i++) {
		step += gap[i];
		nt_far_rhythm_add(&rhythm, step, 1.0, 0.5);
	}
	return nt_far_rhythm_is_regular(&rhythm, 1.0);
}

static void a_rhythm_may_miss_a_beat(void **state)
{
	static const double missed[] = {100.0, 100.0, 200.0, 100.0}, other[] = {100.0, 150.0},
			    two_missed[] = {100.0, 300.0};

	(void)state;
	for (size_t i = 1; i <= 4; i++)
		assert_true(is_regular(missed, i));
	assert_false(is_regular(other, 2));
	assert_false(is_regular(two_missed, 2));
}

/* What happens between two times is another thing, unless it happens as often. */
static void a_rhythm_bears_what_is_off_beat(void **state)
{
	static const double between[] = {14.0, 14.0, 9.0, 5.0}, often[] = {14.0, 9.0, 5.0, 7.0};

	(void)state;
	assert_true(is_regular(between, 4));
	assert_false(is_regular(often, 2));
	assert_false(is_regular(often, 4));
}

/* Neither a long rhythm before nor what costs less hides a fault for long. */
static void a_rhythm_ends_with_a_fault(void **state)
{
	for (int small = 0; small < 2; small++) {
		struct nt_far_rhythm rhythm = {0};
		uint32_t regular = 0;

		(void)state;
		for (uint32_t i = 1; i <= 200; i++)
			nt_far_rhythm_add(&rhythm, 50.0 * i, 1.0, 0.5);
		assert_true(nt_far_rhythm_is_regular(&rhythm, 1.0));
		for (uint32_t i = 1; i <= 40; i++) {
			nt_far_rhythm_add(&rhythm, 10000.0 + 7.0 * i + i % 3 + i % 5, 1.0,
					  small ? 0.2 : 0.5);
			regular += nt_far_rhythm_is_regular(&rhythm, 1.0);
		}
		assert_true(regular < 20);
	}
}

/* An evaluation takes less than each second one, which is with a checkpoint. */
static void what_costs_less_comes_between_the_beats(void **state)
{
	struct nt_far_rhythm rhythm = {0};

	(void)state;
	for (uint32_t i = 1; i <= 30; i++) {
		nt_far_rhythm_add(&rhythm, 7.0 * i, 1.0, i % 2 ? 0.47 : 0.1);
		assert_true(i < 3 || nt_far_rhythm_is_regular(&rhythm, 1.0));
	}
}

/* A checkpoint that took longer than the others. */
static void an_outlier_ends_no_rhythm(void **state)
{
	struct nt_far_rhythm rhythm = {0};

	(void)state;
	for (uint32_t i = 1; i <= 30; i++) {
		nt_far_rhythm_add(&rhythm, 50.0 * i, 1.0, i == 20 ? 0.7 : 0.3);
		assert_true(i == 1 || i == 20 || nt_far_rhythm_is_regular(&rhythm, 1.0));
	}
}

static void a_short_rhythm_comes_twice_in_a_row(void **state)
{
	static const double eight[] = {8.0, 8.5, 9.0}, five[] = {5.0, 5.0, 5.0, 5.0};

	(void)state;
	assert_false(is_regular(eight, 1));
	assert_true(is_regular(eight, 2));
	assert_true(is_regular(eight, 3));
	assert_false(is_regular(five, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_ranks_stay_below_the_threshold_at_any_rate),
		cmocka_unit_test(a_start_keeps_the_rate_of_false_alarms),
		cmocka_unit_test(a_tenth_of_the_windows_is_found_within_a_hundred),
		cmocka_unit_test(where_all_are_far_at_times_one_that_is_proves_nothing),
		cmocka_unit_test(a_few_healthy_windows_do_not_make_one_far_window_decide),
		cmocka_unit_test(a_ranks_own_far_window_is_not_held_against_its_evidence),
		cmocka_unit_test(a_larger_size_is_more_evidence),
		cmocka_unit_test(a_size_that_returns_is_more_evidence),
		cmocka_unit_test(beyond_a_heavy_tail_few_windows_are_enough),
		cmocka_unit_test(what_little_is_known_of_the_others_may_be_true_of_all),
		cmocka_unit_test(what_is_not_known_of_a_group_is_taken_from_the_rest),
		cmocka_unit_test(two_far_windows_are_too_few_however_large),
		cmocka_unit_test(a_size_is_twice_as_large_as_the_one_before),
		cmocka_unit_test(a_rhythm_may_miss_a_beat),
		cmocka_unit_test(a_rhythm_bears_what_is_off_beat),
		cmocka_unit_test(a_rhythm_ends_with_a_fault),
		cmocka_unit_test(what_costs_less_comes_between_the_beats),
		cmocka_unit_test(an_outlier_ends_no_rhythm),
		cmocka_unit_test(a_short_rhythm_comes_twice_in_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
