/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Dumps of the flight recorder of any bytes become frames that the detection takes, or are refused with
 * a reason. A line that is "---" parts the dumps of the ranks.
 */
#include <string.h>

#include "cli/flight/flight.h"
#include "cli/readers/input.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/trace.h"

enum {
	MAX_FILES = 4,
};

static void judge(const char *const *paths, size_t n)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	int r;

	(void)nt_input_is_flight(paths[0]);
	r = nt_trace_read_flight(paths, n, &trace, &error);
	(void)fuzz_judge(r, trace, &error, &judgement);
}

static int run(const uint8_t *data, size_t size)
{
	static const char mark[] = "\n---\n";
	char path[MAX_FILES][64];
	const char *paths[MAX_FILES];
	int fd[MAX_FILES];
	size_t n = 0;

	for (const uint8_t *end; n < MAX_FILES; data = end + strlen(mark)) {
		end = memmem(data, size, mark, strlen(mark));
		/* Kept open, so that each is another file in /proc/self/fd. */
		fd[n] = fuzz_file(data, end && n + 1 < MAX_FILES ? (size_t)(end - data) : size, "",
				  path[n]);
		paths[n] = path[n];
		n++;
		if (!end)
			break;
		size -= (size_t)(end - data) + strlen(mark);
	}
	judge(paths, n);
	for (size_t i = 0; i < n; i++)
		(void)close(fd[i]);
	return 0;
}

FUZZ_TARGET(run, .peak = {1 << 20, 256}, .steps = {200000, 200}, .cpu_ns = {100000000, 2000})
