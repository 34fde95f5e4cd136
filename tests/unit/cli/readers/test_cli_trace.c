/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Readers of traces: what they make of files, and what they say of damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/report/report.h"

#define HEADER "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"

static char path[2][64];

/* Writes the text to a file of its own, and leaves its name in path[n]. */
static void put_file(int n, const char *name, const char *text)
{
	FILE *file;

	(void)snprintf(path[n], sizeof(path[n]), "build/test-trace-%d-%s", (int)getpid(), name);
	file = fopen(path[n], "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

static int remove_files(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		if (*path[i])
			(void)unlink(path[i]);
		*path[i] = '\0';
	}
	return 0;
}

static void assert_straggler_refused(const char *text, const char *why)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	put_file(0, "bad.csv", text);
	assert_int_equal(nt_trace_read_straggler(path[0], &trace, &error), -EBADMSG);
	assert_null(trace);
	if (!strstr(error.text, why))
		fail_msg("'%s' does not say '%s'", error.text, why);
}

static void a_table_becomes_a_frame_a_step_with_the_sum_of_compute_as_own_work(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	const struct nt_frame *frame;

	(void)state;
	put_file(0, "good.csv",
		 HEADER "0,0,0,7,forward-compute,0.5,1.0,0,0,0,0\n"
			"1,0,4,7,forward-compute,0.5,1.25,0,0,0,0\n"
			"0,0,0,7,backward-compute,1.5,2.0,0,0,0,0\n"
			"0,0,0,7,forward-send,3.5,9.0,0,-1,-1,-1\n"
			"0,0,0,8,forward-compute,0,1,0,0,0,0\n"
			"0,0,0,8,an-operation-of-next-year,0,1,0,0,0,0\n"
			"0,0,0,7,grads-reduce-scatter,13,0.5,0,0,-1,-1\n"
			"1,0,4,7,grads-reduce-scatter,12,1.5,0,0,-1,-1\n"
			"0,0,0,7,optimizer,13.25,0.25,0,0,-1,-1\n");
	assert_int_equal(nt_trace_read_straggler(path[0], &trace, &error), 0);
	assert_int_equal(trace->frames, 2);

	frame = &trace->frame[0].frame;
	assert_int_equal(frame->ranks, 2);
	assert_int_equal(frame->end_ns - frame->start_ns, 13500000000);
	assert_int_equal(frame->rank[0].own_ns, 3250000000);
	assert_int_equal(frame->rank[1].rank, 4);
	assert_int_equal(frame->rank[1].own_ns, 1250000000);
	assert_int_equal(frame->samples, 2);
	assert_int_equal(frame->sample[1].release_ns - frame->sample[1].arrive_ns, 1500000000);
	assert_int_equal(trace->frame[1].frame.start_ns, frame->end_ns);
	assert_true(trace->frame[1].frame.completeness == 0.5);
}

/* The group of replicas 0 and 1 of one stage, in a step with these further calls. */
static struct nt_trace *read_group(const char *calls)
{
	static char text[1024];
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)snprintf(text, sizeof(text),
		       HEADER "0,0,0,7,params-all-gather,0,0.25,0,0,-1,-1\n"
			      "1,0,4,7,params-all-gather,0,0.5,0,0,-1,-1\n"
			      "0,0,0,7,forward-compute,1,1,0,0,0,0\n"
			      "1,0,4,7,forward-compute,1,1,0,0,0,0\n"
			      "%s",
		       calls);
	put_file(0, "group.csv", text);
	assert_int_equal(nt_trace_read_straggler(path[0], &trace, &error), 0);
	assert_int_equal(trace->frames, 1);
	return trace;
}

static void the_transfer_of_a_group_is_the_shortest_duration_of_each_of_its_calls(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_rank *rank;

	(void)state;
	trace = read_group("0,0,0,7,grads-reduce-scatter,2,3,0,0,-1,-1\n"
			   "1,0,4,7,grads-reduce-scatter,4,1,0,0,-1,-1\n"
			   "0,0,0,7,grads-reduce-scatter,5,1,16,0,-1,-1\n"
			   "1,0,4,7,grads-reduce-scatter,5,1,16,0,-1,-1\n");
	rank = trace->frame[0].frame.rank;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(rank[i].comms, 1);
		assert_int_equal(rank[i].comm->id, rank[0].comm->id);
		assert_int_equal(rank[i].comm->size, 2);
		assert_int_equal(rank[i].comm->ops, 1);
		assert_true(rank[i].comm->op->by_gpu);
		assert_int_equal(rank[i].comm->op->timed_calls, 1);
		assert_int_equal(rank[i].comm->op->min_ns, 2250000000);
	}
	assert_int_equal(rank[0].comm->op->sum_ns, 4250000000);
}

static void a_group_with_a_call_that_not_all_made_once_has_no_transfer(void **state)
{
	static const char *const calls[] = {
		"0,0,0,7,grads-reduce-scatter,2,3,0,0,-1,-1\n",
		"0,0,0,7,grads-reduce-scatter,2,3,0,0,-1,-1\n"
		"0,0,0,7,grads-reduce-scatter,3,3,0,0,-1,-1\n",
		/* A third replica exists. */
		"2,0,8,7,forward-compute,1,1,0,0,0,0\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		nt_auto(nt_trace) struct nt_trace *trace = read_group(calls[i]);

		assert_int_equal(trace->frame[0].frame.rank[0].comms, 0);
	}
}

/* All communication is recorded: a rank waits in it, and not before a computation. */
static void garbage_collection_and_idle_time_before_work_are_the_hosts(void **state)
{
	static const struct {
		const char *calls;
		uint64_t host_ms[3];
	} cases[] = {
		{"", {750, 500}},
		{"0,0,0,7,optimizer,9,1,0,0,-1,-1\n", {750, 500}},
		{"0,0,0,7,backward-compute,2.5,1,0,0,-1,-1\n", {1250, 500}},
		{"0,0,0,7,gc,0.25,0.5,0,0,-1,-1\n", {750, 500}},
		{"0,0,0,7,gc,2,0.5,0,0,-1,-1\n", {1250, 500}},
		{"0,0,0,7,forward-send,0.1,2,0,0,-1,-1\n", {0, 500}},
		/* It begins with the others. */
		{"2,0,8,7,forward-compute,0,1,0,0,0,0\n", {750, 500, 0}},
		{"2,0,8,7,forward-compute,1,1,0,0,0,0\n", {750, 500, 1000}},
		/* Of a second stage nothing shows how long it waits for the first. */
		{"2,1,8,7,forward-compute,3,1,0,0,-1,-1\n", {0, 0}},
		{"2,1,8,7,forward-compute,3,1,0,0,-1,-1\n0,0,0,7,backward-recv,2,1,0,0,-1,-1\n",
		 {750, 0}},
		/* Idle before a receive or send, and waiting in it. */
		{"0,0,0,7,backward-recv,2.25,5,0,0,-1,-1\n", {1000, 500}},
		{"0,0,0,7,forward-send,2.5,5,0,0,-1,-1\n", {1250, 500}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		nt_auto(nt_trace) struct nt_trace *trace = read_group(cases[i].calls);
		const struct nt_frame_rank *rank = trace->frame[0].frame.rank;

		for (size_t j = 0; j < trace->frame[0].frame.ranks; j++)
			assert_int_equal(rank[j].host_ns, cases[i].host_ms[j] * 1000000);
	}
}

static void a_damaged_table_is_refused_by_line_and_column(void **state)
{
	(void)state;
	assert_straggler_refused("", "no operations");
	assert_straggler_refused(HEADER, "no operations");
	assert_straggler_refused("rank,step\n", ":1: no column 'dp_rank'");
	assert_straggler_refused(HEADER "0,0,0,7,gc,0,1,0,0,0\n",
				 ":2: 10 fields, the header has 11");
	assert_straggler_refused(HEADER "0,0,-1,7,gc,0,1,0,0,0,0\n", ":2: rank is '-1'");
	assert_straggler_refused(HEADER "0,0,0,7,gc,0,1,0,0,0,0\n0,0,0,7,gc,nan,1,0,0,0,0\n",
				 ":3: start_ts is 'nan'");
	assert_straggler_refused(HEADER "0,0,0,7,gc,0,1e300,0,0,0,0\n", "duration is '1e300'");
	assert_straggler_refused(HEADER "0,0,99999999,7,gc,0,1,0,0,0,0\n", "rank is '99999999'");
}

static void a_table_cut_short_in_its_compression_is_refused(void **state)
{
	static char bytes[20000];
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	FILE *file = fopen("tests/data/straggler/trace-ST.csv.gz", "r");

	(void)state;
	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	(void)fclose(file);
	put_file(0, "cut.csv.gz", "");
	file = fopen(path[0], "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	(void)fclose(file);
	assert_int_equal(nt_trace_read_straggler(path[0], &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "cut short"));
}

static void a_missing_file_is_enoent_and_says_so(void **state)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	assert_int_equal(nt_trace_read_straggler("build/no-such-file", &trace, &error), -ENOENT);
	assert_non_null(strstr(error.text, "build/no-such-file"));
}

static const char *const rank_0 =
	"{\"distributedInfo\": {\"rank\": 0}, \"traceEvents\": ["
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"ts\":0,\"dur\":100},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":10,\"dur\":20},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":20,\"dur\":20.5},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum(int)\",\"ts\":40,\"dur\":60},"
	"{\"ph\":\"i\",\"name\":\"an instant has no duration\",\"ts\":1}]}";

/* Of PyTorch 1.13: a bare list, with the rank in the file's name. */
static const char *const rank_1 =
	"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":10,\"dur\":80},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclKernel_AllReduce_RING\",\"ts\":90,\"dur\":10}]";

static void kineto_ranks_are_compared_by_the_order_of_their_collectives(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const char *paths[] = {path[0], path[1]};
	struct nt_trace_error error = {0};

	(void)state;
	put_file(0, "worker0.json", rank_0);
	(void)snprintf(path[1], sizeof(path[1]), "build/worker1.json");
	FILE *file = fopen(path[1], "w");
	assert_non_null(file);
	assert_true(fputs(rank_1, file) >= 0);
	(void)fclose(file);

	if (nt_trace_read_kineto(paths, 2, &trace, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(trace->frames, 1);
	/* Overlapping kernels are busy time once. */
	assert_int_equal(trace->frame[0].rank[0].own_ns, 30500);
	assert_int_equal(trace->frame[0].rank[1].own_ns, 80000);
	/* Neither says how many there were. */
	assert_int_equal(trace->world, 0);
	assert_int_equal(trace->frame[0].frame.expected_ranks, 2);
	assert_true(trace->frame[0].frame.completeness == 1);
	assert_int_equal(trace->collectives, 1);
	assert_string_equal(trace->collective[0].name, "AllReduce");
	assert_int_equal(trace->collective[0].last_rank, 1);
	assert_int_equal(trace->collective[0].spread_ns, 50000);
	assert_int_equal(trace->collective[0].transfer_ns, 10000);
}

#define RANK_OF(rank, world)                                                                       \
	"{\"distributedInfo\": {\"rank\": " rank ", \"world_size\": " world                        \
	"}, \"traceEvents\": ["                                                                    \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":10,\"dur\":20}]}"

static void kineto_files_of_some_ranks_are_incomplete_and_say_so(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_autobuf struct nt_buf text = {0}, json = {0};
	const char *paths[] = {path[0], path[1]};
	const struct nt_rules rules = nt_rules_default();
	struct nt_report report = {.source = "traces"};
	struct nt_trace_error error = {0};

	(void)state;
	put_file(0, "first.json", RANK_OF("5", "8"));
	put_file(1, "second.json", RANK_OF("2", "8"));
	assert_int_equal(nt_trace_read_kineto(paths, 2, &trace, &error), 0);
	assert_int_equal(trace->world, 8);
	assert_int_equal(trace->frames, 1);
	assert_int_equal(trace->frame[0].frame.ranks, 2);
	assert_int_equal(trace->frame[0].frame.expected_ranks, 8);
	assert_true(trace->frame[0].frame.completeness == 0.25);

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	nt_report_trace(&report, trace, judgement);
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_int_equal(nt_report_json(&report, &json), 0);
	assert_non_null(memmem(text.data, text.len, "\n2 of 8 ranks were given: incomplete\n", 36));
	assert_non_null(memmem(json.data, json.len, "\"2 of 8 ranks were given: incomplete\"", 36));
	assert_non_null(memmem(json.data, json.len, "\"expected_ranks\": 8", 19));
}

static void kineto_files_of_jobs_of_different_sizes_are_refused(void **state)
{
	const char *paths[] = {path[0], path[1]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	put_file(0, "first.json", RANK_OF("1", "4"));
	put_file(1, "second.json", RANK_OF("0", "8"));
	assert_int_equal(nt_trace_read_kineto(paths, 2, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "not of one job: the sizes are 8 and 4 ranks"));
	put_file(0, "first.json", RANK_OF("0", "1"));
	put_file(1, "second.json",
		 "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":1}]");
	assert_int_equal(rename(path[1], "build/worker7.json"), 0);
	(void)snprintf(path[1], sizeof(path[1]), "build/worker7.json");
	assert_int_equal(nt_trace_read_kineto(paths, 2, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "not of one job: the first states a size of 1 ranks"));
}

static void assert_kineto_refused(const char *text, const char *why)
{
	const char *paths[] = {path[0]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	put_file(0, "rank3.json", text);
	assert_int_equal(nt_trace_read_kineto(paths, 1, &trace, &error), -EBADMSG);
	assert_null(trace);
	if (!strstr(error.text, why))
		fail_msg("'%s' does not say '%s'", error.text, why);
}

static void a_damaged_kineto_trace_is_refused_with_its_reason(void **state)
{
	(void)state;
	assert_kineto_refused("", "invalid JSON");
	assert_kineto_refused("{\"traceEvents\": [", "invalid JSON");
	assert_kineto_refused("{}", "traceEvents");
	assert_kineto_refused("[]", "no GPU kernels");
	assert_kineto_refused("{\"distributedInfo\":{\"rank\":-4},\"traceEvents\":[]}",
			      "rank unknown");
	assert_kineto_refused(RANK_OF("5", "5"), "world_size is not a number from 6 to");
	assert_kineto_refused(RANK_OF("5", "99999999999"), "world_size is not");
	assert_kineto_refused(RANK_OF("5", "\"8\""), "world_size is not");
	assert_kineto_refused(
		"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":-1,\"dur\":1}]",
		"expected ts and dur");
	assert_kineto_refused(
		"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1e300,\"dur\":1}]",
		":1: event 0: 'k': expected ts and dur");
	assert_kineto_refused("[{\"ph\":\"M\"},\n{\"ph\":\"X\",\"name\":\"k\",\"ts\":[]}]",
			      ":2: event 1: 'k': expected ts and dur");
	assert_kineto_refused(
		"{\"other\": [[],\n[]],\n\"traceEvents\": [{\"args\": {\"a\": [1,\n2]}},"
		"\n7,{\"ph\":\"X\",\"name\":\"k\",\"ts\":[]}], \"last\": [1, 2, 3]}",
		":5: event 2: 'k': expected ts and dur");
	assert_kineto_refused(
		"{\"traceEvents\":[],\n\"distributedInfo\":\n{\"rank\":5,\"world_size\":3}}",
		":2: distributedInfo: world_size is not a number from 6 to");
}

static void two_files_of_one_rank_are_refused(void **state)
{
	const char *paths[] = {path[0], path[0]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	put_file(0, "twice.json", rank_0);
	assert_int_equal(nt_trace_read_kineto(paths, 2, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "both are of rank 0"));
}

/* ---- verdicts on recorded jobs ------------------------------------------------------------ */

static struct nt_judgement *judge(const char *file)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_rules rules = nt_rules_default();
	struct nt_judgement *judgement = NULL;
	struct nt_trace_error error = {0};

	assert_int_equal(nt_trace_read_straggler(file, &trace, &error), 0);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	return judgement;
}

static void the_slowed_worker_of_AR_is_named_once_and_nobody_else(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_wire_incident *incident;

	(void)state;
	judgement = judge("tests/data/straggler/trace-AR.csv.gz");
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "compute");
	assert_int_equal(incident->tier, NT_TIER_T3);
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "rank");
	assert_int_equal(incident->culprit[0].rank, 0);
	/* Compared with its own stage alone: ranks 4, 8 and 12. */
	assert_int_equal(incident->culprit[0].peer_count, 3);
	assert_true(incident->slowdown > 2);
}

static void the_long_last_stage_of_ST_is_an_imbalance_and_accuses_nobody(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;

	(void)state;
	judgement = judge("tests/data/straggler/trace-ST.csv.gz");
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "imbalance");
	for (size_t i = 0; i < judgement->judged[0].incident.culprits; i++)
		assert_string_equal(judgement->judged[0].incident.culprit[i].kind, "stage");
}

/* What changes at step 25. For rank 1 its replicas wait. */
struct slowing {
	double network, compute; /* times as long: calls of the last stage, passes of rank 1 */
	double late, idle; /* seconds of rank 1, before its pass and after it */
	double stall; /* seconds of rank 5, of the last stage, before it receives */
};

/* A job of four replicas and two stages. */
static void put_slowing(struct slowing slowing)
{
	static const struct slowing usual = {1, 1, 0, 0};
	static char text[512 * 1024];
	size_t at = (size_t)snprintf(text, sizeof(text), HEADER);

	for (unsigned int step = 0; step < 45; step++) {
		const struct slowing *now = step < 25 ? &usual : &slowing;

		for (unsigned int rank = 0; rank < 8; rank++) {
			const unsigned int replica = rank % 4, stage = rank / 4;
			const struct slowing *own = rank == 1 ? now : &usual;
			/* Some noise, without which a width is zero. */
			const double noise = 1 + 0.004 * ((rank * 7 + step * 5) % 5);
			const double transfer = 0.1 * noise * (stage ? now->network : 1);
			const double stall = rank == 5 ? now->stall : 0;
			const double begin = transfer + stall + own->late;
			const double work = 0.6 * noise * own->compute;
			const double most = stage ? 0.6 + now->stall - stall
						  : 0.6 * now->compute + now->late + now->idle;
			int n = snprintf(
				text + at, sizeof(text) - at,
				"%u,%u,%u,%u,params-all-gather,0,%f,0,0,-1,-1\n"
				"%u,%u,%u,%u,forward-recv,%f,0,0,-1,-1,-1\n"
				"%u,%u,%u,%u,forward-compute,%f,%f,0,0,0,%u\n"
				"%u,%u,%u,%u,grads-reduce-scatter,%f,%f,0,0,-1,-1\n",
				replica, stage, rank, step, transfer, replica, stage, rank, step,
				transfer + stall, replica, stage, rank, step, begin, work, stage,
				replica, stage, rank, step, begin + work + own->idle,
				most - 0.6 * own->compute - own->late - own->idle + transfer);

			assert_true(n > 0 && (size_t)n < sizeof(text) - at);
			at += (size_t)n;
		}
	}
	put_file(0, "slowing.csv", text);
}

static void a_network_that_turns_slow_in_a_table_is_named_by_its_communicator(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_wire_incident *incident;

	(void)state;
	put_slowing((struct slowing){3, 1, 0, 0});
	judgement = judge(path[0]);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "network");
	assert_int_equal(incident->tier, NT_TIER_T3);
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "communicator");
	/* 0.4 of 0.8 s more. */
	assert_true(fabs(incident->slowdown - 1.5) < 0.05);
}

static void waiting_for_a_slow_rank_in_a_table_is_no_slow_network(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_wire_incident *incident;

	(void)state;
	put_slowing((struct slowing){1, 2, 0, 0});
	judgement = judge(path[0]);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "compute");
	assert_int_equal(incident->culprits, 1);
	assert_int_equal(incident->culprit[0].rank, 1);
}

static void a_host_that_begins_late_in_a_table_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_wire_incident *incident;

	(void)state;
	put_slowing((struct slowing){1, 1, 0.3, 0});
	judgement = judge(path[0]);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "host");
	assert_int_equal(incident->culprits, 1);
	assert_int_equal(incident->culprit[0].rank, 1);
	/* 0.3 of 0.8 s more. */
	assert_true(fabs(incident->slowdown - 1.38) < 0.05);
}

static void a_host_of_a_later_stage_that_receives_late_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;

	(void)state;
	put_slowing((struct slowing){1, 1, .stall = 0.3});
	judgement = judge(path[0]);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "host");
	assert_int_equal(judgement->judged[0].incident.culprits, 1);
	assert_int_equal(judgement->judged[0].incident.culprit[0].rank, 5);
}

/* Ranks that wait may idle before a collective, too: a note states the longer steps alone. */
static void longer_steps_of_a_table_without_a_culprit_are_noted(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_wire_incident *incident;

	(void)state;
	put_slowing((struct slowing){1, 1, 0, 0.3});
	judgement = judge(path[0]);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "job-wide");
	assert_string_equal(incident->severity, "info");
	assert_int_equal(incident->culprits, 0);
	assert_true(fabs(incident->slowdown - 1.38) < 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			a_table_becomes_a_frame_a_step_with_the_sum_of_compute_as_own_work,
			remove_files),
		cmocka_unit_test_teardown(
			the_transfer_of_a_group_is_the_shortest_duration_of_each_of_its_calls,
			remove_files),
		cmocka_unit_test_teardown(
			a_group_with_a_call_that_not_all_made_once_has_no_transfer, remove_files),
		cmocka_unit_test_teardown(
			garbage_collection_and_idle_time_before_work_are_the_hosts, remove_files),
		cmocka_unit_test_teardown(a_damaged_table_is_refused_by_line_and_column,
					  remove_files),
		cmocka_unit_test_teardown(a_table_cut_short_in_its_compression_is_refused,
					  remove_files),
		cmocka_unit_test(a_missing_file_is_enoent_and_says_so),
		cmocka_unit_test_teardown(
			kineto_ranks_are_compared_by_the_order_of_their_collectives, remove_files),
		cmocka_unit_test_teardown(kineto_files_of_some_ranks_are_incomplete_and_say_so,
					  remove_files),
		cmocka_unit_test_teardown(kineto_files_of_jobs_of_different_sizes_are_refused,
					  remove_files),
		cmocka_unit_test_teardown(a_damaged_kineto_trace_is_refused_with_its_reason,
					  remove_files),
		cmocka_unit_test_teardown(two_files_of_one_rank_are_refused, remove_files),
		cmocka_unit_test(the_slowed_worker_of_AR_is_named_once_and_nobody_else),
		cmocka_unit_test(the_long_last_stage_of_ST_is_an_imbalance_and_accuses_nobody),
		cmocka_unit_test_teardown(
			a_network_that_turns_slow_in_a_table_is_named_by_its_communicator,
			remove_files),
		cmocka_unit_test_teardown(waiting_for_a_slow_rank_in_a_table_is_no_slow_network,
					  remove_files),
		cmocka_unit_test_teardown(a_host_that_begins_late_in_a_table_is_named,
					  remove_files),
		cmocka_unit_test_teardown(a_host_of_a_later_stage_that_receives_late_is_named,
					  remove_files),
		cmocka_unit_test_teardown(longer_steps_of_a_table_without_a_culprit_are_noted,
					  remove_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
