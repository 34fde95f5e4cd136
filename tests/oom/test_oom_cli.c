/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Readers of files under failed allocations. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/flight/flight.h"
#include "cli/input/sources.h"
#include "cli/readers/input.h"
#include "cli/readers/timelines.h"
#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/report/report.h"
#include "tests/oom/oom.h"

static int print(const struct nt_trace *trace)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct nt_report report = {.source = "files"};
	nt_autobuf struct nt_buf text = {0};
	int r;

	r = nt_judgement_new(&judgement);
	r = r ?: nt_replay_trace(trace, &rules, judgement);
	if (r < 0)
		return r;
	nt_report_trace(&report, trace, judgement);
	return nt_report_text(&report, &text);
}

static int read_flight(void *data)
{
	static const char *const paths[] = {
		"tests/data/flight/gloo/rank_0.json.gz", "tests/data/flight/gloo/rank_1.json.gz",
		"tests/data/flight/gloo/rank_2.json.gz", "tests/data/flight/gloo/rank_3.json.gz"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	int r;

	(void)data;
	r = nt_trace_read_flight(paths, 4, &trace, &error);
	return r ?: print(trace);
}

/* Ranks without a dump are candidates, and keys of pg_status are matched. */
static int read_partial_flight(void *data)
{
	static const char *const paths[] = {"tests/data/flight/lock_gil_1st/_dump_8.gz",
					    "tests/data/flight/lock_gil_1st/_dump_10.gz",
					    "tests/data/flight/lock_gil_1st/_dump_11.gz",
					    "tests/data/flight/lock_gil_1st/_dump_12.gz",
					    "tests/data/flight/lock_gil_1st/_dump_13.gz",
					    "tests/data/flight/lock_gil_1st/_dump_15.gz"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	int r;

	r = nt_trace_read_flight(paths, *(size_t *)data, &trace, &error);
	return r ?: print(trace);
}

static int read_kineto(void *data)
{
	static const char *const paths[] = {"tests/fuzz/corpus/kineto/groups"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	int r;

	(void)data;
	r = nt_trace_read_kineto(paths, 1, &trace, &error);
	return r ?: print(trace);
}

static int read_pickle(void *data)
{
	static const char *const paths[] = {"tests/data/flight/pickled/fr_rank_1.gz"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};

	(void)data;
	return nt_trace_read_flight(paths, 1, &trace, &error);
}

static int read_timelines(void *data)
{
	static const char *const paths[] = {"tests/fuzz/corpus/timelines/megatronapp",
					    "tests/fuzz/corpus/timelines/vescale"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	int r;

	(void)data;
	r = nt_trace_read_timelines(paths, 2, &trace, &error);
	return r ?: print(trace);
}

/* A format that cannot be found out is unknown, and the file is left out. */
static int find_files(void *data)
{
	nt_auto(nt_sources) struct nt_sources *sources = NULL;
	struct nt_sources_choice choice = {0};
	struct nt_trace_error error = {0};
	int r;

	(void)data;
	r = nt_sources_new(&sources);
	r = r ?: nt_sources_add(sources, "tests/fuzz/corpus/kineto", &error);
	r = r ?: nt_sources_add(sources, "tests/data/flight", &error);
	return r ?: nt_sources_choose(sources, NT_FORMAT_FLIGHT, &choice, &error);
}

static void timelines_under_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(read_timelines, NULL) > 10);
}

static void files_are_found_under_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep_lenient(find_files, NULL) > 20);
}

static void pickles_under_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(read_pickle, NULL) > 20);
}

static void dumps_of_the_flight_recorder_under_failed_allocations(void **state)
{
	size_t given = 6;

	(void)state;
	assert_true(nt_oom_sweep(read_flight, NULL) > 20);
	assert_true(nt_oom_sweep(read_partial_flight, &given) > 20);
}

static void profiler_traces_with_groups_under_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(read_kineto, NULL) > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pickles_under_failed_allocations),
		cmocka_unit_test(dumps_of_the_flight_recorder_under_failed_allocations),
		cmocka_unit_test(profiler_traces_with_groups_under_failed_allocations),
		cmocka_unit_test(timelines_under_failed_allocations),
		cmocka_unit_test(files_are_found_under_failed_allocations),
	};

	nt_oom_use_one_processor();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
