/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A timeline of any bytes becomes frames that the detection takes, or is refused with a reason. */
#include <errno.h>

#include "cli/readers/timelines.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/trace.h"

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	char path[64];
	const char *paths[] = {path};
	nt_autoclose int fd = fuzz_file(data, size, "", path);
	int r = nt_trace_read_timelines(paths, 1, &trace, &error);

	assert(fd >= 0);
	if (r == -E2BIG && !error.text[0]) {
		assert(!trace);
		return 0;
	}
	if (!fuzz_judge(r, trace, &error, &judgement))
		return 0;
	for (size_t i = 0; i < trace->frames; i++)
		for (size_t j = 0; j < trace->frame[i].frame.ranks; j++)
			assert(trace->frame[i].rank[j].own_ns < UINT64_MAX / 2);
	return 0;
}

/* The stage of each possible rank is a table. */
FUZZ_TARGET(run, .peak = {2 << 20, 256}, .total = {4 << 20, 1024}, .steps = {1500000, 150})
