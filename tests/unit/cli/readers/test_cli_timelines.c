/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Timelines of many ranks: what each format says of a slow rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/readers/timelines.h"
#include "cli/replay/replay.h"
#include "common/base/buf.h"
#include "tests/unit/scratch.h"

enum {
	STAGES = 2,
	REPLICAS = 4,
	RANKS = STAGES * REPLICAS, /* rank: stage × 4 + replica */
	STEPS = 40,
};

static char dir[SCRATCH_BYTES], path[2][SCRATCH_BYTES + 32];
static const char *paths[2] = {path[0], path[1]};
static struct nt_trace_error error;
static struct nt_buf events[2];

static int set_up(void **state)
{
	(void)state;
	error = (struct nt_trace_error){0};
	return scratch_make(dir);
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		nt_buf_release(&events[i]);
	scratch_remove(dir);
	return 0;
}

static void add(int file, const char *fmt, ...)
{
	char event[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(event, sizeof(event), fmt, ap);
	va_end(ap);
	assert_int_equal(
		nt_buf_printf(&events[file], "%s%s", events[file].len ? ",\n" : "[", event), 0);
}

static int read_files(int files, struct nt_trace **ret_trace)
{
	for (int i = 0; i < files; i++) {
		FILE *file;

		(void)snprintf(path[i], sizeof(path[i]), "%s/trace_step%d", dir, i);
		file = fopen(path[i], "w");
		assert_non_null(file);
		assert_true(fprintf(file, "%.*s]", (int)events[i].len, (char *)events[i].data) > 0);
		assert_int_equal(fclose(file), 0);
	}
	return nt_trace_read_timelines(paths, (size_t)files, ret_trace, &error);
}

static void must_read(int files, struct nt_trace **ret_trace)
{
	if (read_files(files, ret_trace) != 0)
		fail_msg("%s", error.text);
}

static void assert_names(const struct nt_trace *trace, uint32_t rank)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();
	size_t named = 0;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;

		/* The stages differ from the start, and that is nobody's fault. */
		if (strcmp(incident->class, "imbalance") == 0)
			continue;
		assert_string_equal(incident->class, "compute");
		assert_int_equal(incident->culprits, 1);
		assert_string_equal(incident->culprit[0].kind, "rank");
		assert_int_equal(incident->culprit[0].rank, rank);
		named++;
	}
	assert_int_equal(named, 1);
}

/* The second stage computes twice as long. */
static int own_of(int rank, int step, int slow)
{
	const int own = rank < REPLICAS ? 50000 : 100000;

	return (rank == slow ? own * 3 / 2 : own) + (step * 7 + rank * 13) % 11 * 20;
}

/* As scripts/aggregate.py writes it. Tensor-parallel ranks wait for each other inside of a pass. */
static void play_megatron(int slow)
{
	for (int n = 0; n < STEPS; n++) {
		for (int i = 0; i < RANKS; i++) {
			const int own = own_of(i, n, slow), start = 1000000 * n;
			char ids[128];

			(void)snprintf(
				ids, sizeof(ids),
				"\"iteration\": %d, \"g_rk\": %d, \"dp_rk\": %d, \"pp_rk\": %d, "
				"\"tp_rk\": 0",
				n, i, i % REPLICAS, i / REPLICAS);
			add(0,
			    "{\"name\": \"forward\", \"ph\": \"X\", \"ts\": %d, \"dur\": 300000, "
			    "\"pid\": %d, \"tid\": 0, \"args\": {%s}}",
			    start, i, ids);
			add(0,
			    "{\"name\": \"_reduce\", \"ph\": \"X\", \"ts\": %d, \"dur\": %d, \"pid\": "
			    "%d, \"tid\": 0, \"args\": {%s, \"group\": [0, 1]}}",
			    start + own, 300000 - own, i, ids);
			add(0,
			    "{\"name\": \"allreduce\", \"ph\": \"X\", \"ts\": %d, \"dur\": 1000, "
			    "\"pid\": %d, \"tid\": 0, \"args\": {%s, \"group\": [0, 1]}}",
			    start + 300000, i, ids);
			add(0,
			    "{\"name\": \"mlp\", \"ph\": \"X\", \"ts\": %d, \"dur\": 10, \"pid\": "
			    "%d, \"tid\": 0, \"args\": {%s}}",
			    start, i, ids);
		}
	}
	add(0, "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": "
	       "\"DP0-PP0-TP0\"}}");
}

static void communication_inside_a_pass_is_no_own_work(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	play_megatron(6);
	must_read(1, &trace);
	assert_int_equal(trace->frames, STEPS);
	assert_int_equal(trace->frame[0].frame.ranks, RANKS);
	assert_int_equal(trace->frame[0].rank[0].own_ns, 50000000);
	assert_int_equal(trace->frame[0].rank[0].comm_ns, 251000000);
	assert_int_equal(trace->frame[0].rank[6].stage, 1);
	assert_int_equal(trace->frame[0].rank[6].replica, 2);
	assert_int_equal(trace->frame[5].frame.end_ns - trace->frame[5].frame.start_ns, 301000000);
	assert_names(trace, 6);
}

static void passes_inside_of_passes_count_once(void **state)
{
	static const char *const ids =
		"\"iteration\": 0, \"g_rk\": 0, \"dp_rk\": 0, \"pp_rk\": 0, \"tp_rk\": 0";
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	add(0, "{\"name\": \"forward\", \"ph\": \"X\", \"ts\": 0, \"dur\": 100, \"args\": {%s}}",
	    ids);
	add(0, "{\"name\": \"forward\", \"ph\": \"X\", \"ts\": 10, \"dur\": 20, \"args\": {%s}}",
	    ids);
	add(0, "{\"name\": \"backward\", \"ph\": \"X\", \"ts\": 90, \"dur\": 30, \"args\": {%s}}",
	    ids);
	/* From one pass into the next, and twice. */
	for (int i = 0; i < 2; i++)
		add(0,
		    "{\"name\": \"x\", \"ph\": \"X\", \"ts\": 95, \"dur\": 10, \"args\": {%s, "
		    "\"group\": []}}",
		    ids);
	must_read(1, &trace);
	assert_int_equal(trace->frame[0].rank[0].own_ns, 110000);
	assert_int_equal(trace->frame[0].rank[0].comm_ns, 10000);
}

/* As ndtimeline writes it, one file for each machine. */
static void play_vescale(int slow)
{
	for (int n = 0; n < STEPS; n++) {
		for (int i = 0; i < RANKS; i++) {
			const double start = 1.7e15 + 1e6 * n;

			for (int k = 0; k < 3; k++) {
				static const char *const names[] = {"forward-compute",
								    "grads-reduce-scatter",
								    "no-such-metric"};
				const int own = own_of(i, n, slow);

				add(i >= REPLICAS,
				    "{\"name\": \"%s\", \"cat\": \"x\", \"pid\": %d, \"tid\": %d, "
				    "\"args\": {\"rank\": %d, \"step\": %d, \"tp\": 0, \"pp\": %d}, "
				    "\"ts\": %.1f, \"dur\": %d.5, \"ph\": \"X\"}",
				    names[k], i % REPLICAS, i * 10, i, n, i / REPLICAS,
				    start + (k ? own : 0), k ? 300000 - own : own);
			}
		}
	}
}

static void files_of_two_machines_are_one_job(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	play_vescale(3);
	must_read(2, &trace);
	assert_int_equal(trace->frames, STEPS);
	assert_int_equal(trace->frame[7].frame.ranks, RANKS);
	assert_int_equal(trace->frame[7].frame.samples, 0);
	assert_int_equal(trace->frame[0].rank[0].own_ns, 50000500);
	assert_names(trace, 3);
}

static void a_step_in_two_files_is_refused(void **state)
{
	struct nt_trace *trace = NULL;

	(void)state;
	play_vescale(3);
	for (int i = 0; i < 2; i++)
		add(i,
		    "{\"name\": \"forward-compute\", \"pid\": 0, \"args\": {\"rank\": 5, \"step\": "
		    "1, \"pp\": 0}, \"ts\": 1, \"dur\": 1, \"ph\": \"X\"}");
	assert_int_equal(read_files(2, &trace), -EBADMSG);
	assert_non_null(strstr(error.text, "both have step 1 of rank 5"));
}

/* As to_timeline.py writes it: the rank is in the thread's number, the stage in its name. */
static void play_straggler(int slow, bool named)
{
	for (int n = 0; n < STEPS; n++)
		for (int i = 0; i < RANKS; i++)
			add(0,
			    "{\"name\":\"backward-compute\",\"cat\":\"backward-compute\",\"pid\":%d,"
			    "\"tid\":%d,\"ts\":100.0,\"dur\":%d.25,\"ph\":\"X\",\"args\":{\"step\":%d,"
			    "\"model_chunk\":null,\"mb_id\":0,\"seq_id\":0}}",
			    i % REPLICAS, i * 5, own_of(i, n, slow), n + 3);
	for (int i = 0; i < RANKS && named; i++)
		add(0,
		    "{\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"ph\":\"M\",\"args\":{\"name\":\"PP "
		    "rank %d, TP rank 0, compute\"}}",
		    i % REPLICAS, i * 5, i / REPLICAS);
}

static void threads_of_stragglers_are_ranks(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	play_straggler(1, true);
	must_read(1, &trace);
	assert_int_equal(trace->frame[0].frame.ranks, RANKS);
	assert_int_equal(trace->frame[0].rank[5].stage, 1);
	assert_int_equal(trace->frame[0].rank[5].replica, 1);
	assert_names(trace, 1);
}

/* Of several names of a thread the last counts, also for the operations before it. */
static void the_last_name_of_a_thread_counts(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	for (int i = 0; i < RANKS; i++)
		add(0,
		    "{\"name\":\"thread_name\",\"tid\":%d,\"ph\":\"M\",\"args\":{\"name\":\"PP rank "
		    "7, TP rank 0, compute\"}}",
		    i * 5);
	play_straggler(1, true);
	must_read(1, &trace);
	for (size_t i = 0; i < RANKS; i++)
		assert_int_equal(trace->frame[0].rank[i].stage, i / REPLICAS);
	assert_names(trace, 1);
}

static void assert_refused(const char *text)
{
	struct nt_trace *trace = NULL;

	error = (struct nt_trace_error){0};
	assert_int_equal(read_files(1, &trace), -EBADMSG);
	assert_null(trace);
	if (!strstr(error.text, text))
		fail_msg("%s", error.text);
	nt_buf_clear(&events[0]);
}

static void what_is_not_sound_is_refused_with_its_place(void **state)
{
	(void)state;
	play_straggler(1, false);
	assert_refused("trace_step0:1: event 0: thread 0: rank unknown: no thread_name");
	add(0, "{\"ph\": \"M\"}");
	add(0,
	    "{\"name\": \"forward-compute\", \"pid\": 0, \"args\": {\"rank\": 7000000, \"step\": 1, "
	    "\"pp\": 0}, \"ts\": 1, \"dur\": 1, \"ph\": \"X\"}");
	assert_refused("trace_step0:2: event 1: 'rank': expected an integer from 0 to ");
	add(0, "{\"name\": \"forward-compute\", \"pid\": 0, \"args\": {\"rank\": 7, \"step\": 1, "
	       "\"pp\": 0}, \"ts\": -1, \"dur\": 1, \"ph\": \"X\"}");
	assert_refused("'ts': expected microseconds from 0");
	add(0, "{\"name\": \"other\", \"ph\": \"X\", \"args\": {}}");
	assert_refused("no operations with a known name, such as forward or forward-compute");
}

#define TIMELINE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIMELINE_TEST(communication_inside_a_pass_is_no_own_work),
		TIMELINE_TEST(passes_inside_of_passes_count_once),
		TIMELINE_TEST(files_of_two_machines_are_one_job),
		TIMELINE_TEST(a_step_in_two_files_is_refused),
		TIMELINE_TEST(threads_of_stragglers_are_ranks),
		TIMELINE_TEST(the_last_name_of_a_thread_counts),
		TIMELINE_TEST(what_is_not_sound_is_refused_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
