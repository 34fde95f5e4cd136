/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults in some steps that are there from the start. */
#include "tests/unit/detect/detect_frames.h"

enum {
	RANKS = 8,
	SLOW = 5,
};

/* In most of the first windows it is slow, later in a third. */
static void a_fault_in_half_of_the_steps_costs_half(void **state)
{
	static const bool is_slow[] = {1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0,
				       0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 0};
	struct nt_detect *detect = sim_detect();
	const size_t passes = sizeof(is_slow) / sizeof(is_slow[0]);
	struct sim sim;
	size_t pass;

	(void)state;
	sim_init(&sim, RANKS, 71);
	sim.jitter = 0.01;
	sim.steps = 1;
	for (uint32_t i = 0; i < RANKS; i++)
		sim.rank[i].tier = NT_FRAME_T3;
	for (pass = 0; pass < passes && !sim_firing(detect, 0); pass++) {
		sim.rank[SLOW].device *= is_slow[pass] ? 2.0 : 1.0;
		sim_pass(&sim, detect, 1);
		sim.rank[SLOW].device /= is_slow[pass] ? 2.0 : 1.0;
	}
	assert_names_rank(sim_firing(detect, 0), SLOW);
	/* Half of its steps took 160 ms in place of 90. */
	assert_true(sim_firing(detect, 0)->slowdown > 1.3);
	assert_true(sim_firing(detect, 0)->slowdown < 1.6);
	sim_free(&sim);
	nt_detect_free(detect);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_in_half_of_the_steps_costs_half),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
