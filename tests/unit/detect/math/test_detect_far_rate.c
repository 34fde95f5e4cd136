/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults in some steps only: how often a rank is far behind its peers. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/math/cusum.h"
#include "detect/math/far_rate.h"
#include "detect/thresholds/thresholds.h"

/* The largest sum over such windows. */
static double largest_sum(struct nt_far_rate *rate, double part, uint32_t windows, uint64_t seed)
{
	struct sim sim = {.seed = seed};
	double sum = 0.0, most = 0.0;

	for (uint32_t i = 0; i < windows; i++) {
		const bool far = sim_uniform(&sim) < part;

		sum = fmax(0.0, sum + nt_far_rate_gain(rate, far));
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
	assert_true(nt_far_rate_gain(&rate, true) == 0.0);
	assert_true(nt_far_rate_gain(&rate, false) == 0.0);
}

static void a_few_healthy_windows_do_not_make_one_far_window_decide(void **state)
{
	struct nt_far_rate rate = {0};

	(void)state;
	/* Of 50 and more: ln(0.2 × 50) / 2. */
	assert_true(fabs(nt_far_rate_gain(&rate, true) - log(10.0) / 2.0) < 1e-9);
	nt_far_rate_add(&rate, false);
	assert_true(fabs(nt_far_rate_gain(&rate, true) - log(0.2 * 51.0) / 2.0) < 1e-9);
	nt_far_rate_add(&rate, true);
	assert_true(fabs(nt_far_rate_gain(&rate, true) - log(0.2 * 26.0) / 2.0) < 1e-9);
	assert_true(nt_far_rate_gain(&rate, false) < 0.0);
}

/* Its first far window counts as one of the group's, and is no reference for its second one. */
static void a_ranks_own_far_window_is_not_held_against_its_evidence(void **state)
{
	struct nt_far_rate rate = {0}, others;

	(void)state;
	for (int i = 0; i < 100; i++)
		nt_far_rate_add(&rate, false);
	nt_far_rate_add(&rate, true);
	for (int i = 0; i < 3; i++)
		nt_far_rate_fade(&rate);
	others = nt_far_rate_without(&rate, 3);
	assert_true(fabs(others.far) < 1e-9);
	assert_true(fabs(others.windows - 100.0 * pow(NT_FAR_RATE_KEPT, 3)) < 1e-9);
	assert_true(nt_far_rate_gain(&others, true) > nt_far_rate_gain(&rate, true));
	/* A rank that was not in all rounds. */
	others = nt_far_rate_without(&rate, 0);
	assert_true(others.far == 0.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_ranks_stay_below_the_threshold_at_any_rate),
		cmocka_unit_test(a_tenth_of_the_windows_is_found_within_a_hundred),
		cmocka_unit_test(where_all_are_far_at_times_one_that_is_proves_nothing),
		cmocka_unit_test(a_few_healthy_windows_do_not_make_one_far_window_decide),
		cmocka_unit_test(a_ranks_own_far_window_is_not_held_against_its_evidence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
