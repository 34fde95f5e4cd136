/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profiler trace of any bytes becomes frames that the detection takes, or is refused with a reason. */
#include "cli/readers/trace.h"
#include "tests/fuzz/cost.h"
#include "tests/fuzz/lib/trace.h"

static int run(const uint8_t *data, size_t size)
{
	return fuzz_trace(nt_trace_read_kineto, data, size, "");
}

FUZZ_TARGET(run, .peak = {1 << 20, 256}, .total = {1 << 20, 40}, .steps = {60000, 40})
