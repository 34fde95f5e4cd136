/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A profiler trace of any bytes becomes frames that the detection takes, or is refused with a reason.
 * Read twice, as the files of two ranks, its calls are of groups that may have to be derived.
 */
#include "cli/readers/trace.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/trace.h"

static void read_two(const uint8_t *data, size_t size)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	char path[2][64];
	const char *paths[] = {path[0], path[1]};
	nt_autoclose int one = fuzz_file(data, size, "", path[0]);
	nt_autoclose int other = fuzz_file(data, size, "", path[1]);
	int r = nt_trace_read_kineto(paths, 2, &trace, &error);

	assert(one >= 0 && other >= 0);
	(void)fuzz_judge(r, trace, &error, &judgement);
}

static int run(const uint8_t *data, size_t size)
{
	(void)fuzz_trace(nt_trace_read_kineto, data, size, "");
	read_two(data, size);
	return 0;
}

FUZZ_TARGET(run, .peak = {2 << 20, 512}, .total = {4 << 20, 160}, .steps = {300000, 160},
	    .cpu_ns = {100000000, 2000})
