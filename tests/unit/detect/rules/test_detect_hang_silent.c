/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs without progress, some or all ranks of which are stale. */
#include "tests/unit/detect/hang_job.h"

static void a_silent_agents_rank_is_unobserved_and_not_accused(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 2);
	job->sim.rank[2].behind = 1;
	job->sim.rank[2].silent = true;
	sim_pass(&job->sim, job->detect, 80);
	for (size_t i = 0; sim_firing(job->detect, i); i++)
		assert_int_equal(sim_firing(job->detect, i)->culprits, 0);
}

static void a_silent_agent_in_a_running_job_is_nothing(void **state)
{
	struct job *job = *state;

	job->sim.rank[2].silent = true;
	assert_int_equal(sim_run(&job->sim, job->detect, 100), 101);
}

static void silence_all(struct job *job, bool silent)
{
	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].silent = silent;
}

static void a_job_that_nobody_hears_of_is_no_pause(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].stuck = true;
	silence_all(job, true);
	assert_int_equal(sim_run(&job->sim, job->detect, 4000), 4001);
	/* It stands, as is seen now: half an hour of that is too long, not the time before. */
	silence_all(job, false);
	assert_int_equal(sim_run(&job->sim, job->detect, 3400), 3401);
	assert_in_range(sim_run(&job->sim, job->detect, 400), 190, 210);
}

static void who_has_ended_speaks_for_nobody(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].stuck = true;
	silence_all(job, true);
	job->sim.rank[0].silent = false;
	job->sim.rank[0].ended = true;
	job->sim.rank[0].ended_ns = job->sim.now_ns;
	assert_int_equal(sim_run(&job->sim, job->detect, 4000), 4001);
}

/* What lay before the first word was no pause either, to be patient for ten times as long. */
static void a_job_that_nobody_heard_of_at_first_may_pause_like_any_other(void **state)
{
	struct job job = {0};

	(void)state;
	sim_init(&job.sim, 8, 93);
	job.detect = sim_detect();
	silence_all(&job, true);
	sim_pass(&job.sim, job.detect, 20);
	silence_all(&job, false);
	sim_pass(&job.sim, job.detect, 60);
	for (uint32_t i = 0; i < 8; i++)
		job.sim.rank[i].stuck = true;
	assert_in_range(sim_run(&job.sim, job.detect, 4000), 3500, 3700);
	nt_detect_free(job.detect);
	sim_free(&job.sim);
}

/* A job that went on without one of its ranks for long does not wait for it now. */
static void who_went_long_ago_explains_no_hang(void **state)
{
	(void)state;
	for (int is_new = 0; is_new < 2; is_new++) {
		struct nt_detect *detect = sim_detect();
		bool told = false;
		struct sim sim;

		sim_init_ranks(&sim, 4, 17);
		sim.blocking = true;
		for (uint32_t i = 0; i < 2; i++) {
			struct sim_comm *comm =
				sim_comm_add(&sim, 100 + i, NT_FRAME_SYNCHRONISING, 4, 1e8, 1e5);

			comm->members = 2;
			comm->member[0] = 2 * i;
			comm->member[1] = 2 * i + 1;
		}
		sim_pass(&sim, detect, 30);
		if (!is_new) {
			sim.rank[3].ended = true;
			sim.rank[3].ended_ns = sim.now_ns;
			sim_pass(&sim, detect, 100);
		}
		sim_stick(&sim, 100, UINT32_MAX);
		if (is_new) {
			sim.rank[3].ended = true;
			sim.rank[3].ended_ns = sim.now_ns;
		}
		sim_pass(&sim, detect, 40);
		for (size_t i = 0; sim_firing(detect, i); i++)
			told |= sim_firing(detect, i)->class == NT_CLASS_HANG;
		assert_int_equal(told, !is_new);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void a_hang_that_nobody_hears_of_any_more_is_not_over(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;
	uint64_t id;

	sim_stick(&job->sim, DATA, 5);
	job->sim.rank[5].behind = 1;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	id = sim_firing(job->detect, 0)->id;
	silence_all(job, true);
	job->sim.completeness = 0.0;
	sim_pass(&job->sim, job->detect, 100);
	finding = sim_firing(job->detect, 0);
	assert_names_rank(finding, 5);
	assert_true(finding->id == id);
	assert_true(finding->completeness < 0.3);
	silence_all(job, false);
	job->sim.completeness = 1.0;
	sim_pass(&job->sim, job->detect, 20);
	assert_names_rank(sim_firing(job->detect, 0), 5);
	assert_true(sim_firing(job->detect, 0)->id == id);
	sim_unstick(&job->sim);
	sim_pass(&job->sim, job->detect, 5);
	assert_null(sim_firing(job->detect, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_silent_agents_rank_is_unobserved_and_not_accused),
		CASE(a_silent_agent_in_a_running_job_is_nothing),
		CASE(a_job_that_nobody_hears_of_is_no_pause),
		CASE(who_has_ended_speaks_for_nobody),
		cmocka_unit_test(a_job_that_nobody_heard_of_at_first_may_pause_like_any_other),
		CASE(who_went_long_ago_explains_no_hang),
		CASE(a_hang_that_nobody_hears_of_any_more_is_not_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
