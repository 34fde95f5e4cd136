/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs that stand still: who is named as the one that holds them up. */
#include <signal.h>

#include "tests/unit/detect/hang_job.h"

static void a_rank_that_never_enters_is_the_laggard(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 3);
	job->sim.rank[3].behind = 1;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	assert_names_rank(sim_firing(job->detect, 0), 3);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HANG);
	assert_int_equal(sim_firing(job->detect, 0)->severity, NT_SEVERITY_CRITICAL);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "laggard");
	assert_null(sim_firing(job->detect, 1));
}

/* The first that waits is held up by the last rank, another one by a rank before that. */
static void laggards_of_several_communicators_are_told_in_their_order(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	struct sim sim;

	(void)state;
	sim_init_ranks(&sim, 4, 17);
	sim.blocking = true;
	for (uint32_t i = 0; i < 2; i++) {
		struct sim_comm *comm =
			sim_comm_add(&sim, 20 + i, NT_FRAME_SYNCHRONISING, 2, 25e6, SIM_MS);

		comm->member[comm->members++] = i ? 1 : 0;
		comm->member[comm->members++] = i ? 2 : 3;
	}
	sim_pass(&sim, detect, 30);
	for (uint32_t i = 0; i < 2; i++)
		sim.comm[i].last++;
	for (uint32_t i = 0; i < 4; i++) {
		struct sim_rank *rank = &sim.rank[i];

		rank->stuck = true;
		rank->behind = i % 2;
		rank->in_call = i % 2 == 0;
		rank->inside_comm = i ? 21 : 20;
		rank->inside_number = sim.comm[i / 2].last;
		rank->inside_kind = NT_FRAME_SYNCHRONISING;
		rank->inside_op = 1;
		rank->inside_since = sim.now_ns;
	}
	assert_in_range(sim_run(&sim, detect, 60), 30, 34);
	finding = sim_firing(detect, 0);
	assert_int_equal(finding->class, NT_CLASS_HANG);
	assert_int_equal(finding->culprits, 2);
	assert_int_equal(finding->culprit[0].rank, 1);
	assert_int_equal(finding->culprit[1].rank, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_hang_that_ends_is_resolved_at_once(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 3);
	job->sim.rank[3].behind = 1;
	sim_pass(&job->sim, job->detect, 40);
	assert_non_null(sim_firing(job->detect, 0));
	sim_unstick(&job->sim);
	sim_pass(&job->sim, job->detect, 3);
	assert_int_equal(sim_open(job->detect), 0);
}

static void fifteen_seconds_of_waiting_are_no_hang_where_steps_take_ten(void **state)
{
	struct sim sim;
	struct nt_detect *detect = sim_detect();

	(void)state;
	sim_init(&sim, 8, 12);
	sim.blocking = true;
	sim.steps = 1;
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].device = 9.9 * SIM_SECOND;
	sim_pass(&sim, detect, 30);
	sim_stick(&sim, DATA, 3);
	sim.rank[3].behind = 1;
	assert_int_equal(sim_run(&sim, detect, 190), 191);
	assert_in_range(sim_run(&sim, detect, 40), 8, 15);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void nobody_inside_anything_is_a_pause_and_silent(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].stuck = true;
	assert_int_equal(sim_run(&job->sim, job->detect, 3400), 3401);
	/* Half an hour is too long even for that. */
	assert_in_range(sim_run(&job->sim, job->detect, 400), 190, 210);
	assert_int_equal(sim_firing(job->detect, 0)->culprits, 0);
}

static void a_checkpoint_of_all_is_silent(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++) {
		job->sim.rank[i].stuck = true;
		job->sim.rank[i].write = 100 << 20;
	}
	assert_int_equal(sim_run(&job->sim, job->detect, 120), 121);
	sim_unstick(&job->sim);
	job->sim.extra_ns = 60ull * SIM_SECOND;
	assert_int_equal(sim_run(&job->sim, job->detect, 200), 201);
	assert_int_equal(sim_open(job->detect), 0);
}

/* A slow disk: most looks find the thread between two of its writes. */
static void a_checkpoint_that_trickles_is_a_note_and_no_hang(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	sim_stick(&job->sim, DATA, 0);
	job->sim.rank[0].behind = 1;
	for (int i = 0; i < 120; i++) {
		job->sim.rank[0].write = i % 6 == 0 ? 1 << 20 : 0;
		sim_pass(&job->sim, job->detect, 1);
	}
	finding = sim_firing(job->detect, 0);
	assert_names_rank(finding, 0);
	assert_int_equal(finding->class, NT_CLASS_HOST);
	assert_string_equal(finding->cause, "slow host");
	/* And no more than that. */
	job->sim.rank[0].write = 0;
	sim_pass(&job->sim, job->detect, 4);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HOST);
	sim_pass(&job->sim, job->detect, 4);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HANG);
}

static void a_checkpoint_on_one_rank_is_a_note_and_no_hang(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	sim_stick(&job->sim, DATA, 0);
	job->sim.rank[0].behind = 1;
	job->sim.rank[0].write = 100 << 20;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	finding = sim_firing(job->detect, 0);
	assert_names_rank(finding, 0);
	assert_int_equal(finding->class, NT_CLASS_HOST);
	assert_int_equal(finding->severity, NT_SEVERITY_INFO);
	assert_string_equal(finding->cause, "slow host");
	sim_pass(&job->sim, job->detect, 80);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HOST);
	job->sim.rank[0].write = 0;
	sim_unstick(&job->sim);
	sim_pass(&job->sim, job->detect, 100);
	assert_int_equal(sim_open(job->detect), 0);
}

static void a_rank_that_works_for_more_than_ten_minutes_hangs_the_job(void **state)
{
	struct job *job = *state;
	uint64_t id;

	sim_stick(&job->sim, DATA, 0);
	job->sim.rank[0].behind = 1;
	job->sim.rank[0].busy = 0.9;
	sim_pass(&job->sim, job->detect, 1190);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HOST);
	id = sim_firing(job->detect, 0)->id;
	sim_pass(&job->sim, job->detect, 20);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HANG);
	assert_int_equal(sim_firing(job->detect, 0)->severity, NT_SEVERITY_CRITICAL);
	assert_true(sim_firing(job->detect, 0)->id == id);
}

static void most_ranks_at_work_while_one_waits_is_a_pause(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 1; i < 8; i++) {
		job->sim.rank[i].stuck = true;
		job->sim.rank[i].state = 'D';
		job->sim.rank[i].behind = 1;
	}
	job->sim.rank[0].stuck = job->sim.rank[0].in_call = true;
	job->sim.rank[0].inside_comm = DATA;
	job->sim.rank[0].inside_kind = NT_FRAME_SYNCHRONISING;
	job->sim.rank[0].inside_number = job->sim.comm[0].last;
	job->sim.rank[0].inside_since = job->sim.now_ns;
	assert_int_equal(sim_run(&job->sim, job->detect, 200), 201);
}

static void all_in_and_none_out_is_the_network(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	sim_stick(&job->sim, DATA, UINT32_MAX);
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	finding = sim_firing(job->detect, 0);
	assert_int_equal(finding->class, NT_CLASS_HANG);
	assert_string_equal(finding->cause, "network");
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_COMMUNICATOR);
	assert_true(finding->culprit[0].comm == DATA);
	assert_int_equal(finding->culprit[0].rank_count, 8);
}

static void some_came_out_and_one_did_not(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, UINT32_MAX);
	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].in_call = i == 6;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	assert_names_rank(sim_firing(job->detect, 0), 6);
	assert_string_equal(sim_firing(job->detect, 0)->cause, "device or link");
}

static void who_waits_in_another_collective_is_a_victim(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	/* Two tensor pairs {0,1} {2,3} and two data pairs {0,2} {1,3}; rank 3 never comes. */
	sim_init_ranks(&sim, 4, 13);
	sim.blocking = true;
	for (uint32_t i = 0; i < 4; i++) {
		struct sim_comm *comm = sim_comm_add(&sim, 100 + i, NT_FRAME_SYNCHRONISING,
						     i < 2 ? 8 : 1, i < 2 ? 1e6 : 1e8, 1e5);

		comm->members = 2;
		comm->member[0] = i < 2 ? 2 * i : i - 2;
		comm->member[1] = i < 2 ? 2 * i + 1 : i;
	}
	sim_pass(&sim, detect, 30);
	sim_stick(&sim, 101, 3);
	sim.rank[0].inside_comm = 102;
	sim.rank[0].inside_number = sim.comm[2].last + 1;
	sim.rank[1].inside_comm = 103;
	sim.rank[1].inside_number = sim.comm[3].last + 1;
	sim.rank[2].inside_comm = 101;
	sim.rank[2].inside_number = sim.comm[1].last + 1;
	assert_in_range(sim_run(&sim, detect, 60), 30, 34);
	assert_names_rank(sim_firing(detect, 0), 3);
	assert_string_equal(sim_firing(detect, 0)->cause, "laggard");
	nt_detect_free(detect);
	sim_free(&sim);
}

static void at_t1_a_synchronising_thread_is_inside_what_it_enqueued_last(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 4);
	for (uint32_t i = 0; i < 8; i++) {
		job->sim.rank[i].synchronising = job->sim.rank[i].in_call;
		job->sim.rank[i].in_call = false;
		job->sim.rank[i].tier = NT_FRAME_T1;
	}
	job->sim.rank[4].behind = 1;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	assert_names_rank(sim_firing(job->detect, 0), 4);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HANG);
}

static void at_t1_all_inside_is_a_hang_of_unknown_cause(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, UINT32_MAX);
	for (uint32_t i = 0; i < 8; i++) {
		job->sim.rank[i].synchronising = true;
		job->sim.rank[i].in_call = false;
		job->sim.rank[i].tier = NT_FRAME_T1;
	}
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_HANG);
	assert_null(sim_firing(job->detect, 0)->cause);
	assert_int_equal(sim_firing(job->detect, 0)->culprits, 0);
}

static void a_laggard_with_numbers_of_another_epoch_is_still_outside(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 5);
	job->sim.rank[5].epoch = 9;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 30, 34);
	assert_names_rank(sim_firing(job->detect, 0), 5);
}

/* As it is outside, and its number is not known, who waits in another epoch would take it for late. */
static void who_has_left_is_not_late_for_one_of_another_epoch(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 5);
	job->sim.rank[5].behind = 1;
	job->sim.rank[6].in_call = false;
	job->sim.rank[0].epoch = 9;
	job->sim.rank[0].inside_since -= SIM_SECOND;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 28, 34);
	assert_names_rank(sim_firing(job->detect, 0), 5);
	assert_int_equal(sim_firing(job->detect, 0)->culprits, 1);
}

/* ---- sampled jobs --------------------------------------------------------------------------- */

/* An agent that came too late knows of a communicator no more than that one process has it. */
static void bind_nobody(struct sim *sim, uint32_t ranks)
{
	sim_init_ranks(sim, ranks, 19);
	sim->blocking = true;
	for (uint32_t i = 0; i < ranks; i++) {
		struct sim_comm *comm =
			sim_comm_add(sim, 900 + i, NT_FRAME_SYNCHRONISING, 2, 25e6, SIM_MS);

		comm->member[comm->members++] = i;
	}
}

/* All wait there from now on, except the first few. */
static void wait_unbound(struct sim *sim, uint32_t ranks, uint32_t outside)
{
	for (uint32_t i = 0; i < ranks; i++) {
		struct sim_rank *rank = &sim->rank[i];

		rank->stuck = true;
		rank->in_call = i >= outside;
		rank->inside_comm = 900 + i;
		rank->inside_number = sim->comm[i].last + 1;
		rank->inside_kind = NT_FRAME_SYNCHRONISING;
		rank->inside_op = 1;
		rank->inside_since = sim->now_ns;
	}
}

static void
who_is_outside_while_all_others_wait_is_the_laggard_though_no_members_are_known(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	bind_nobody(&sim, 8);
	sim_pass(&sim, detect, 30);
	wait_unbound(&sim, 8, 1);
	assert_in_range(sim_run(&sim, detect, 60), 30, 34);
	assert_names_rank(sim_firing(detect, 0), 0);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_HANG);
	assert_string_equal(sim_firing(detect, 0)->cause, "laggard");
	nt_detect_free(detect);
	sim_free(&sim);
}

static void who_is_out_of_sight_is_no_laggard_where_no_members_are_known(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	bind_nobody(&sim, 8);
	sim_pass(&sim, detect, 30);
	wait_unbound(&sim, 8, 2);
	sim.rank[0].sampled = sim.rank[0].lost_sight = true;
	assert_in_range(sim_run(&sim, detect, 120), 30, 70);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_HANG);
	assert_int_equal(sim_firing(detect, 0)->culprits, 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void all_in_communicators_of_unknown_members_is_a_hang_that_names_nobody(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	bind_nobody(&sim, 8);
	sim_pass(&sim, detect, 30);
	wait_unbound(&sim, 8, 0);
	assert_in_range(sim_run(&sim, detect, 120), 30, 70);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_HANG);
	assert_int_equal(sim_firing(detect, 0)->culprits, 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void nobody_is_outside_of_unknown_members_while_one_goes_on(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	bind_nobody(&sim, 8);
	sim_pass(&sim, detect, 30);
	wait_unbound(&sim, 8, 1);
	sim.rank[0].stuck = false;
	assert_int_equal(sim_run(&sim, detect, 120), 121);
	/* And most of them outside is a pause. */
	wait_unbound(&sim, 8, 5);
	assert_int_equal(sim_run(&sim, detect, 120), 121);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* What the driver said of its GPU just before is the cause. */
static void a_rank_that_is_gone_after_an_error_of_its_gpu_has_that_cause(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	job->sim.rank[1].xid = 79;
	sim_pass(&job->sim, job->detect, 1);
	job->sim.rank[1].xid = 0;
	sim_stick(&job->sim, DATA, 1);
	job->sim.rank[1].ended = true;
	job->sim.rank[1].ended_ns = job->sim.now_ns;
	job->sim.rank[1].exit_signal = SIGABRT;
	assert_in_range(sim_run(&job->sim, job->detect, 40), 10, 12);
	finding = sim_firing(job->detect, 0);
	assert_names_rank(finding, 1);
	assert_int_equal(finding->class, NT_CLASS_MISSING);
	assert_string_equal(finding->cause, "gpu error");
	assert_string_equal(finding->evidence[2].what, "xid of the gpu's last error");
	assert_true(finding->evidence[2].value == 79.0);
}

static void a_rank_that_is_gone_while_others_wait_is_missing(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, 1);
	job->sim.rank[1].ended = true;
	job->sim.rank[1].ended_ns = job->sim.now_ns;
	assert_in_range(sim_run(&job->sim, job->detect, 40), 10, 12);
	assert_names_rank(sim_firing(job->detect, 0), 1);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_MISSING);
	/* And it stays the only finding: that the others hang is its doing. */
	sim_pass(&job->sim, job->detect, 100);
	assert_null(sim_firing(job->detect, 1));
}

static void a_rank_that_said_goodbye_is_not_missing(void **state)
{
	struct job *job = *state;

	job->sim.rank[1].ended = job->sim.rank[1].finalized = true;
	job->sim.rank[1].ended_ns = job->sim.now_ns;
	assert_int_equal(sim_run(&job->sim, job->detect, 100), 101);
}

static void ranks_that_go_one_after_the_other_end_the_attempt(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++) {
		job->sim.rank[i].ended = true;
		job->sim.rank[i].ended_ns = job->sim.now_ns;
		for (uint32_t j = i + 1; j < 8; j++)
			job->sim.rank[j].stuck = true;
		assert_int_equal(sim_run(&job->sim, job->detect, 12), 13);
	}
	assert_int_equal(sim_open(job->detect), 0);
}

static void the_end_of_the_attempt_resolves_what_is_open(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding = NULL;
	size_t findings = 0;

	job->sim.rank[4].device *= 2.0;
	sim_pass(&job->sim, job->detect, 20);
	assert_names_rank(sim_firing(job->detect, 0), 4);
	for (uint32_t i = 0; i < 8; i++) {
		job->sim.rank[i].ended = job->sim.rank[i].finalized = true;
		job->sim.rank[i].ended_ns = job->sim.now_ns;
	}
	assert_int_equal(nt_detect_step(job->detect, sim_next(&job->sim), &finding, &findings), 0);
	assert_int_equal(findings, 1);
	assert_int_equal(finding[0].state, NT_INCIDENT_RESOLVED);
	assert_names_rank(&finding[0], 4);
	assert_int_equal(sim_open(job->detect), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_rank_that_never_enters_is_the_laggard),
		CASE(a_hang_that_ends_is_resolved_at_once),
		cmocka_unit_test(laggards_of_several_communicators_are_told_in_their_order),
		CASE(fifteen_seconds_of_waiting_are_no_hang_where_steps_take_ten),
		CASE(nobody_inside_anything_is_a_pause_and_silent),
		CASE(a_checkpoint_of_all_is_silent),
		CASE(a_checkpoint_on_one_rank_is_a_note_and_no_hang),
		CASE(a_checkpoint_that_trickles_is_a_note_and_no_hang),
		CASE(a_rank_that_works_for_more_than_ten_minutes_hangs_the_job),
		CASE(most_ranks_at_work_while_one_waits_is_a_pause),
		CASE(all_in_and_none_out_is_the_network),
		CASE(some_came_out_and_one_did_not),
		CASE(who_waits_in_another_collective_is_a_victim),
		CASE(at_t1_a_synchronising_thread_is_inside_what_it_enqueued_last),
		CASE(at_t1_all_inside_is_a_hang_of_unknown_cause),
		CASE(who_has_left_is_not_late_for_one_of_another_epoch),
		CASE(a_laggard_with_numbers_of_another_epoch_is_still_outside),
		cmocka_unit_test(
			who_is_outside_while_all_others_wait_is_the_laggard_though_no_members_are_known),
		cmocka_unit_test(
			all_in_communicators_of_unknown_members_is_a_hang_that_names_nobody),
		cmocka_unit_test(who_is_out_of_sight_is_no_laggard_where_no_members_are_known),
		cmocka_unit_test(nobody_is_outside_of_unknown_members_while_one_goes_on),
		CASE(a_rank_that_is_gone_while_others_wait_is_missing),
		CASE(a_rank_that_is_gone_after_an_error_of_its_gpu_has_that_cause),
		CASE(a_rank_that_said_goodbye_is_not_missing),
		CASE(ranks_that_go_one_after_the_other_end_the_attempt),
		CASE(the_end_of_the_attempt_resolves_what_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
