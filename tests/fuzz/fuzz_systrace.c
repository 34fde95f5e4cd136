/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Markers of any bytes become frames that the detection takes, and documents, or are refused with a
 * reason. Bytes behind "\n=\n" are the file of a second rank.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/report/report.h"
#include "cli/report/systrace.h"
#include "tests/fuzz/cost.h"

static int open_part(const uint8_t *data, size_t size, char path[64])
{
	int fd = memfd_create("markers", MFD_CLOEXEC);

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	/* The number is the rank. */
	(void)snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

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
	struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};
	char path[2][64];
	const char *paths[] = {path[0], path[1]};
	nt_autoclose int one = open_part(data, first, path[0]);
	nt_autoclose int two = cut ? open_part(cut + 3, size - first - 2, path[1]) : -1;
	int r;

	assert(one >= 0);
	r = nt_trace_read_systrace(paths, two < 0 ? 1 : 2, &trace, &error);
	assert((r == 0) == (trace != NULL));
	assert((r == 0) == (error.text[0] == '\0'));
	if (r < 0)
		return 0;
	assert(nt_judgement_new(&judgement) == 0);
	r = nt_replay_trace(trace, &rules, judgement);
	assert(r == 0);
	print_all(trace, judgement);
	return 0;
}

FUZZ_TARGET(run, .peak = {1 << 20, 256}, .steps = {300000, 300})
