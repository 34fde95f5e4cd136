/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profiler trace of any bytes becomes frames that the detection takes, or is refused with a reason. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "tests/fuzz/cost.h"

static int run(const uint8_t *data, size_t size)
{
	nt_autoclose int fd = memfd_create("trace", MFD_CLOEXEC);
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};
	const char *paths[1];
	char path[64];
	int r;

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	paths[0] = path;
	r = nt_trace_read_kineto(paths, 1, &trace, &error);
	assert((r == 0) == (trace != NULL));
	assert((r == 0) == (error.text[0] == '\0'));
	if (r < 0)
		return 0;
	assert(nt_judgement_new(&judgement) == 0);
	r = nt_replay_trace(trace, &rules, judgement);
	assert(r == 0);
	return 0;
}

FUZZ_TARGET(run, .peak = {1 << 20, 256}, .total = {1 << 20, 40}, .steps = {60000, 20})
