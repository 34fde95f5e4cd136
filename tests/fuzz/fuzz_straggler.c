/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A table of any bytes becomes frames that the detection takes, or is refused with a reason. */
#include "cli/readers/trace.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/trace.h"

static int read_table(const char *const *paths, size_t count, struct nt_trace **ret_trace,
		      struct nt_trace_error *ret_error)
{
	assert(count == 1);
	return nt_trace_read_straggler(paths[0], ret_trace, ret_error);
}

static int run(const uint8_t *data, size_t size)
{
	return fuzz_trace(read_table, data, size, "");
}

FUZZ_TARGET(run, .peak = {1 << 20, 256}, .total = {2 << 20, 224}, .steps = {40000, 200})
