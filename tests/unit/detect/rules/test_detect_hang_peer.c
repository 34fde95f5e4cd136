/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs that stand still in sends, receives and waits, and processes that are stopped. */
#include "tests/unit/detect/hang_job.h"

/* All ranks but one wait for a peer, in a send, or for calls that are not known. */
static void wait_for_peers(struct sim *sim, uint32_t except)
{
	sim_stick(sim, DATA, except);
	for (uint32_t i = 0; i < sim->ranks; i++) {
		struct sim_rank *rank = &sim->rank[i];

		if (i == except)
			continue;
		rank->inside_kind = i % 2 ? NT_FRAME_OTHER : NT_FRAME_POINT_TO_POINT;
		rank->inside_comm = i % 2 ? 0 : DATA;
		rank->inside_number = 0;
	}
}

/* The first value of an evidence row, or -1. */
static double evidence_of(const struct nt_finding *finding, const char *what)
{
	for (size_t i = 0; i < finding->evidences; i++)
		if (strcmp(finding->evidence[i].what, what) == 0)
			return finding->evidence[i].value;
	return -1;
}

static void a_rank_outside_all_calls_holds_up_those_that_wait_for_peers(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	wait_for_peers(&job->sim, 3);
	job->sim.rank[3].state = 'S';
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 40);
	finding = sim_firing(job->detect, 0);
	assert_names_rank(finding, 3);
	assert_int_equal(finding->class, NT_CLASS_HANG);
	assert_true(evidence_of(finding, "time inside a send, receive or wait") >= 15);
	assert_true(evidence_of(finding, "ranks named, whose processes sleep") == 1);
}

static void a_rank_that_works_is_noted_and_not_accused(void **state)
{
	struct job *job = *state;

	wait_for_peers(&job->sim, 3);
	job->sim.rank[3].busy = 1;
	job->sim.rank[3].state = 'R';
	sim_pass(&job->sim, job->detect, 60);
	assert_int_equal(sim_firing(job->detect, 0)->severity, NT_SEVERITY_INFO);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HOST);
}

static void nobody_waits_while_any_rank_makes_steps(void **state)
{
	struct job *job = *state;

	wait_for_peers(&job->sim, 3);
	for (uint32_t i = 4; i < 8; i++)
		job->sim.rank[i].stuck = job->sim.rank[i].in_call = false;
	assert_int_equal(sim_run(&job->sim, job->detect, 60), 61);
}

static void a_stopped_process_is_the_culprit_inside_a_call_too(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	wait_for_peers(&job->sim, job->sim.ranks);
	job->sim.rank[5].state = 'T';
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 40);
	finding = sim_firing(job->detect, 0);
	assert_names_rank(finding, 5);
	assert_true(evidence_of(finding, "ranks named, whose processes are stopped") == 1);
	job->sim.rank[5].state = 'S';
	sim_unstick(&job->sim);
	sim_pass(&job->sim, job->detect, 3);
	assert_int_equal(sim_open(job->detect), 0);
}

static void a_stopped_process_is_the_culprit_inside_the_collective_of_all(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, job->sim.ranks);
	job->sim.rank[2].state = 'T';
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 40);
	assert_names_rank(sim_firing(job->detect, 0), 2);
}

static void a_rank_in_a_debugger_is_not_accused_for_that(void **state)
{
	struct job *job = *state;

	wait_for_peers(&job->sim, 3);
	sim_pass(&job->sim, job->detect, 40);
	job->sim.rank[3].state = job->sim.rank[5].state = 't';
	sim_pass(&job->sim, job->detect, 20);
	assert_names_rank(sim_firing(job->detect, 0), 3);
	assert_true(evidence_of(sim_firing(job->detect, 0),
				"ranks named, whose processes are stopped") < 0);
}

static void a_job_that_is_suspended_as_a_whole_is_no_hang(void **state)
{
	struct job *job = *state;

	wait_for_peers(&job->sim, 3);
	for (uint32_t i = 0; i < job->sim.ranks; i++)
		job->sim.rank[i].state = 'T';
	sim_pass(&job->sim, job->detect, 120);
	assert_null(sim_firing(job->detect, 0));
}

static void all_that_wait_for_peers_hang_without_a_culprit(void **state)
{
	struct job *job = *state;

	wait_for_peers(&job->sim, job->sim.ranks);
	assert_in_range(sim_run(&job->sim, job->detect, 120), 30, 70);
	assert_int_equal(sim_firing(job->detect, 0)->culprits, 0);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HANG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_rank_outside_all_calls_holds_up_those_that_wait_for_peers),
		CASE(a_rank_that_works_is_noted_and_not_accused),
		CASE(nobody_waits_while_any_rank_makes_steps),
		CASE(a_stopped_process_is_the_culprit_inside_a_call_too),
		CASE(a_stopped_process_is_the_culprit_inside_the_collective_of_all),
		CASE(a_rank_in_a_debugger_is_not_accused_for_that),
		CASE(a_job_that_is_suspended_as_a_whole_is_no_hang),
		CASE(all_that_wait_for_peers_hang_without_a_culprit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
