/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs whose steps have random lengths, equal on all ranks. */
#include "tests/unit/detect/detect_frames.h"

enum {
	RANKS = 8,
	STEPS = 300,
};

/* A few long steps in a row are no change of the job. */
static void lengths_that_vary_are_no_change(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct nt_detect *detect = sim_detect();
		double device[RANKS];
		struct sim sim;

		sim_init(&sim, RANKS, seed);
		sim.jitter = 0.01;
		sim.steps = 1;
		for (uint32_t i = 0; i < RANKS; i++) {
			sim.rank[i].tier = NT_FRAME_T3;
			device[i] = sim.rank[i].device;
		}
		for (uint32_t step = 0; step < STEPS; step++) {
			const double length = exp(0.2 * sim_gauss(&sim));

			for (uint32_t i = 0; i < RANKS; i++)
				sim.rank[i].device = device[i] * length;
			sim_pass(&sim, detect, 1);
			assert_null(sim_firing(detect, 0));
		}
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_that_vary_are_no_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
