/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sysTrace's markers: what the reader makes of files, and what it says of damaged ones. */
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

#include "cli/grid.h"
#include "cli/judge.h"
#include "cli/markers.h"
#include "cli/period.h"
#include "cli/stage.h"
#include "cli/trace.h"
#include "common/buf.h"
#include "proto/wire.h"

#define HEADER "Flag,Id,Kind,Name,SourceKind,Timestamp,DeviceId,StreamId,ProcessId,ThreadId\n"
#define GATHER "comm:HcclAllGather!tp!fp16!1024"

enum {
	MAX_FILES = 16,
};

static char path[MAX_FILES][64];

static void put_bytes(int rank, const void *text, size_t len)
{
	FILE *file;

	(void)snprintf(path[rank], sizeof(path[rank]), "build/hccl_activity-10.0.%d.1-.%d.csv",
		       (int)getpid(), rank);
	file = fopen(path[rank], "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static void put_file(int rank, const char *text)
{
	put_bytes(rank, text, strlen(text));
}

static int remove_files(void **state)
{
	(void)state;
	for (int i = 0; i < MAX_FILES; i++) {
		if (*path[i])
			(void)unlink(path[i]);
		*path[i] = '\0';
	}
	return 0;
}

/* ---- names of files ----------------------------------------------------------------------- */

static void assert_place(const char *name, uint32_t rank, const char *node)
{
	struct nt_trace_node got = {"untouched"};
	uint32_t number = 77;

	assert_true(nt_markers_place(name, &number, &got));
	assert_int_equal(number, rank);
	assert_string_equal(got.name, node);
}

static void a_file_is_named_by_address_and_rank(void **state)
{
	struct nt_trace_node node;
	uint32_t rank;

	(void)state;
	assert_place("/data/hccl_activity-10.0.0.1-.3.csv", 3, "10.0.0.1");
	assert_place("hccl_activity-10.0.0.1-.131071.csv.gz", 131071, "10.0.0.1");
	/* sysTrace takes what is between the first two '-'. */
	assert_place("hccl_activity-node-with-dashes-.12.csv", 12, "node-with-dashes");
	assert_place("mspti-marker-10.0.0.1-7.csv", 7, "10.0.0.1");
	assert_place("/proc/self/fd/5", 5, "");
	assert_place("hccl_activity-.4.csv", 4, "");
	assert_false(nt_markers_place("hccl_activity-10.0.0.1-.csv", &rank, &node));
	assert_false(nt_markers_place("hccl_activity-10.0.0.1-.131072.csv", &rank, &node));
	assert_false(
		nt_markers_place("hccl_activity-10.0.0.1-.99999999999999999999.csv", &rank, &node));
	assert_false(nt_markers_place("", &rank, &node));

	assert_true(nt_markers_is_file("a/hccl_activity-10.0.0.1-.3.csv.gz"));
	assert_true(nt_markers_is_file("hccl_activity-10.0.0.1-.3.csv"));
	assert_false(nt_markers_is_file("hccl_activity-10.0.0.1-.3.json"));
	assert_false(nt_markers_is_file("hccl_activity-/trace.csv"));
	assert_false(nt_markers_is_file("trace-AR.csv.gz"));
}

/* ---- one file ----------------------------------------------------------------------------- */

static struct nt_markers *read_markers(const char *text)
{
	struct nt_markers *markers = NULL;
	struct nt_trace_error error = {0};

	put_file(0, text);
	if (nt_markers_read(path[0], &markers, &error) < 0)
		fail_msg("%s", error.text);
	return markers;
}

static void four_rows_of_one_id_are_an_operation_in_whatever_order(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers =
		read_markers(HEADER "32,9,1,,1,5000,0,0,1,1\n"
				    "32,9,1,,0,1500,0,0,1,1\n"
				    "16,9,1," GATHER ",0,1000,0,0,1,1\n"
				    "16,9,1,,1,2000,0,0,1,1\n");
	const struct nt_marker_op *op = &markers->op[0];

	(void)state;
	assert_int_equal(markers->ops, 1);
	assert_int_equal(op->start_ns, 2000);
	assert_int_equal(op->end_ns, 5000);
	assert_int_equal(op->launch_ns, 1000);
	assert_int_equal(op->launched_ns, 1500);
	assert_int_equal(markers->kinds, 1);
	assert_string_equal(markers->kind[0].name, "HcclAllGather");
	assert_int_equal(markers->kind[0].op, NT_OP_ALL_GATHER);
	assert_int_equal(markers->kind[0].frame_kind, NT_FRAME_SYNCHRONISING);
	assert_int_equal(markers->kind[0].bytes, 2048);
	assert_int_equal(markers->unfinished, 0);
	assert_true(markers->has_host);
}

static void an_id_that_comes_again_is_another_operation(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers =
		read_markers(HEADER "16,1,1," GATHER ",1,2000,0,0,1,1\n"
				    "32,1,1,,1,3000,0,0,1,1\n"
				    "16,1,1,comm:HcclSend!pp!fp32!8,1,9000,0,0,1,1\n"
				    "32,1,1,,1,9500,0,0,1,1\n");

	(void)state;
	assert_int_equal(markers->ops, 2);
	assert_int_equal(markers->op[0].end_ns, 3000);
	assert_int_equal(markers->op[1].start_ns, 9000);
	assert_string_equal(markers->kind[markers->op[1].kind].name, "HcclSend");
	assert_int_equal(markers->kind[markers->op[1].kind].frame_kind, NT_FRAME_POINT_TO_POINT);
}

static void what_is_cut_by_the_ends_of_the_collection_is_counted_and_left_out(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers =
		read_markers(HEADER "32,1,1,,1,1000,0,0,1,1\n" /* nobody knows of what */
				    "16,2,1," GATHER ",1,2000,0,0,1,1\n"
				    "32,2,1,,1,3000,0,0,1,1\n"
				    "16,3,1," GATHER ",1,4000,0,0,1,1\n"
				    "16,4,1,my own marker,1,4000,0,0,1,1\n");

	(void)state;
	assert_int_equal(markers->ops, 1);
	assert_int_equal(markers->unfinished, 1);
	assert_false(markers->has_host);
}

static void a_name_may_have_commas_in_quotes(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers = read_markers(
		HEADER "16,1,1,\"comm:HcclAlltoAllV,ep group,int64,0\",1,2000,0,0,1,1\n"
		       "32,1,1,\"\",1,3000,0,0,1,1\n");

	(void)state;
	assert_int_equal(markers->ops, 1);
	assert_int_equal(markers->kind[0].frame_kind, NT_FRAME_ALL_TO_ALL);
	assert_int_equal(markers->kind[0].bytes, 0);
}

static void launches_of_another_clock_are_not_believed(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers =
		read_markers(HEADER "16,1,1," GATHER ",0,9000,0,0,1,1\n"
				    "32,1,1,,0,9100,0,0,1,1\n"
				    "16,1,1," GATHER ",1,2000,0,0,1,1\n"
				    "32,1,1,,1,3000,0,0,1,1\n");

	(void)state;
	assert_int_equal(markers->ops, 1);
	assert_false(markers->has_host);
	assert_int_equal(markers->op[0].launched_ns, 0);
}

static void assert_refused(const char *text, const char *why)
{
	const char *paths[] = {path[0]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	put_file(0, text);
	assert_int_equal(nt_trace_read_systrace(paths, 1, &trace, &error), -EBADMSG);
	assert_null(trace);
	assert_non_null(strstr(error.text, path[0]));
	if (!strstr(error.text, why))
		fail_msg("'%s' does not say '%s'", error.text, why);
}

static void a_damaged_file_is_refused_by_line_and_reason(void **state)
{
	static char line[70000];

	(void)state;
	assert_refused("Flag,Id,Kind\n", ":1: no column 'Name'");
	assert_refused("Id,Name,SourceKind,Time\n", ":1: no column 'Timestamp'");
	assert_refused(HEADER "16,1,1," GATHER ",1,2000\n", ":2: 6 fields, the header has 10");
	assert_refused(HEADER "16,1,1," GATHER ",1,2000,0,0,1,1\n32,1", ":3: 2 fields");
	assert_refused(HEADER "16,-1,1,,1,2000,0,0,1,1\n", ":2: Id is '-1'");
	assert_refused(HEADER "16,1,1,,2,2000,0,0,1,1\n", ":2: SourceKind is '2'");
	assert_refused(HEADER "16,1,1,,1,1e9,0,0,1,1\n", ":2: Timestamp is '1e9'");
	assert_refused(HEADER "16,1,1,,1,9223372036854775808,0,0,1,1\n", ":2: Timestamp is '9223");
	assert_refused(HEADER "16,1,1,comm:HcclAllGather,1,2000,0,0,1,1\n", ":2: Name is 'comm:");
	assert_refused(HEADER "16,1,1,comm:!tp!fp16!1,1,2000,0,0,1,1\n", ":2: Name is 'comm:!tp");
	assert_refused(HEADER "16,1,1,comm:HcclAllGather!tp!fp16!many,1,2000,0,0,1,1\n",
		       ":2: Name is");
	assert_refused(HEADER "16,1,1,\"comm:open,1,2000,0,0,1,1\n", "a quote left open");
	assert_refused("", "no step");
	assert_refused(HEADER, "no step");
	memset(line, 'x', sizeof(line) - 1);
	assert_refused(line, ":1: line longer than 64 KiB");
	put_bytes(0, "Flag\0\n", 6);
	assert_refused(HEADER "\n", ":2: 1 fields");
}

static void a_nul_byte_is_no_text(void **state)
{
	const char *paths[] = {path[0]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	put_bytes(0, HEADER "16\0,1", sizeof(HEADER) + 4);
	assert_int_equal(nt_trace_read_systrace(paths, 1, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, ":2: damaged"));
}

static void a_missing_file_is_enoent_and_says_so(void **state)
{
	const char *paths[] = {"build/hccl_activity-none-.1.csv"};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	assert_int_equal(nt_trace_read_systrace(paths, 1, &trace, &error), -ENOENT);
	assert_non_null(strstr(error.text, paths[0]));
}

/* ---- periods ------------------------------------------------------------------------------ */

/* A letter a call; capital ones are the small calls. */
static void call(struct nt_buf *calls, const char *unit, int times)
{
	for (int i = 0; i < times; i++)
		assert_int_equal(nt_buf_append(calls, unit, strlen(unit)), 0);
}

static struct nt_period find_period(struct nt_buf *calls)
{
	struct nt_period period = {0};
	uint64_t shape[128];
	uint32_t kind[4096];

	assert_true(calls->len <= 4096);
	for (size_t i = 0; i < calls->len; i++)
		kind[i] = calls->data[i];
	for (uint32_t i = 0; i < 128; i++)
		shape[i] = i;
	assert_int_equal(nt_period_find(kind, calls->len, shape, 128, &period), 0);
	calls->len = 0;
	return period;
}

static void a_step_is_the_period_of_the_calls(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	struct nt_period period;

	(void)state;
	call(&calls, "abcD", 30);
	period = find_period(&calls);
	assert_int_equal(period.calls, 4);
	assert_true(period.has_anchor);
	assert_int_equal(period.anchor, 'D');

	/* Nothing comes once. */
	call(&calls, "aabbb", 30);
	period = find_period(&calls);
	assert_int_equal(period.calls, 5);
	assert_false(period.has_anchor);

	call(&calls, "a", 300);
	assert_int_equal(find_period(&calls).calls, 1);
	assert_int_equal(find_period(&calls).calls, 1);
	call(&calls, "abcdefghijk", 1);
	assert_int_equal(find_period(&calls).calls, 1);
}

static void how_a_job_starts_and_what_it_seldom_does_are_no_steps(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	struct nt_period period;

	(void)state;
	/* Fifty layers that are alike, and a norm: the layer fits as well, almost. */
	for (int step = 0; step < 30; step++) {
		call(&calls, "ab", 50);
		call(&calls, "N", 1);
	}
	period = find_period(&calls);
	assert_int_equal(period.calls, 101);
	assert_int_equal(period.anchor, 'N');

	/* A checkpoint every tenth step. */
	call(&calls, "zzzyyyx", 1);
	for (int step = 0; step < 60; step++) {
		call(&calls, "aabbccN", 1);
		if (step % 10 == 9)
			call(&calls, "k", 1);
	}
	period = find_period(&calls);
	assert_int_equal(period.calls, 7);
	assert_int_equal(period.anchor, 'N');
}

/* ---- frames ------------------------------------------------------------------------------- */

static void every_time_falls_into_a_frame_that_ends_no_sooner(void **state)
{
	static const uint64_t lengths[] = {1, 1000000, 700000000, 5000000000, INT64_MAX / 4};
	static const uint64_t times[] = {
		0,        1, 499999999, 999999999999, INT64_MAX / 4, INT64_MAX / 2, INT64_MAX - 1,
		INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct nt_timeline_step step[3];
		const struct nt_steps steps = {step, 3};
		struct nt_grid grid = {0};
		int64_t last = INT64_MIN;

		for (uint64_t j = 0; j < 3; j++)
			step[j] = (struct nt_timeline_step){.start_ns = j * lengths[i],
							    .end_ns = (j + 1) * lengths[i],
							    .count = 1};
		assert_int_equal(nt_grid_make(&grid, &steps), 0);
		assert_true(grid.length_ns >= 500000000);
		for (size_t j = 0; j < sizeof(times) / sizeof(times[0]); j++) {
			const int64_t bin = nt_grid_bin(&grid, times[j]);
			const uint64_t end = nt_grid_end(&grid, bin);

			assert_true(bin >= last);
			assert_true(end >= times[j]);
			/* And the one before ends too soon. */
			if (end > grid.length_ns && bin != 0)
				assert_true(nt_grid_end(&grid, bin - 1) < times[j]);
			last = bin;
		}
		nt_grid_release(&grid);
	}
}

/* ---- who does the same work --------------------------------------------------------------- */

static void those_that_reduce_together_do_the_same_work_but_not_along_a_pipeline(void **state)
{
	/* Two stages of two tensor partners, twice: ranks 0-3 are stage 0, 4-7 stage 1. */
	struct nt_stage_link link[] = {
		{10, 0, NT_STAGE_REDUCES},
		{10, 1, NT_STAGE_REDUCES}, /* tensor */
		{11, 2, NT_STAGE_REDUCES},
		{11, 3, NT_STAGE_REDUCES},
		{12, 4, NT_STAGE_REDUCES},
		{12, 5, NT_STAGE_REDUCES},
		{13, 6, NT_STAGE_REDUCES},
		{13, 7, NT_STAGE_REDUCES},
		{20, 0, NT_STAGE_REDUCES},
		{20, 2, NT_STAGE_REDUCES}, /* data */
		{21, 4, NT_STAGE_REDUCES},
		{21, 6, NT_STAGE_REDUCES},
		{30, 0, NT_STAGE_SENDS},
		{30, 4, NT_STAGE_SENDS}, /* pipelines */
		{31, 1, NT_STAGE_SENDS},
		{31, 5, NT_STAGE_SENDS},
		{32, 2, NT_STAGE_SENDS},
		{32, 6, NT_STAGE_SENDS},
		{33, 3, NT_STAGE_SENDS},
		{33, 7, NT_STAGE_SENDS},
		{40, 0, NT_STAGE_REDUCES},
		{40, 4, NT_STAGE_REDUCES}, /* an embedding */
		{50, 0, NT_STAGE_REDUCES},
		{50, 1, NT_STAGE_REDUCES}, /* all of them */
		{50, 2, NT_STAGE_REDUCES},
		{50, 3, NT_STAGE_REDUCES},
		{50, 4, NT_STAGE_REDUCES},
		{50, 5, NT_STAGE_REDUCES},
		{50, 6, NT_STAGE_REDUCES},
		{50, 7, NT_STAGE_REDUCES},
		{60, 8, 0},
	};
	int32_t stage[9];

	(void)state;
	assert_int_equal(nt_stage_find(link, sizeof(link) / sizeof(link[0]), 9, stage), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(stage[i], i < 4 ? 0 : 4);
	assert_int_equal(stage[8], -1);
	assert_int_equal(nt_stage_find(link, 0, 9, stage), 0);
	assert_int_equal(stage[0], -1);
}

/* ---- all ranks ---------------------------------------------------------------------------- */

static void put_op(struct nt_buf *buf, int id, const char *name, uint64_t start, uint64_t end)
{
	assert_int_equal(nt_buf_printf(buf, "16,%d,1,%s,1,%llu,0,0,1,1\n32,%d,1,,1,%llu,0,0,1,1\n",
				       id, name, (unsigned long long)start, id,
				       (unsigned long long)end),
			 0);
}

/*
 * Steps of 600 ms: a gather, 200 ms of work, a sum. `slow`: part of the gather's wait that is work
 * instead.
 */
static void put_rank(int rank, int steps, uint64_t slow_ms)
{
	const uint64_t ms = 1000000, start = 1749084000000 * ms + (uint64_t)rank;
	nt_autobuf struct nt_buf buf = {0};

	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < steps; i++) {
		const uint64_t at = start + (uint64_t)i * 600 * ms;

		put_op(&buf, 2 * i + 1, GATHER, at + (100 + slow_ms) * ms, at + 300 * ms);
		put_op(&buf, 2 * i + 2, "comm:HcclAllReduce!world!fp32!1", at + 500 * ms,
		       at + 600 * ms);
	}
	put_bytes(rank, buf.data, buf.len);
}

static struct nt_trace *read_ranks(int ranks)
{
	const char *paths[MAX_FILES];
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	/* The order in which they are given is of no account. */
	for (int i = 0; i < ranks; i++)
		paths[i] = path[ranks - 1 - i];
	if (nt_trace_read_systrace(paths, (size_t)ranks, &trace, &error) < 0)
		fail_msg("%s", error.text);
	return trace;
}

static void what_lies_between_the_operations_is_own_work_and_a_step_is_a_frame(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_rank *rank;

	(void)state;
	put_rank(0, 20, 0);
	put_rank(1, 20, 50);
	trace = read_ranks(2);
	assert_int_equal(trace->frames, 19); /* the first ends what nobody saw the beginning of */
	assert_int_equal(trace->steps, 19);
	assert_int_equal(trace->world, 2);
	assert_int_equal(trace->step[0].end_ns - trace->step[0].start_ns, 600000000);
	assert_int_equal(trace->nodes, 1);
	assert_string_equal(trace->place[1].op, "HcclAllGather");
	assert_true(trace->place[0].group == trace->place[1].group);

	rank = trace->frame[5].rank;
	assert_int_equal(rank[0].steps, 1);
	assert_int_equal(rank[0].step_ns, 600000000);
	assert_int_equal(rank[0].own_ns, 300000000);
	assert_int_equal(rank[0].own_blocked_ns, 300000000);
	assert_int_equal(rank[0].comm_ns, 300000000);
	assert_int_equal(rank[1].own_ns, 350000000);
	assert_int_equal(rank[1].own_tier, NT_FRAME_T2);
	assert_int_equal(rank[1].stage, 0);
	assert_int_equal(rank[1].comms, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct nt_frame_comm *comm = &rank[1].comm[i];

		assert_int_equal(comm->size, 2);
		assert_int_equal(comm->ops, 1);
		assert_int_equal(comm->op[0].calls, 1);
		assert_int_equal(comm->op[0].timed_calls, 1);
		if (comm->op[0].op == NT_OP_ALL_GATHER)
			assert_int_equal(comm->op[0].min_ns, 150000000);
	}
	assert_true(trace->frame[5].frame.completeness == 1);
	for (size_t i = 1; i < trace->frames; i++)
		assert_true(trace->frame[i].frame.start_ns == trace->frame[i - 1].frame.end_ns);
}

/* Steps of a large and a small sum of the same ranks, the large one that long once they have all come. */
static void put_sums(int rank, int steps, int from, uint64_t slow_ms)
{
	const uint64_t ms = 1000000, start = 1749084000000 * ms + (uint64_t)rank;
	nt_autobuf struct nt_buf buf = {0};
	uint64_t at = start;

	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < steps; i++) {
		const uint64_t late = (uint64_t)((i + rank) % 4) * 5 * ms;
		const uint64_t sum = i < from ? 40 : slow_ms;

		put_op(&buf, 2 * i + 1, "comm:HcclAllReduce!world!fp32!1000000",
		       at + 500 * ms + late, at + (515 + sum) * ms);
		at += (515 + sum) * ms;
		put_op(&buf, 2 * i + 2, "comm:HcclAllReduce!world!fp32!1", at + 10 * ms,
		       at + 11 * ms);
		at += 11 * ms;
	}
	put_bytes(rank, buf.data, buf.len);
}

/* The shortest call of all is the small one, and says nothing of the network. */
static void a_slow_network_shows_in_the_calls_that_move_most(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_frame_op *op;

	(void)state;
	for (int rank = 0; rank < 4; rank++)
		put_sums(rank, 80, 40, 200);
	trace = read_ranks(4);
	op = &trace->frame[4].rank[0].comm[0].op[0];
	assert_int_equal(trace->frame[4].rank[0].comm[0].ops, 1);
	assert_int_equal(op->calls, 2);
	assert_int_equal(op->bytes, 4000004);
	/* That of the one large call, spread over two. */
	assert_true(op->min_ns >= 20000000 && op->min_ns <= 27500000);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "network");
	assert_true(fabs(judgement->judged[0].incident.slowdown - 726.0 / 566.0) < 0.02);
}

static void a_rank_whose_file_is_empty_lacks_and_one_without_a_file_is_missed(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const char *paths[] = {path[0], path[1], path[3]};
	struct nt_trace_error error = {0};

	(void)state;
	put_rank(0, 20, 0);
	put_file(1, HEADER);
	put_rank(3, 20, 0);
	assert_int_equal(nt_trace_read_systrace(paths, 3, &trace, &error), 0);
	assert_int_equal(trace->places, 3);
	assert_true(trace->place[1].lacks);
	assert_false(trace->place[0].lacks);
	assert_null(nt_trace_find_place(trace, 2));
	assert_int_equal(nt_trace_find_place(trace, 3)->rank, 3);
	assert_int_equal(trace->world, 4);
	assert_int_equal(trace->frame[0].frame.ranks, 2);
	assert_true(trace->frame[0].frame.completeness == 0.5);
}

static void steps_are_those_of_the_first_rank_that_has_enough_of_them(void **state)
{
	nt_auto(nt_trace) struct nt_trace *enough = NULL;
	nt_auto(nt_trace) struct nt_trace *few = NULL;

	(void)state;
	put_rank(0, 2, 0);
	put_rank(1, 20, 0);
	put_file(2, HEADER);
	enough = read_ranks(3);
	assert_int_equal(enough->steps, 19);
	put_rank(1, 2, 0);
	few = read_ranks(3);
	assert_int_equal(few->steps, 3); /* too short for a rhythm: each call is one */
	assert_true(few->frames >= 1);
	assert_true(few->place[2].lacks);
}

static void a_rank_is_unobserved_where_its_file_does_not_reach(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	put_rank(0, 20, 0);
	put_rank(1, 10, 0);
	trace = read_ranks(2);
	assert_int_equal(trace->frames, 19);
	assert_true(trace->frame[8].rank[1].observed);
	assert_false(trace->frame[9].rank[1].observed);
	assert_true(trace->frame[9].rank[1].silent);
	assert_true(trace->frame[9].frame.completeness == 0.5);
}

static void two_files_of_one_rank_are_refused(void **state)
{
	const char *paths[] = {path[0], path[0]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	put_rank(0, 20, 0);
	assert_int_equal(nt_trace_read_systrace(paths, 2, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "both are of rank 0"));
}

static void times_from_one_end_of_the_clock_to_the_other_do_no_harm(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	put_rank(0, 20, 0);
	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	put_op(&buf, 1, GATHER, 0, 1);
	put_op(&buf, 2, GATHER, 2, 3);
	put_op(&buf, 3, GATHER, INT64_MAX - 1, INT64_MAX);
	put_op(&buf, 4, GATHER, 0, INT64_MAX);
	put_bytes(1, buf.data, buf.len);
	trace = read_ranks(2);
	assert_true(trace->frames >= 19);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 0);
}

/* More communicators than a frame holds: the rest is left out of it, and still no own work. */
static void communicators_beyond_the_cap_are_left_out(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_autobuf struct nt_buf buf = {0};
	char name[64];

	(void)state;
	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < 5 * (NT_FRAME_MAX_COMMS + 10); i++) {
		const uint64_t at = (uint64_t)i * 10000000;

		(void)snprintf(name, sizeof(name), "comm:HcclAllReduce!group%d!fp32!1",
			       i % (NT_FRAME_MAX_COMMS + 10));
		put_op(&buf, i, name, at + 5000000, at + 10000000);
	}
	put_bytes(0, buf.data, buf.len);
	trace = read_ranks(1);
	assert_true(trace->frames >= 3);
	for (size_t i = 0; i < trace->frames; i++) {
		const struct nt_frame_rank *rank = trace->frame[i].rank;

		assert_true(rank->comms <= NT_FRAME_MAX_COMMS);
		assert_int_equal(rank->own_ns, rank->comm_ns);
	}
	assert_int_equal(trace->frame[1].rank->comms, NT_FRAME_MAX_COMMS);
	assert_int_equal(trace->dropped, 4 * 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_named_by_address_and_rank),
		cmocka_unit_test_teardown(four_rows_of_one_id_are_an_operation_in_whatever_order,
					  remove_files),
		cmocka_unit_test_teardown(an_id_that_comes_again_is_another_operation,
					  remove_files),
		cmocka_unit_test_teardown(
			what_is_cut_by_the_ends_of_the_collection_is_counted_and_left_out,
			remove_files),
		cmocka_unit_test_teardown(a_name_may_have_commas_in_quotes, remove_files),
		cmocka_unit_test_teardown(launches_of_another_clock_are_not_believed, remove_files),
		cmocka_unit_test_teardown(a_damaged_file_is_refused_by_line_and_reason,
					  remove_files),
		cmocka_unit_test_teardown(a_nul_byte_is_no_text, remove_files),
		cmocka_unit_test(a_missing_file_is_enoent_and_says_so),
		cmocka_unit_test(a_step_is_the_period_of_the_calls),
		cmocka_unit_test(how_a_job_starts_and_what_it_seldom_does_are_no_steps),
		cmocka_unit_test(every_time_falls_into_a_frame_that_ends_no_sooner),
		cmocka_unit_test(
			those_that_reduce_together_do_the_same_work_but_not_along_a_pipeline),
		cmocka_unit_test_teardown(
			what_lies_between_the_operations_is_own_work_and_a_step_is_a_frame,
			remove_files),
		cmocka_unit_test_teardown(
			a_rank_whose_file_is_empty_lacks_and_one_without_a_file_is_missed,
			remove_files),
		cmocka_unit_test_teardown(steps_are_those_of_the_first_rank_that_has_enough_of_them,
					  remove_files),
		cmocka_unit_test_teardown(a_rank_is_unobserved_where_its_file_does_not_reach,
					  remove_files),
		cmocka_unit_test_teardown(two_files_of_one_rank_are_refused, remove_files),
		cmocka_unit_test_teardown(a_slow_network_shows_in_the_calls_that_move_most,
					  remove_files),
		cmocka_unit_test_teardown(times_from_one_end_of_the_clock_to_the_other_do_no_harm,
					  remove_files),
		cmocka_unit_test_teardown(communicators_beyond_the_cap_are_left_out, remove_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
