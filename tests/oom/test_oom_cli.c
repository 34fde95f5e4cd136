/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Readers of files under failed allocations. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/readers/flight.h"
#include "cli/readers/input.h"
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

static void pickles_under_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(read_pickle, NULL) > 20);
}

static void dumps_of_the_flight_recorder_under_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(read_flight, NULL) > 20);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
