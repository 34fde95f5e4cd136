/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs that stand still, and whose ranks are observed a part of the time. */
#include "tests/unit/detect/hang_job.h"

/* From here on nobody knows where they are, but of the first few. */
static void lose_sight(struct sim *sim, uint32_t from)
{
	for (uint32_t i = from; i < sim->ranks; i++) {
		struct sim_rank *rank = &sim->rank[i];

		rank->in_call = rank->synchronising = false;
		rank->sampled = rank->lost_sight = true;
	}
}

/* Each slice counts anew, and nothing is called. Answers as sim_run(). */
static uint32_t run_slices(struct job *job, uint32_t frames)
{
	for (uint32_t i = 1; i <= frames; i++) {
		if (i % 4 == 0)
			for (uint32_t j = 0; j < job->sim.ranks; j++)
				job->sim.rank[j].epoch += 1 + j;
		if (sim_run(&job->sim, job->detect, 1) == 1)
			return i;
	}
	return frames + 1;
}

static bool says_lost_sight(const struct nt_finding *finding)
{
	for (size_t i = 0; i < finding->evidences; i++)
		if (strncmp(finding->evidence[i].what, "ranks whose calls are seen", 26) == 0)
			return finding->evidence[i].value > 0.0;
	return false;
}

static void a_sampled_job_that_hangs_is_told_and_nobody_named(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 3);
	job->sim.rank[3].behind = 1;
	lose_sight(&job->sim, 0);
	assert_in_range(run_slices(job, 200), 120, 126);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HANG);
	assert_int_equal(sim_firing(job->detect, 0)->culprits, 0);
	assert_true(says_lost_sight(sim_firing(job->detect, 0)));
	/* And it stays told, once. */
	sim_pass(&job->sim, job->detect, 40);
	assert_int_equal(sim_open(job->detect), 1);
	sim_unstick(&job->sim);
	sim_pass(&job->sim, job->detect, 3);
	assert_int_equal(sim_open(job->detect), 0);
}

static void who_may_be_inside_is_not_late(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 3);
	lose_sight(&job->sim, 2);
	for (uint32_t i = 2; i < 8; i++)
		job->sim.rank[i].behind = 1;
	assert_in_range(run_slices(job, 100), 30, 64);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HANG);
	assert_int_equal(sim_firing(job->detect, 0)->culprits, 0);
	assert_true(says_lost_sight(sim_firing(job->detect, 0)));
}

/* One of them is known not to have entered. */
static void who_is_seen_outside_is_named_though_others_are_out_of_sight(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 3);
	job->sim.rank[3].behind = 1;
	lose_sight(&job->sim, 6);
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	assert_names_rank(sim_firing(job->detect, 0), 3);
	assert_int_equal(sim_firing(job->detect, 0)->culprits, 1);
}

static void a_sampled_job_that_goes_on_or_writes_is_silent(void **state)
{
	struct job *job = *state;

	lose_sight(&job->sim, 0);
	assert_int_equal(sim_run(&job->sim, job->detect, 400), 401);
	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].stuck = true;
	/* A checkpoint that one of them writes. */
	job->sim.rank[0].write = 1 << 20;
	assert_int_equal(run_slices(job, 400), 401);
	sim_unstick(&job->sim);
	assert_int_equal(sim_run(&job->sim, job->detect, 50), 51);
	assert_int_equal(sim_open(job->detect), 0);
}

/* Its windows reach from slice to slice: what it said is where it is until the next one. */
static void what_a_sampled_rank_said_holds_for_longer(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 3);
	job->sim.rank[3].behind = 1;
	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].sampled = true;
	for (int i = 0; i < 60; i++) {
		job->sim.rank[3].absent = i % 12 != 0;
		sim_pass(&job->sim, job->detect, 1);
		if (i > 33)
			assert_names_rank(sim_firing(job->detect, 0), 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_sampled_job_that_hangs_is_told_and_nobody_named),
		CASE(who_may_be_inside_is_not_late),
		CASE(who_is_seen_outside_is_named_though_others_are_out_of_sight),
		CASE(a_sampled_job_that_goes_on_or_writes_is_silent),
		CASE(what_a_sampled_rank_said_holds_for_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
