/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that hold different things for a step. */
#include "tests/unit/detect/detect_frames.h"

enum {
	FRAMES = 150,
};

static void begin(struct sim *sim, uint32_t ranks, uint64_t seed)
{
	sim_init(sim, ranks, seed);
	sim->jitter = 0.02;
}

/* The only culprit of the only incident; fails where there is another. */
static void assert_named(const struct nt_detect *detect, uint32_t rank)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;

	nt_detect_open(detect, &finding, &findings);
	assert_int_equal(findings, 1);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit->kind, NT_CULPRIT_RANK);
	assert_int_equal(finding->culprit->rank, rank);
	assert_true(finding->slowdown > 1.2 && finding->slowdown < 1.6);
}

static void a_rank_with_other_steps_is_not_accused(void **state)
{
	static const double parts[] = {0.5, 2.0, 4.0, 1.0 / 3.0};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		for (uint32_t ranks = 2; ranks <= 8; ranks += 2) {
			struct nt_detect *detect = sim_detect();
			struct sim sim;

			begin(&sim, ranks, 301 + i);
			sim.rank[1].parts = parts[i];
			assert_int_equal(sim_run(&sim, detect, FRAMES), FRAMES + 1);
			sim_free(&sim);
			nt_detect_free(detect);
		}
	}
}

static void a_rank_that_changes_its_mind_is_not_accused(void **state)
{
	static const double parts[] = {0.5, 2.0, 4.0};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		begin(&sim, 8, 311 + i);
		sim.rank[5].parts = parts[i];
		assert_int_equal(sim_run(&sim, detect, 50), 51);
		sim.rank[5].parts = 1.0;
		assert_int_equal(sim_run(&sim, detect, 50), 51);
		sim.rank[5].parts = parts[i];
		assert_int_equal(sim_run(&sim, detect, 50), 51);
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

/* One after the other, as the agents find it. */
static void all_ranks_may_change_their_minds(void **state)
{
	static const double parts[] = {0.5, 2.0};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		for (uint32_t apart = 0; apart < 4; apart++) {
			struct nt_detect *detect = sim_detect();
			struct sim sim;

			begin(&sim, 8, 321 + apart);
			assert_int_equal(sim_run(&sim, detect, 40), 41);
			for (uint32_t j = 0; j < 8; j++) {
				sim.rank[j].parts = parts[i];
				if (apart)
					assert_int_equal(sim_run(&sim, detect, apart), apart + 1);
			}
			assert_int_equal(sim_run(&sim, detect, 60), 61);
			sim_free(&sim);
			nt_detect_free(detect);
		}
	}
}

static void a_slow_rank_is_named_whatever_the_steps(void **state)
{
	(void)state;
	for (uint32_t culprit = 2; culprit <= 3; culprit++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		begin(&sim, 8, 331);
		sim.rank[3].parts = 0.5;
		assert_int_equal(sim_run(&sim, detect, 50), 51);
		sim.rank[culprit].device *= 1.5;
		assert_in_range(sim_run(&sim, detect, 30), 1, 12);
		sim_pass(&sim, detect, 20);
		assert_named(detect, culprit);
		/* A change of mind in the middle of it. */
		sim.rank[3].parts = 1.0;
		sim_pass(&sim, detect, 20);
		assert_named(detect, culprit);
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

static void a_slow_rank_stays_named_while_all_change_their_minds(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	begin(&sim, 8, 341);
	assert_int_equal(sim_run(&sim, detect, 50), 51);
	sim.rank[6].device *= 1.5;
	sim_pass(&sim, detect, 30);
	assert_named(detect, 6);
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].parts = 0.5;
	sim_pass(&sim, detect, 40);
	assert_named(detect, 6);
	sim_free(&sim);
	nt_detect_free(detect);
}

static void longer_steps_of_as_many_calls_are_slow_steps(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	struct sim sim;

	(void)state;
	begin(&sim, 8, 351);
	assert_int_equal(sim_run(&sim, detect, 50), 51);
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].device *= 2.0;
	assert_in_range(sim_run(&sim, detect, 50), 1, 30);
	nt_detect_open(detect, &finding, &findings);
	assert_int_equal(findings, 1);
	assert_int_equal(finding->class, NT_CLASS_JOB_WIDE);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* An agent that begins anew takes a part of a step for one at first; its ranks are not the job. */
static void who_learns_the_steps_anew_takes_nobody_elses_past(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	/* Four stages of two ranks: each has one peer, so that only the past tells who became slow. */
	sim_init_layout(&sim, 1, 4, 2, 361);
	sim.jitter = 0.02;
	assert_int_equal(sim_run(&sim, detect, 40), 41);
	sim.rank[4].parts = sim.rank[5].parts = 4.0;
	assert_int_equal(sim_run(&sim, detect, 5), 6);
	sim.rank[2].device *= 1.5;
	assert_in_range(sim_run(&sim, detect, 20), 1, 10);
	assert_named(detect, 2);
	sim_free(&sim);
	nt_detect_free(detect);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_with_other_steps_is_not_accused),
		cmocka_unit_test(a_rank_that_changes_its_mind_is_not_accused),
		cmocka_unit_test(all_ranks_may_change_their_minds),
		cmocka_unit_test(a_slow_rank_is_named_whatever_the_steps),
		cmocka_unit_test(a_slow_rank_stays_named_while_all_change_their_minds),
		cmocka_unit_test(longer_steps_of_as_many_calls_are_slow_steps),
		cmocka_unit_test(who_learns_the_steps_anew_takes_nobody_elses_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
