/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiler traces whose kernels say of which process group they are. */
#include <string.h>

#include <errno.h>

#include "cli/readers/collective.h"
#include "tests/unit/cli/kineto_job.h"

/* A large and a small reduction a step; in the second half the large one takes 60 ms more, for all. */
static void play_sizes(struct job *job)
{
	unsigned int start = 0;

	for (int n = 0; n < 2 * STEPS; n++) {
		const unsigned int transfer = n < STEPS ? 20000 : 80000;
		const unsigned int end = start + 101000 + transfer;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int own = 100000 + (unsigned int)(n * 7 + i * 13) % 11 * 20;

			add_step(job, i, n, start, end + 2000 - start);
			add_kernel(job, i, "gemm", start, own, "");
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", start + own,
				   end - start - own, call("allreduce", "dp", RANKS, 1000000));
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", end, 500,
				   call("allreduce", "dp", RANKS, 1));
		}
		start = end + 2000;
	}
}

/* Against all ranks it would be in the middle: those of the other stage compute longer. */
static void a_slow_rank_is_held_against_its_data_parallel_group(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_wire_incident *incident;
	struct job *job = *state;

	play(job, 1);
	trace = read_files(job, RANKS);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	for (size_t i = 0; i < judgement->incidents; i++) {
		incident = &judgement->judged[i].incident;
		if (strcmp(incident->class, "imbalance") == 0)
			continue;
		assert_string_equal(incident->class, "compute");
		assert_int_equal(incident->culprits, 1);
		assert_int_equal(incident->culprit[0].rank, 1);
		assert_int_equal(incident->culprit[0].peer_count, 3);
		return;
	}
	fail_msg("nobody is named");
}

static void steps_that_the_profiler_was_not_told_of_are_the_period_of_the_calls(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_plain(job, 6, 1, false);
	/* A second operation, once a step. */
	for (int n = 0; n < STEPS; n++)
		for (int i = 0; i < RANKS; i++)
			add_kernel(job, i, "ncclDevKernel_AllGather_RING_LL(x)",
				   (unsigned int)n * 200000 + 195000, 1000, "");
	trace = read_files(job, RANKS);
	/* The one that the beginning cuts does not count. */
	assert_int_equal(trace->frames, STEPS - 1);
	for (size_t n = 1; n + 1 < trace->frames; n++)
		assert_true(trace->frame[n].rank[6].own_ns > 149000000 &&
			    trace->frame[n].rank[6].own_ns < 151000000);
	assert_names(trace, 6);
}

static void pieces_of_one_reduction_make_one_step(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_plain(job, 0, 4, false);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->frames, STEPS - 2);
	assert_names(trace, 0);
}

/* A trace of one step: its two different calls are no steps. */
static void calls_without_a_period_are_one_step(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	for (int i = 0; i < RANKS; i++) {
		add_kernel(job, i, "gemm", 0, 1000, "");
		add_kernel(job, i, "ncclDevKernel_AllGather_RING_LL(x)", 1000, 100, "");
		add_kernel(job, i, "gemm", 2000, 1000, "");
		add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32(x)", 3000, 100, "");
	}
	trace = read_files(job, RANKS);
	assert_int_equal(trace->frames, 1);
	assert_int_equal(trace->frame[0].rank[0].own_ns, 2000000);
}

/* The shortest call of all is the small one, and says nothing of the network. */
static void a_slow_network_shows_in_the_calls_that_move_most(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_frame_op *op;
	struct job *job = *state;

	job->unlisted = true;
	play_sizes(job);
	trace = read_files(job, RANKS);
	op = &trace->frame[3].rank[0].comm[0].op[0];
	assert_int_equal(op->calls, 2);
	assert_true(op->min_ns > 10000000 && op->min_ns < 11000000);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "network");
}

static void healthy_stages_of_different_length_accuse_nobody(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct job *job = *state;

	play(job, -1);
	trace = read_files(job, RANKS);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	for (size_t i = 0; i < judgement->incidents; i++)
		assert_string_equal(judgement->judged[i].incident.class, "imbalance");
}

/* One trace begins a call later: where calls have numbers, that shifts nothing. */
static void calls_are_matched_by_their_numbers_where_they_have_some(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;
	char args[300];

	for (int i = 0; i < RANKS; i++) {
		for (unsigned int n = i == 1; n < 3; n++) {
			(void)snprintf(args, sizeof(args), "%s, \"Seq\": %u",
				       call("allreduce", i < 4 ? "dp0" : "dp1", 4, 5), 40 + n);
			add_kernel(job, i, "ncclDevKernel_AllReduce", 1000 * n + (unsigned int)i,
				   50, args);
		}
	}
	trace = read_files(job, RANKS);
	/* Of the first call one member knows nothing. */
	assert_int_equal(trace->collectives, 5);
	assert_string_equal(trace->collective[0].name, "AllReduce dp1");
	assert_int_equal(trace->collective[0].number, 40);
	assert_int_equal(trace->collective[1].number, 41);
	assert_int_equal(trace->collective[1].last_rank, 3);
	assert_int_equal(trace->collective[1].spread_ns, 3000);
}

static void names_out_of_a_trace_do_not_steer_the_terminal(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->unlisted = true;
	for (int i = 0; i < 2; i++)
		add_kernel(job, i, "ncclDevKernel_\\u001b[31mAll_Sum", 1, 2,
			   call("allreduce", "\\u0007g", 2, 5));
	trace = read_files(job, 2);
	assert_int_equal(trace->collectives, 1);
	assert_string_equal(trace->collective[0].name, "?[31mAll ?g");
}

/* Recorded by PyTorch 2.15 over Gloo on a machine without a device: rank 2 slept twice as long. */
static void a_slow_rank_of_a_real_gloo_job_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};
	const struct nt_wire_incident *incident;
	const char *paths[4];
	char path[4][64];

	(void)state;
	for (int i = 0; i < 4; i++) {
		(void)snprintf(path[i], sizeof(path[i]),
			       "tests/data/kineto/gloo_slow/rank%d.json.gz", i);
		paths[i] = path[i];
	}
	if (nt_trace_read_kineto(paths, 4, &trace, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(trace->world, 4);
	assert_int_equal(trace->frames, 20);
	assert_int_equal(trace->collectives, 40);
	assert_int_equal(trace->frame[3].rank[1].own_tier, NT_FRAME_T2);
	assert_false(trace->frame[3].rank[1].uses_gpu);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "host");
	assert_int_equal(incident->culprits, 1);
	assert_int_equal(incident->culprit[0].rank, 2);
}

/* Of one rank, with two groups: nothing to compare it with. */
static void a_real_trace_without_a_device_is_read_by_its_calls(void **state)
{
	static const char *const paths[] = {"tests/data/kineto/gloo/rank2.json.gz"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};

	(void)state;
	assert_int_equal(nt_trace_read_kineto(paths, 1, &trace, &error), 0);
	assert_int_equal(trace->frames, 3);
	assert_true(trace->frame[0].rank[0].comm_ns > 0);
	assert_int_equal(trace->frame[0].rank[0].comms, 0);
}

static void add_host(struct job *job, int rank, const char *category, const char *name,
		     unsigned int ts, unsigned int dur)
{
	assert_int_equal(nt_buf_printf(&job->events[rank],
				       "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", "
				       "\"ts\": %u, \"dur\": %u}",
				       job->events[rank].len ? ",\n" : "", category, name, ts, dur),
			 0);
}

/* Own work is what no call covers, whatever step the call began in; operators are computing. */
static void without_a_device_own_work_is_what_lies_outside_of_the_calls(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	for (int i = 0; i < 2; i++) {
		add_step(job, i, 0, 0, 1000);
		add_step(job, i, 1, 1000, 1000);
		add_host(job, i, "user_annotation", "mpi:all_reduce", 400, 200);
		add_host(job, i, "user_annotation", "mpi:all_reduce", 500, 700);
		add_host(job, i, "cpu_op", "aten::mm", 100, 200);
		add_host(job, i, "cpu_op", "aten::copy_", 150, 50);
		add_host(job, i, "cpu_op", "c10d::allreduce_", 400, 200);
		/* What is enqueued is not what is waited for. */
		add_host(job, i, "user_annotation", "nccl:all_reduce", 0, 400);
	}
	trace = read_files(job, 2);
	assert_int_equal(trace->frames, 2);
	assert_int_equal(trace->frame[0].rank[0].own_ns, 400000);
	assert_int_equal(trace->frame[0].rank[0].comm_ns, 600000);
	assert_int_equal(trace->frame[0].rank[0].on_cpu_ns, 200000);
	assert_int_equal(trace->frame[1].rank[0].own_ns, 800000);
	assert_int_equal(trace->frame[1].rank[0].comm_ns, 200000);
	assert_int_equal(comm_of(trace, 0, 1, NT_FRAME_SYNCHRONISING)->last, 2);
}

/* Times of what is only enqueued tell nothing. */
static void a_trace_of_nccl_without_its_kernels_is_refused(void **state)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	struct job *job = *state;

	add_host(job, 0, "user_annotation", "nccl:all_reduce", 0, 400);
	put_files(job);
	assert_int_equal(nt_trace_read_kineto(job->paths, 1, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "no GPU kernels"));
}

static void operations_are_known_under_all_their_names(void **state)
{
	static const struct {
		const char *name;
		enum nt_op op;
		bool uneven;
	} names[] = {
		{"nccl:all_reduce", NT_OP_ALL_REDUCE, false},
		{"allreduce", NT_OP_ALL_REDUCE, false},
		{"nccl:all_reduce_barrier", NT_OP_BARRIER, false},
		{"_allgather_base", NT_OP_ALL_GATHER, false},
		{"nccl:ALLGATHER_coalesced", NT_OP_ALL_GATHER, false},
		{"xccl:all_gather_v", NT_OP_ALL_GATHER, true},
		{"nccl:_reduce_scatter_base", NT_OP_REDUCE_SCATTER, false},
		{"all_to_allv", NT_OP_ALL_TO_ALL, false},
		{"nccl:_broadcast_oop", NT_OP_BROADCAST, false},
		{"nccl:_reduce_oop", NT_OP_REDUCE, false},
		{"nccl:send 0->1", NT_OP_SEND, false},
		{"nccl:recv 1<-0", NT_OP_RECV, false},
		{"nccl:coalesced", NT_OP_UNKNOWN, false},
		{"", NT_OP_UNKNOWN, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bool uneven = !names[i].uneven;

		assert_int_equal(nt_collective_op(names[i].name, &uneven), names[i].op);
		assert_int_equal(uneven, names[i].uneven);
	}
	assert_int_equal(nt_collective_type("Float"), 7);
	assert_int_equal(nt_collective_type_bytes("BFloat16"), 2);
	assert_true(nt_collective_type("Bool") != nt_collective_type("ComplexFloat"));
	assert_int_equal(nt_collective_type_bytes("Bool"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KINETO_TEST(a_slow_rank_is_held_against_its_data_parallel_group),
		KINETO_TEST(steps_that_the_profiler_was_not_told_of_are_the_period_of_the_calls),
		KINETO_TEST(pieces_of_one_reduction_make_one_step),
		KINETO_TEST(calls_without_a_period_are_one_step),
		KINETO_TEST(healthy_stages_of_different_length_accuse_nobody),
		KINETO_TEST(a_slow_network_shows_in_the_calls_that_move_most),
		KINETO_TEST(calls_are_matched_by_their_numbers_where_they_have_some),
		KINETO_TEST(names_out_of_a_trace_do_not_steer_the_terminal),
		cmocka_unit_test(a_slow_rank_of_a_real_gloo_job_is_named),
		cmocka_unit_test(a_real_trace_without_a_device_is_read_by_its_calls),
		KINETO_TEST(without_a_device_own_work_is_what_lies_outside_of_the_calls),
		KINETO_TEST(a_trace_of_nccl_without_its_kernels_is_refused),
		cmocka_unit_test(operations_are_known_under_all_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
