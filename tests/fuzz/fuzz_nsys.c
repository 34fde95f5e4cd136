/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An export of Nsight Systems of any bytes becomes frames, or is refused with a reason. */
#include "cli/kineto/nsys.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/trace.h"

static int run(const uint8_t *data, size_t size)
{
	return fuzz_trace(nt_trace_read_nsys, data, size, "//rank0.sqlite");
}

/* Beside the bytes there are the library's caches, and what it may do with any file. */
FUZZ_TARGET(run, .peak = {72 << 20, 256}, .total = {512 << 20, 4096}, .steps = {400000, 2000},
	    .cpu_ns = {1000000000, 100000})
