/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes of ranks that differ by nature. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/thresholds/thresholds.h"

enum {
	RANKS = 8,
	SLOW = 3,
	LEARNED = 60, /* frames */
};

/* Of the same cards, one every 1.5 % of their work. */
static struct nt_detect *start(struct sim *sim)
{
	sim_init(sim, RANKS, 83);
	sim->jitter = 0.002;
	sim->recorded = true;
	for (uint32_t i = 0; i < RANKS; i++) {
		sim->rank[i].tier = NT_FRAME_T3;
		sim->rank[i].host = 0.0;
		sim->rank[i].device *= 1.0 + 0.015 * i;
	}
	return sim_detect();
}

/* It slows down by a hundredth of its work in each frame: 23 frames by the spread of all. */
static void a_slowing_rank_is_named_before_it_leaves_their_spread(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim);
	uint32_t frames = 0;

	(void)state;
	sim_pass(&sim, detect, LEARNED);
	assert_null(sim_firing(detect, 0));
	while (!sim_firing(detect, 0) && frames < LEARNED) {
		frames++;
		sim.rank[SLOW].device = 70.0 * SIM_MS * (1.0 + 0.015 * SLOW + 0.01 * frames);
		sim_pass(&sim, detect, 1);
	}
	assert_names_rank(sim_firing(detect, 0), SLOW);
	assert_in_range(frames, 8, 17);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* What is permanent about a rank does not accuse it, though the rest is much less. */
static void ranks_that_differ_by_nature_are_not_named(void **state)
{
	(void)state;
	for (uint32_t noisy = 0; noisy < 2; noisy++) {
		struct sim sim;
		struct nt_detect *detect = start(&sim);

		sim.rank[SLOW].noise = 0.03 * noisy;
		assert_int_equal(sim_run(&sim, detect, 10 * LEARNED), 10 * LEARNED + 1);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/*
 * It is 1.3 % slower than the others by nature, which costs nothing, and its past is one window short. The
 * sum of its level began long before the fault.
 */
static void a_fault_before_the_past_is_complete_is_a_change(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim);

	(void)state;
	sim.jitter = 0.0005;
	for (uint32_t i = 0; i < RANKS; i++)
		sim.rank[i].device = 70.0 * SIM_MS * (i == SLOW ? 1.013 : 1.0);
	sim_pass(&sim, detect, NT_PAST_WINDOWS - 1);
	sim.rank[SLOW].device *= 1.4;
	assert_in_range(sim_run(&sim, detect, 14), 5, 9);
	assert_names_rank(sim_firing(detect, 0), SLOW);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Longer sequences, of which each rank has another part: who had most work now has least. */
static void a_phase_in_which_the_ranks_change_places_accuses_nobody(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim);

	(void)state;
	sim_pass(&sim, detect, LEARNED);
	for (uint32_t i = 0; i < RANKS; i++)
		sim.rank[i].device = 105.0 * SIM_MS * (1.0 + 0.015 * (RANKS - 1 - i));
	for (uint32_t i = 0; i < 4 * LEARNED; i++) {
		sim_pass(&sim, detect, 1);
		assert_accuses_nobody(detect);
	}
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slowing_rank_is_named_before_it_leaves_their_spread),
		cmocka_unit_test(ranks_that_differ_by_nature_are_not_named),
		cmocka_unit_test(a_fault_before_the_past_is_complete_is_a_change),
		cmocka_unit_test(a_phase_in_which_the_ranks_change_places_accuses_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
