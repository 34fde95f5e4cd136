/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiler traces whose kernels say of which process group they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/collective.h"
#include "cli/judge.h"
#include "cli/report.h"
#include "cli/trace.h"
#include "common/buf.h"

enum {
	RANKS = 8,
	STEPS = 40,
};

/* Two stages of four replicas: 0 to 3 are the first. */
struct job {
	struct nt_buf events[RANKS];
	char path[RANKS][64];
	const char *paths[RANKS];
	bool unlisted; /* no pg_config */
};

static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	for (int i = 0; i < RANKS; i++) {
		(void)snprintf(job->path[i], sizeof(job->path[i]),
			       "build/test-kineto-%d-rank%d.json", (int)getpid(), i);
		job->paths[i] = job->path[i];
	}
	*state = job;
	return 0;
}

static int end(void **state)
{
	struct job *job = *state;

	for (int i = 0; i < RANKS; i++) {
		nt_buf_release(&job->events[i]);
		(void)unlink(job->path[i]);
	}
	free(job);
	return 0;
}

static void add_kernel(struct job *job, int rank, const char *name, unsigned int ts,
		       unsigned int dur, const char *args)
{
	struct nt_buf *buf = &job->events[rank];

	assert_int_equal(
		nt_buf_printf(buf,
			      "%s{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"ts\": "
			      "%u, \"dur\": %u, \"args\": {%s}}",
			      buf->len ? ",\n" : "", name, ts, dur, args),
		0);
}

static void add_step(struct job *job, int rank, int n, unsigned int ts, unsigned int dur)
{
	struct nt_buf *buf = &job->events[rank];

	assert_int_equal(nt_buf_printf(buf,
				       "%s{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": "
				       "\"ProfilerStep#%d\", \"ts\": %u, \"dur\": %u}",
				       buf->len ? ",\n" : "", n, ts, dur),
			 0);
}

/* As PyTorch 2.15 writes them: the ranks are left to pg_config. */
static const char *call(const char *collective, const char *group, int size, uint64_t elements)
{
	static char text[256];

	(void)snprintf(
		text, sizeof(text),
		"\"Collective name\": \"%s\", \"In msg nelems\": %" PRIu64
		", \"Out msg nelems\": %" PRIu64
		", \"dtype\": \"Float\", \"Group size\": %d, \"Process Group Name\": \"%s\", "
		"\"Process Group Ranks\": \"[]\"",
		collective, elements, elements, size, group);
	return text;
}

/* A step of 200 ms: the second stage computes twice as long, the rank ×1.5 of its own. */
static void play(struct job *job, int slow)
{
	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)n * 200000;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int own = (i < 4 ? 50000 : 100000) * (i == slow ? 3 : 2) / 2;
			/* Replicas differ a little from step to step. */
			const unsigned int jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int done = start + own + jitter;
			const char *data = i < 4 ? "dp0" : "dp1";
			char pair[8];

			(void)snprintf(pair, sizeof(pair), "pp%d", i % 4);
			add_step(job, i, n, start, 200000);
			add_kernel(job, i, "gemm", start, own + jitter, "");
			add_kernel(job, i, "ncclDevKernel_SendRecv", done, 100,
				   call(i < 4 ? "send" : "recv", pair, 2, 1000));
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", done + 200,
				   start + 190000 - done - 200,
				   call("allreduce", data, 4, 1000000));
		}
	}
}

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

/* All ranks reduce with each other in so many pieces, and no trace says so; the profiler may know no step. */
static void play_plain(struct job *job, int slow, int pieces, bool steps)
{
	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)n * 200000;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int own = 100000 * (i == slow ? 3 : 2) / 2 + jitter;

			if (steps)
				add_step(job, i, n, start, 200000);
			add_kernel(job, i, "gemm", start, own, "");
			for (int piece = 0; piece < pieces; piece++) {
				const unsigned int end =
					start + 190000 + 1000 * (unsigned int)piece;
				const unsigned int from = piece ? end - 1000 : start + own;

				add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
					   from, end - from, "");
			}
		}
	}
}

static void put_files(struct job *job)
{
	for (int i = 0; i < RANKS; i++) {
		const char *data =
			i < 4 ? "{\"pg_name\": \"dp0\", \"pg_size\": 4, \"ranks\": [0, 1, 2, 3]}"
			      : "{\"pg_name\": \"dp1\", \"pg_size\": 4, \"ranks\": [4, 5, 6, 7]}";
		FILE *file = fopen(job->path[i], "w");

		assert_non_null(file);
		assert_true(fprintf(file,
				    "{\"distributedInfo\": {\"rank\": %d, \"world_size\": %d, "
				    "\"pg_config\": [%s%s{\"pg_name\": \"pp%d\", \"pg_size\": 2, "
				    "\"ranks\": [%d, %d]}]},\n\"traceEvents\": [%.*s]}",
				    i, RANKS, job->unlisted ? "" : data, job->unlisted ? "" : ", ",
				    i % 4, i % 4, i % 4 + 4, (int)job->events[i].len,
				    (char *)job->events[i].data) > 0);
		assert_int_equal(fclose(file), 0);
	}
}

static struct nt_trace *read_files(struct job *job, size_t count)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	put_files(job);
	if (nt_trace_read_kineto(job->paths, count, &trace, &error) != 0)
		fail_msg("%s", error.text);
	return trace;
}

static const struct nt_frame_comm *comm_of(const struct nt_trace *trace, size_t frame, size_t rank,
					   uint8_t kind)
{
	const struct nt_frame_rank *of = &trace->frame[frame].rank[rank];

	for (size_t i = 0; i < of->comms; i++)
		if (of->comm[i].ops && of->comm[i].op[0].kind == kind)
			return &of->comm[i];
	fail_msg("rank %zu has no such communicator", rank);
	return NULL;
}

static void communicators_are_learned_from_the_kernels_arguments(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_comm *first, *other, *pair;
	struct job *job = *state;

	play(job, -1);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->frames, STEPS);
	assert_int_equal(trace->frame[0].rank[5].comms, 2);
	first = comm_of(trace, 0, 1, NT_FRAME_SYNCHRONISING);
	assert_int_equal(first->size, 4);
	assert_int_equal(first->rank, 1);
	assert_int_equal(first->last, 1);
	assert_int_equal(first->ops, 1);
	assert_int_equal(first->op[0].op, NT_OP_ALL_REDUCE);
	assert_int_equal(first->op[0].bytes, 4000000);
	assert_int_equal(first->op[0].timed_calls, 1);
	assert_int_equal(comm_of(trace, 7, 1, NT_FRAME_SYNCHRONISING)->last, 8);
	/* Equal on all members, and on nobody else. */
	assert_true(comm_of(trace, 0, 3, NT_FRAME_SYNCHRONISING)->id == first->id);
	other = comm_of(trace, 0, 5, NT_FRAME_SYNCHRONISING);
	assert_true(other->id != first->id);
	assert_int_equal(other->rank, 1);
	pair = comm_of(trace, 0, 1, NT_FRAME_POINT_TO_POINT);
	assert_true(comm_of(trace, 0, 5, NT_FRAME_POINT_TO_POINT)->id == pair->id);
	/* Sends synchronise nobody: the calls of the data-parallel groups are the samples. */
	assert_int_equal(trace->frame[0].frame.samples, RANKS);
	assert_int_equal(trace->frame[0].sample[0].number, 1);
	assert_int_equal(trace->frame[0].sample[0].bytes, 4000000);
}

/* Against all ranks it would be in the middle: those of the other stage compute longer. */
static void a_slow_rank_is_held_against_its_data_parallel_group(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_incident *incident;
	struct job *job = *state;

	play(job, 1);
	trace = read_files(job, RANKS);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
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

static void assert_names(const struct nt_trace *trace, uint32_t rank)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_incident *incident;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "compute");
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "rank");
	assert_int_equal(incident->culprit[0].rank, rank);
	assert_int_equal(incident->culprit[0].peer_count, RANKS - 1);
}

/* Before PyTorch 2.3 no trace named a group. */
static void ranks_of_traces_without_groups_that_make_the_same_calls_are_peers(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_plain(job, 2, 1, true);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->frames, STEPS);
	assert_int_equal(trace->collectives, STEPS);
	assert_string_equal(trace->collective[0].name, "AllReduce");
	assert_int_equal(comm_of(trace, 3, 5, NT_FRAME_SYNCHRONISING)->last, 4);
	assert_names(trace, 2);
}

/* They may be stages, which are no peers of each other. */
static void ranks_of_traces_without_groups_that_send_are_no_peers(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_plain(job, 2, 1, true);
	for (int i = 0; i < RANKS; i++)
		add_kernel(job, i, "ncclDevKernel_SendRecv(x)", 1, 2, "");
	trace = read_files(job, RANKS);
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(trace->frame[1].rank[i].comms, 0);
	assert_true(trace->ungrouped);
}

/* Who works with whom is not known: then nobody knows that it is uneven work and no card either. */
static void a_slow_rank_of_traces_without_groups_is_no_stage(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_autobuf struct nt_buf text = {0};
	const struct nt_rules rules = nt_rules_default();
	struct nt_report report = {.source = "traces"};
	struct job *job = *state;

	play_plain(job, 2, 1, true);
	for (int i = 0; i < RANKS; i++)
		add_kernel(job, i, "ncclDevKernel_SendRecv(x)", 1, 2, "");
	trace = read_files(job, RANKS);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 0);
	nt_report_trace(&report, trace, judgement);
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_non_null(memmem(text.data, text.len, "do not say which ranks work together", 36));
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
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
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
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
	for (size_t i = 0; i < judgement->incidents; i++)
		assert_string_equal(judgement->judged[i].incident.class, "imbalance");
}

static void collectives_are_compared_group_by_group(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_trace_collective *first;
	struct job *job = *state;

	play(job, 2);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->collectives, 2 * STEPS);
	first = &trace->collective[0];
	assert_string_equal(first->name, "AllReduce dp0");
	assert_int_equal(first->ranks, 4);
	assert_int_equal(first->number, 1);
	assert_int_equal(first->last_rank, 2);
	assert_true(first->lateness_ns >= 24000000 && first->lateness_ns <= 26000000);
	assert_string_equal(trace->collective[1].name, "AllReduce dp1");
}

/* A member whose trace is not given may be the one that came last. It is compared with the rest. */
static void files_of_some_ranks_are_compared_among_themselves(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play(job, -1);
	trace = read_files(job, 3);
	assert_int_equal(trace->world, RANKS);
	assert_int_equal(trace->collectives, STEPS);
	assert_int_equal(trace->collective[0].ranks, 3);
	assert_int_equal(comm_of(trace, 0, 0, NT_FRAME_SYNCHRONISING)->size, 4);
}

static void a_group_that_is_not_listed_is_known_by_its_name(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_comm *first;
	struct job *job = *state;

	job->unlisted = true;
	play(job, -1);
	trace = read_files(job, RANKS);
	first = comm_of(trace, 0, 0, NT_FRAME_SYNCHRONISING);
	assert_int_equal(first->size, 4);
	assert_true(comm_of(trace, 0, 2, NT_FRAME_SYNCHRONISING)->id == first->id);
	assert_true(comm_of(trace, 0, 4, NT_FRAME_SYNCHRONISING)->id != first->id);
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

static void groups_beyond_the_cap_are_left_out_and_counted(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;
	char name[16];

	job->unlisted = true;
	for (unsigned int n = 0; n < 70; n++) {
		(void)snprintf(name, sizeof(name), "g%u", n);
		add_kernel(job, 0, "ncclDevKernel_AllReduce", 100 * n, 50,
			   call("allreduce", name, 4, 5));
	}
	trace = read_files(job, 1);
	/* One of the 64 is the listed pair, of which no kernel is. */
	assert_int_equal(trace->frame[0].rank[0].comms, 63);
	assert_int_equal(trace->dropped, 7);
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

static void assert_refused(struct job *job, const char *info, const char *args, const char *why)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	FILE *file = fopen(job->path[0], "w");

	assert_non_null(file);
	assert_true(
		fprintf(file,
			"{\"distributedInfo\": {\"rank\": 0, \"pg_config\": %s}, \"traceEvents\": ["
			"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclKernel_X\", \"ts\": 1, "
			"\"dur\": 1, \"args\": {%s}}]}",
			info, args) > 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(nt_trace_read_kineto(job->paths, 1, &trace, &error), -EBADMSG);
	assert_null(trace);
	if (!strstr(error.text, why) || !strstr(error.text, job->path[0]))
		fail_msg("'%s' does not say '%s' of its file", error.text, why);
}

static void groups_that_contradict_themselves_are_refused(void **state)
{
	struct job *job = *state;

	assert_refused(job, "{}", "", "pg_config is no list");
	assert_refused(job, "[{\"pg_name\": \"0\", \"ranks\": [0, -1]}]", "",
		       "the ranks of '0' are no numbers");
	assert_refused(job, "[{\"pg_name\": \"0\", \"ranks\": [0, 131072]}]", "",
		       "the ranks of '0' are no numbers");
	assert_refused(job, "[{\"pg_name\": \"0\", \"pg_size\": 3, \"ranks\": [0, 1]}]", "",
		       "'0' has 2 ranks, and pg_size is 3");
	assert_refused(job, "[{\"pg_name\": \"0\", \"ranks\": [1, 2]}]",
		       call("allreduce", "0", 2, 5), "rank 0 calls in process group '0'");
	assert_refused(job, "[{\"pg_name\": \"0\", \"ranks\": [0, 1]}]",
		       call("allreduce", "0", 4, 5), "of 4 ranks, of which pg_config lists 2");
	assert_refused(job, "[]",
		       "\"Collective name\": \"allreduce\", \"Process Group Name\": \"0\", "
		       "\"In msg nelems\": -5",
		       "no sound number of elements");
}

/* Recorded by PyTorch 2.15 over Gloo on a machine without a device: rank 2 slept twice as long. */
static void a_slow_rank_of_a_real_gloo_job_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};
	const struct nt_incident *incident;
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
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
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

#define KINETO_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KINETO_TEST(communicators_are_learned_from_the_kernels_arguments),
		KINETO_TEST(a_slow_rank_is_held_against_its_data_parallel_group),
		KINETO_TEST(ranks_of_traces_without_groups_that_make_the_same_calls_are_peers),
		KINETO_TEST(ranks_of_traces_without_groups_that_send_are_no_peers),
		KINETO_TEST(a_slow_rank_of_traces_without_groups_is_no_stage),
		KINETO_TEST(steps_that_the_profiler_was_not_told_of_are_the_period_of_the_calls),
		KINETO_TEST(pieces_of_one_reduction_make_one_step),
		KINETO_TEST(calls_without_a_period_are_one_step),
		KINETO_TEST(healthy_stages_of_different_length_accuse_nobody),
		KINETO_TEST(a_slow_network_shows_in_the_calls_that_move_most),
		KINETO_TEST(collectives_are_compared_group_by_group),
		KINETO_TEST(files_of_some_ranks_are_compared_among_themselves),
		KINETO_TEST(a_group_that_is_not_listed_is_known_by_its_name),
		KINETO_TEST(calls_are_matched_by_their_numbers_where_they_have_some),
		KINETO_TEST(groups_beyond_the_cap_are_left_out_and_counted),
		KINETO_TEST(names_out_of_a_trace_do_not_steer_the_terminal),
		KINETO_TEST(groups_that_contradict_themselves_are_refused),
		cmocka_unit_test(a_slow_rank_of_a_real_gloo_job_is_named),
		cmocka_unit_test(a_real_trace_without_a_device_is_read_by_its_calls),
		KINETO_TEST(without_a_device_own_work_is_what_lies_outside_of_the_calls),
		KINETO_TEST(a_trace_of_nccl_without_its_kernels_is_refused),
		cmocka_unit_test(operations_are_known_under_all_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
