/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Markers of any bytes become frames that the detection takes, and documents, or are refused with a
 * reason. Bytes behind "\n=\n" are the file of a second rank.
 */
#include <string.h>

#include "cli/report/report.h"
#include "cli/report/systrace.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/trace.h"

static void print_all(const struct nt_trace *trace, const struct nt_judgement *judgement)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_report report = {.source = "fuzz"};
	int r;

	nt_report_trace(&report, trace, judgement);
	r = nt_report_text(&report, &buf);
	r = r ?: nt_systrace_result(&report, trace, &buf);
	r = r ?: nt_systrace_steps(&report, trace, &buf);
	assert(r == 0);
}

static int run(const uint8_t *data, size_t size)
{
	const uint8_t *cut = size ? memmem(data, size, "\n=\n", 3) : NULL;
	const size_t first = cut ? (size_t)(cut - data) + 1 : size;
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	char path[2][64];
	const char *paths[] = {path[0], path[1]};
	nt_autoclose int one = fuzz_file(data, first, "", path[0]);
	nt_autoclose int two = cut ? fuzz_file(cut + 3, size - first - 2, "", path[1]) : -1;
	int r;

	assert(one >= 0);
	r = nt_trace_read_systrace(paths, two < 0 ? 1 : 2, &trace, &error);
	if (fuzz_judge(r, trace, &error, &judgement))
		print_all(trace, judgement);
	return 0;
}

FUZZ_TARGET(run, .peak = {1 << 20, 256}, .steps = {300000, 300})
