/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the budget of a process leaves for sampled calls at level L1. */
#include <math.h>

#include "tests/unit/agent/governor_play.h"

enum {
	LOOK_NS = 50,
	DETAIL_NS = 200,
};

/* Of 1,000 sampled launches a second. */
static double share_of(const struct played *played, double wanted)
{
	return nt_governor_detail_share(played->governor, PID, wanted, LOOK_NS, DETAIL_NS);
}

static void a_process_with_few_calls_gets_all(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	assert_true(share_of(&played, 1000) == 1); /* not known */
	play(&played, PID, "cudaLaunchKernel", 2000, 5000);
	assert_true(share_of(&played, 1000) == 1);
	nt_governor_free(played.governor);
}

/*
 * 1 % of a core, of which 70 % is aimed at: 7 ms a second. 10,000 counted calls take 5 ms, and 0.5 ms to
 * look at. The rest, 1.5 ms, is enough for 7,500 samples.
 */
static void sampled_calls_get_what_the_rest_leaves(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	play(&played, PID, "cudaLaunchKernel", 10000, 10000);
	assert_false(plan_of(&played)->governed);
	assert_true(share_of(&played, 7000) == 1);
	assert_true(fabs(share_of(&played, 10000) - 0.75) < 0.01);
	/* No more can be sampled than is called. */
	assert_true(fabs(share_of(&played, 1000000) - 0.75) < 0.01);
	nt_governor_free(played.governor);
}

static void a_process_that_is_governed_gets_none(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	play(&played, PID, "cudaLaunchKernel", 100000, 5000);
	assert_true(plan_of(&played)->governed);
	assert_true(share_of(&played, 1000) == 0);
	nt_governor_free(played.governor);
}

static void one_below_its_budget_with_nothing_left_gets_none(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	play(&played, PID, "cudaLaunchKernel", 13500, 10000); /* 6.75 ms and 0.68 ms */
	assert_false(plan_of(&played)->governed);
	assert_true(share_of(&played, 1000) == 0);
	nt_governor_free(played.governor);
}

static void without_a_budget_all_are_sampled(void **state)
{
	struct nt_governor_options none = options;
	struct played played;

	(void)state;
	none.budget = 0;
	begin(&played, &none);
	play(&played, PID, "cudaLaunchKernel", 1000, 500);
	assert_true(share_of(&played, 1e9) == 1);
	nt_governor_free(played.governor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_with_few_calls_gets_all),
		cmocka_unit_test(sampled_calls_get_what_the_rest_leaves),
		cmocka_unit_test(a_process_that_is_governed_gets_none),
		cmocka_unit_test(one_below_its_budget_with_nothing_left_gets_none),
		cmocka_unit_test(without_a_budget_all_are_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
