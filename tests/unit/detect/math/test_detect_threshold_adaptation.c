/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Thresholds where far windows are not rare. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/math/cusum.h"
#include "detect/math/threshold_adaptation.h"

/* How often a sum of such windows reaches the threshold; it begins anew each time. */
static uint32_t count_alarms(double part, double threshold, uint32_t windows)
{
	struct sim sim = {.seed = 7};
	uint32_t alarms = 0;
	double sum = 0.0;

	for (uint32_t i = 0; i < windows; i++) {
		double z = sim_gauss(&sim);

		if (sim_uniform(&sim) < part)
			z = 3.0;
		sum = fmax(0.0, sum + fmin(3.0, fmax(-3.0, z)) - 1.0);
		if (sum >= threshold) {
			alarms++;
			sum = 0.0;
		}
	}
	return alarms;
}

static struct nt_adaptation watch(double part, uint32_t windows)
{
	struct nt_adaptation tail = {0};
	struct sim sim = {.seed = 11};
	bool far = false;

	for (uint32_t i = 0; i < windows; i++) {
		const bool now = sim_uniform(&sim) < part;

		if (i % 8 == 0)
			nt_adaptation_fade(&tail);
		nt_adaptation_add(&tail, far, now);
		far = now;
	}
	return tail;
}

static void a_heavy_tail_raises_the_threshold_by_what_it_takes(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	const double plain = nt_cusum_threshold(&rules, 8, 5e8);

	(void)state;
	for (int i = 1; i <= 4; i++) {
		const double part = 0.05 * i;
		const struct nt_adaptation tail = watch(part, 20000);
		const double factor = nt_adaptation_factor(&tail);
		const double raised = nt_cusum_raised(&rules, plain, factor);

		assert_true(factor > 1.0 && raised > plain);
		assert_int_equal(count_alarms(part, raised, 2000000), 0);
		/* Not by more than that: at half of it there are false ones, or nearly. */
		assert_true(part < 0.10 || count_alarms(part, raised * 0.5, 2000000) > 0);
	}
	assert_true(count_alarms(0.15, plain, 2000000) > 100);
}

static void a_light_tail_changes_nothing(void **state)
{
	const struct nt_adaptation none = {0}, normal = watch(0.023, 20000);
	const struct nt_rules rules = nt_rules_default();

	(void)state;
	assert_true(nt_adaptation_factor(&none) == 1.0);
	assert_true(nt_adaptation_factor(&normal) < 1.1);
	assert_true(nt_cusum_raised(&rules, 10.0, 1.0) == 10.0);
}

static void who_stays_far_is_no_tail(void **state)
{
	struct nt_adaptation tail = {0};
	bool far[8] = {false};

	(void)state;
	for (int i = 0; i < 200; i++) {
		nt_adaptation_fade(&tail);
		for (int j = 0; j < 8; j++) {
			const bool now = j == 3 && i >= 20;

			nt_adaptation_add(&tail, far[j], now);
			far[j] = now;
		}
		assert_true(nt_adaptation_factor(&tail) == 1.0);
	}
}

/* The shortest run that is rarer than one in `windows`. */
static uint32_t rare_run(const struct nt_adaptation *tail, double windows)
{
	uint32_t run = 1;

	while (nt_adaptation_rarity(tail, run) < log(windows))
		run++;
	return run;
}

static void a_run_is_rare_if_excursions_that_ended_were_short(void **state)
{
	struct nt_adaptation tail = {.windows = 98.0, .entries = 19.0};

	(void)state;
	assert_true(nt_adaptation_rarity(&tail, 0) == 0.0);
	assert_true(fabs(nt_adaptation_rarity(&tail, 1) - log(5.0)) < 1e-9);
	/* Without data each further window is as likely as not. */
	assert_true(fabs(nt_adaptation_rarity(&tail, 4) - log(5.0 * 8.0)) < 1e-9);
	assert_int_equal(rare_run(&tail, 4e7), 24);
	nt_adaptation_add_run(&tail, 0);
	assert_true(tail.after == 0.0);
	for (int i = 0; i < 18; i++)
		nt_adaptation_add_run(&tail, 1);
	assert_int_equal(rare_run(&tail, 4e7), 7);
	/* Excursions of ten windows are no fault either. */
	for (int i = 0; i < 18; i++)
		nt_adaptation_add_run(&tail, 10);
	assert_true(rare_run(&tail, 4e7) > 50);
	nt_adaptation_fade(&tail);
	assert_true(tail.after < 198.0 && tail.stayed < 162.0);
}

static void nobody_can_be_told_apart_where_most_are_far(void **state)
{
	const struct nt_adaptation often = watch(0.5, 2000);
	const struct nt_cusum cusum = {.sum = 12.0};
	const struct nt_rules rules = nt_rules_default();

	(void)state;
	assert_true(nt_adaptation_factor(&often) == 16.0);
	assert_true(nt_cusum_chance(cusum.sum, &rules, 8, 16.0) == 1.0);
	assert_true(nt_cusum_chance(cusum.sum, &rules, 8, 1.0) < 1e-7);
	assert_true(nt_adaptation_is_far(3.0) && !nt_adaptation_is_far(1.9) &&
		    !nt_adaptation_is_far(NAN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_heavy_tail_raises_the_threshold_by_what_it_takes),
		cmocka_unit_test(a_light_tail_changes_nothing),
		cmocka_unit_test(who_stays_far_is_no_tail),
		cmocka_unit_test(a_run_is_rare_if_excursions_that_ended_were_short),
		cmocka_unit_test(nobody_can_be_told_apart_where_most_are_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
