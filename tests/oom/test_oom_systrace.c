/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sysTrace's markers, and its documents, under failed allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/report/systrace.h"
#include "tests/oom/oom.h"
#include "tests/unit/scratch.h"

enum {
	RANKS = 3,
	STEPS = 30,
};

static char dir[SCRATCH_BYTES], path[RANKS][SCRATCH_BYTES + 64];

/* Rank 2 works from the twentieth step on while the others wait for it. */
static void put_rank(int rank)
{
	FILE *file = fopen(path[rank], "w");
	int id = 0;

	assert_non_null(file);
	(void)fprintf(file, "Id,Name,SourceKind,Timestamp\n");
	for (int step = 0; step < STEPS; step++) {
		const unsigned long long at = 1749084000000000000ULL + 1000000000ULL * step;
		const unsigned long long work = rank == 2 && step > 20 ? 800000000 : 400000000;

		(void)fprintf(file,
			      "%d,comm:HcclAllGather!tp!fp16!8,1,%llu\n%d,,1,%llu\n"
			      "%d,comm:HcclAllReduce!all!fp32!1,1,%llu\n%d,,1,%llu\n",
			      id, at + work, id, at + 900000000, id + 1, at + 950000000, id + 1,
			      at + 1000000000);
		id += 2;
	}
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	for (int i = 0; i < RANKS; i++) {
		(void)snprintf(path[i], sizeof(path[i]), "%s/hccl_activity-10.0.0.1-.%d.csv", dir,
			       i);
		put_rank(i);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static int use_reader(void *data)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const char *paths[RANKS] = {path[0], path[1], path[2]};
	const struct nt_rules rules = nt_rules_default();
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_report report = {.source = "job"};
	nt_autobuf struct nt_buf buf = {0};
	struct nt_trace_error error = {0};
	int r;

	(void)data;
	r = nt_trace_read_systrace(paths, RANKS, &trace, &error);
	r = r ?: nt_judgement_new(&judgement);
	r = r ?: nt_replay_trace(trace, &rules, judgement);
	if (r < 0)
		return r;
	nt_report_trace(&report, trace, judgement);
	r = nt_systrace_result(&report, trace, &buf);
	return r ?: nt_systrace_steps(&report, trace, &buf);
}

static void reading_judging_and_printing_fail_cleanly(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(use_reader, NULL) > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_judging_and_printing_fail_cleanly),
	};

	nt_oom_use_one_processor();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
