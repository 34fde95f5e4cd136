/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of the step, each alone, at borders and on values that can be worked out by hand. */
#include "tests/unit/detect/detect_pair.h"

#include "detect/baseline/communicator_learn.h"
#include "detect/baseline/peer_deviation.h"
#include "detect/baseline/peer_deviation_round.h"

/* ---- how ranks stand ------------------------------------------------------------------------- */

static void step_on(struct nt_detect *detect)
{
	const struct nt_frame frame = {.start_ns = detect->end_ns,
				       .end_ns = detect->end_ns + SIM_SECOND,
				       .expected_ranks = 2};
	const struct nt_finding *finding;
	size_t findings;

	assert_int_equal(nt_detect_step(detect, &frame, &finding, &findings), 0);
}

static void who_is_in_no_frame_is_counted_as_it_was_last(void **state)
{
	struct nt_detect *detect = ((struct job *)*state)->detect;

	detect->rank[0].ended = true;
	detect->rank[1].inside =
		(struct nt_frame_inside){.in_call = true, .since_ns = detect->end_ns};
	step_on(detect);
	assert_int_equal(detect->census.here, 1);
	assert_int_equal(detect->census.gone, 1);
	assert_int_equal(detect->census.using_gpu, 2);
	assert_int_equal(detect->census.longest_wait_ns, SIM_SECOND);
	/* Who has not been heard of for four frames may wait or not. */
	step_on(detect);
	step_on(detect);
	assert_int_equal(detect->census.longest_wait_ns, 3ull * SIM_SECOND);
	step_on(detect);
	assert_int_equal(detect->census.longest_wait_ns, 0);
	detect->rank[1].ended = true;
	detect->rank[1].uses_gpu = false;
	step_on(detect);
	assert_int_equal(detect->census.here, 0);
	assert_int_equal(detect->census.gone, 2);
	assert_int_equal(detect->census.using_gpu, 1);
}

/* ---- what a rank says ------------------------------------------------------------------------ */

static void assert_taken(struct job *job, const struct nt_frame_rank *seen, bool taken)
{
	struct nt_detect_rank rank = {.steps = 0};
	const uint64_t before = job->detect->implausible;

	nt_peer_deviation_sum(job->detect, &rank, seen);
	assert_int_equal(job->detect->implausible, before + !taken);
	assert_int_equal(rank.steps, taken ? seen->steps : 0);
	assert_true(rank.sum[NT_STEP_METRIC_STEP] == (taken ? seen->step_ns : 0));
	assert_true(rank.window_ns == (taken ? seen->window_ns : 0));
}

static void a_part_is_twice_as_long_as_the_step_at_most(void **state)
{
	static const struct {
		size_t at;
		uint64_t most;
	} part[] = {
		{offsetof(struct nt_frame_rank, own_ns), 2001},
		{offsetof(struct nt_frame_rank, own_blocked_ns), 2001},
		{offsetof(struct nt_frame_rank, host_ns), 2001},
		/* A host that runs ahead waits once in many steps. */
		{offsetof(struct nt_frame_rank, blocked_ns), 64063},
		/* Of calls many threads may be in one at a time. */
		{offsetof(struct nt_frame_rank, comm_ns), 64063},
		{offsetof(struct nt_frame_rank, window_ns), 1ULL << 56},
	};

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		struct nt_frame_rank seen = {.steps = 3, .step_ns = 1000};
		uint64_t value = part[i].most;

		memcpy((char *)&seen + part[i].at, &value, sizeof(value));
		assert_taken(*state, &seen, true);
		value++;
		memcpy((char *)&seen + part[i].at, &value, sizeof(value));
		assert_taken(*state, &seen, false);
	}
}

static void a_step_takes_some_time_but_not_for_ever(void **state)
{
	struct nt_frame_rank seen = {.steps = 1};

	assert_taken(*state, &seen, false);
	seen.step_ns = 1;
	assert_taken(*state, &seen, true);
	seen.step_ns = 1ULL << 56;
	assert_taken(*state, &seen, true);
	seen.step_ns++;
	assert_taken(*state, &seen, false);
}

static void what_a_thread_did_counts_without_a_step_too(void **state)
{
	struct job *job = *state;
	struct nt_frame_rank seen = {
		.window_ns = 100,
		.own_ns = 1,
		.own_blocked_ns = 2,
		.own_longest_ns = 3,
		.host_ns = 4,
		.blocked_ns = 5,
		.comm_ns = 6,
		.collective_ns = 7,
		.step_ns = 8,
		.on_cpu_ns = 9,
		.run_queue_ns = 10,
		.io_ns = 11,
		.gc_ns = 12,
		.read_bytes = 13,
		.write_bytes = 14,
		.major_faults = 15,
		.gpu_thermal_ns = 16,
		.gpu_power_ns = 17,
		.gpu_hardware_ns = 18,
		.gpu_uncorrected = 19,
		.system_ns = 20,
		.quota_ns = 21,
		.file_ns = 22,
		.fault_ns = 23,
		.reclaim_ns = 24,
		.process_io_ns = 25,
		.tcp_retransmits = 26,
	};
	struct nt_detect_rank rank = {.rank = 0};

	for (int i = 0; i < 2; i++)
		nt_peer_deviation_sum(job->detect, &rank, &seen);
	for (int i = 0; i < NT_STEP_METRIC_THREAD; i++)
		assert_int_equal(rank.sum[i], 0);
	for (int i = NT_STEP_METRIC_THREAD; i < NT_STEP_METRIC_CALLS; i++)
		assert_int_equal(rank.sum[i], 2 * (i + 1));
	assert_int_equal(rank.window_ns, 200);
	assert_int_equal(rank.steps, 0);
	seen.steps = 2;
	nt_peer_deviation_sum(job->detect, &rank, &seen);
	for (int i = 0; i < NT_STEP_METRIC_THREAD; i++)
		assert_int_equal(rank.sum[i], i + 1);
	for (int i = NT_STEP_METRIC_THREAD; i < NT_STEP_METRIC_CALLS; i++)
		assert_int_equal(rank.sum[i], 3 * (i + 1));
	assert_int_equal(rank.window_ns, 300);
	assert_int_equal(rank.steps, 2);
}

static void steps_and_sums_do_not_wrap(void **state)
{
	struct job *job = *state;
	const struct nt_frame_rank seen = {.steps = 5, .step_ns = 10, .read_bytes = 20};
	struct nt_detect_rank rank = {.steps = UINT32_MAX - 5};

	rank.sum[NT_STEP_METRIC_READ] = UINT64_MAX - 3;
	nt_peer_deviation_sum(job->detect, &rank, &seen);
	assert_int_equal(rank.steps, UINT32_MAX - 5);
	assert_true(rank.sum[NT_STEP_METRIC_READ] == UINT64_MAX);
	rank.steps--;
	nt_peer_deviation_sum(job->detect, &rank, &seen);
	assert_int_equal(rank.steps, UINT32_MAX - 1);
}

static void who_is_not_in_the_frame_is_not_observed(void **state)
{
	struct job *job = *state;

	assert_true(job->detect->rank[1].observed);
	job->sim.rank[1].absent = true;
	sim_pass(&job->sim, job->detect, 1);
	assert_true(job->detect->rank[0].observed);
	assert_false(job->detect->rank[1].observed);
}

static void what_another_is_held_against_is_never_nothing(void **state)
{
	const struct nt_rules rules = {.peer_deviation_floor = 0.01};

	(void)state;
	assert_true(nt_peer_deviation_base(&rules, 0.0, 0.0) == 1.0);
	assert_true(nt_peer_deviation_base(&rules, 5.0, 1000.0) == 10.0);
	assert_true(nt_peer_deviation_base(&rules, 20.0, 1000.0) == 20.0);
}

/* ---- communicators --------------------------------------------------------------------------- */

static void what_is_said_of_a_communicator_adds_up(void **state)
{
	struct job *job = *state;
	struct nt_detect_rank *rank = &job->detect->rank[1];
	const struct nt_frame_op op[] = {
		{.op = 1, .kind = NT_FRAME_SYNCHRONISING, .calls = 3, .bytes = 30},
		{.op = 2, .kind = NT_FRAME_ALL_TO_ALL, .calls = 5, .bytes = 50},
		{.op = 3, .kind = NT_FRAME_POINT_TO_POINT, .calls = 7, .bytes = 70},
		{.op = 31, .kind = NT_FRAME_ROOTED, .calls = 9, .bytes = 90},
		{.op = 32, .kind = NT_FRAME_ROOTED, .calls = 9, .bytes = 90},
		{.op = 5, .kind = NT_FRAME_POINT_TO_POINT + 1},
	};
	struct nt_frame_comm said = {
		.id = 77, .size = 4, .epoch = 2, .last = 9, .op = op, .ops = 6};
	const struct nt_frame_rank seen = {.steps = 6, .comm = &said, .comms = 1};
	struct nt_detect_comm *comm;

	job->detect->roles.dirty = false;
	assert_int_equal(nt_detect_comm_learn(job->detect, rank, &seen), 0);
	assert_true(job->detect->roles.dirty);
	comm = nt_detect_comm_find(job->detect->comms, 77);
	assert_non_null(comm);
	assert_int_equal(comm->members, 1);
	assert_int_equal(comm->member[0], 1);
	assert_int_equal(comm->size, 4);
	assert_true(comm->steps == 6.0);
	assert_true(comm->sync_calls == 3.0 && comm->sync_bytes == 30.0);
	assert_true(comm->all_to_all_calls == 5.0 && comm->p2p_calls == 7.0);
	assert_int_equal(comm->kind_of[1], NT_FRAME_SYNCHRONISING + 1);
	assert_int_equal(comm->kind_of[2], NT_FRAME_ALL_TO_ALL + 1);
	assert_int_equal(comm->kind_of[3], NT_FRAME_POINT_TO_POINT + 1);
	assert_int_equal(comm->kind_of[31], NT_FRAME_ROOTED + 1);
	assert_int_equal(comm->kind_of[5], 0);
	assert_int_equal(comm->kind_of[0], 0);
	/* Once more: the same member, and the largest size that was told. */
	job->detect->roles.dirty = false;
	said.size = 3;
	assert_int_equal(nt_detect_comm_learn(job->detect, rank, &seen), 0);
	assert_false(job->detect->roles.dirty);
	assert_int_equal(comm->members, 1);
	assert_int_equal(comm->size, 4);
	assert_true(comm->steps == 12.0 && comm->sync_calls == 6.0);
	assert_true(nt_detect_comm_calls(comm) == 0.5);
	assert_true(nt_detect_comm_call_bytes(comm) == 10.0);
}

static void progress_is_a_number_that_moves_or_calls_of_another_epoch(void **state)
{
	struct job *job = *state;
	struct nt_detect_rank *rank = &job->detect->rank[0];
	struct nt_frame_op op = {.op = 1, .kind = NT_FRAME_SYNCHRONISING};
	struct nt_frame_comm said = {
		.id = 78, .size = 2, .epoch = 1, .last = 9, .op = &op, .ops = 1};
	const struct nt_frame_rank seen = {.comm = &said, .comms = 1};
	const struct nt_detect_link *link;

	job->detect->end_ns = 100;
	assert_int_equal(nt_detect_comm_learn(job->detect, rank, &seen), 0);
	link = &rank->link[rank->links - 1];
	assert_int_equal(link->progress_ns, 100);
	assert_int_equal(link->frame, job->detect->frames);
	job->detect->end_ns = 200;
	assert_int_equal(nt_detect_comm_learn(job->detect, rank, &seen), 0);
	assert_int_equal(link->progress_ns, 100);
	said.last++;
	assert_int_equal(nt_detect_comm_learn(job->detect, rank, &seen), 0);
	assert_int_equal(link->progress_ns, 200);
	job->detect->end_ns = 300;
	/* As each slice of a sampled process begins another. */
	said.epoch++;
	said.last++;
	assert_int_equal(nt_detect_comm_learn(job->detect, rank, &seen), 0);
	assert_int_equal(link->progress_ns, 200);
	assert_int_equal(link->last, 11);
	assert_int_equal(link->epoch, 2);
	said.epoch++;
	op.calls = 1;
	assert_int_equal(nt_detect_comm_learn(job->detect, rank, &seen), 0);
	assert_int_equal(link->progress_ns, 300);
}

static void members_are_compared_where_they_are_at_the_same_call(void **state)
{
	static const struct {
		uint64_t epoch, last, hash;
		bool agreed, differed;
	} other[] = {
		{1, 9, 5, true, false},
		{1, 9, 6, false, true},
		{2, 9, 6, false, false},
		{1, 8, 6, false, false},
	};
	struct job *job = *state;
	struct nt_detect_comm *comm;

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct nt_frame_comm said = {.id = 79, .epoch = 1, .last = 9, .rolling_hash = 5};
		const struct nt_frame_rank seen = {.comm = &said, .comms = 1};

		job->detect->frames++;
		assert_int_equal(nt_detect_comm_learn(job->detect, &job->detect->rank[0], &seen),
				 0);
		comm = nt_detect_comm_find(job->detect->comms, 79);
		assert_true(comm->agreed_frame != job->detect->frames);
		assert_true(comm->differed_frame != job->detect->frames);
		said.epoch = other[i].epoch;
		said.last = other[i].last;
		said.rolling_hash = other[i].hash;
		assert_int_equal(nt_detect_comm_learn(job->detect, &job->detect->rank[1], &seen),
				 0);
		assert_int_equal(comm->agreed_frame == job->detect->frames, other[i].agreed);
		assert_int_equal(comm->differed_frame == job->detect->frames, other[i].differed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(who_is_in_no_frame_is_counted_as_it_was_last),
		JOB_TEST(a_part_is_twice_as_long_as_the_step_at_most),
		JOB_TEST(a_step_takes_some_time_but_not_for_ever),
		JOB_TEST(what_a_thread_did_counts_without_a_step_too),
		JOB_TEST(steps_and_sums_do_not_wrap),
		JOB_TEST(who_is_not_in_the_frame_is_not_observed),
		JOB_TEST(what_another_is_held_against_is_never_nothing),
		JOB_TEST(what_is_said_of_a_communicator_adds_up),
		JOB_TEST(progress_is_a_number_that_moves_or_calls_of_another_epoch),
		JOB_TEST(members_are_compared_where_they_are_at_the_same_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
