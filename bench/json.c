/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Speed of reading JSON on one core, in MB/s of unpacked bytes and processor time: unpacking alone,
 * the scanner as the reader of profiler traces uses it, the scanner that skips all, and jansson.
 *
 *   build/bench/json FILE
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cli/kineto/kineto.h"
#include "cli/readers/input.h"
#include "common/base/duration.h"

static struct nt_trace_error error;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

static bool unpack(struct nt_input *input)
{
	static char bytes[128 << 10];
	ptrdiff_t n;

	while ((n = nt_input_next(input, bytes, sizeof(bytes))) > 0)
		;
	return n == 0;
}

static bool take_events(struct nt_json_scan *scan)
{
	const struct nt_json_value *event;
	const char *key;
	uint64_t line;
	int r = nt_json_scan_enter(scan);

	while (r == 0 && (r = nt_json_scan_next(scan, &key, &line)) == 1)
		r = nt_json_scan_take(scan, nt_kineto_event, &event);
	return r == 0;
}

static bool pick(struct nt_input *input)
{
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	const char *key;
	uint64_t line;
	int r = nt_json_scan_new(nt_input_next, input, &scan);

	r = r ?: nt_json_scan_enter(scan);
	while (r == 0 && (r = nt_json_scan_next(scan, &key, &line)) == 1) {
		if (strcmp(key, "traceEvents") == 0)
			r = take_events(scan) ? 0 : -1;
		else
			r = nt_json_scan_skip(scan);
	}
	return r == 0;
}

static bool skip_all(struct nt_input *input)
{
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	int r = nt_json_scan_new(nt_input_next, input, &scan);

	return (r ?: nt_json_scan_skip(scan)) == 0;
}

static bool build_tree(struct nt_input *input)
{
	nt_autobuf struct nt_buf text = {0};
	json_t *root = NULL;

	if (nt_input_read(input, &text, SIZE_MAX) == 0)
		root = json_loadb((const char *)text.data, text.len, 0, NULL);
	json_decref(root);
	return root;
}

static bool measure(const char *path, const char *name, bool (*run)(struct nt_input *input))
{
	nt_auto(nt_input) struct nt_input *input = NULL;
	struct rusage usage;
	uint64_t start_ns;
	double seconds;
	uint64_t bytes = 0;
	char rest[4096];
	ptrdiff_t n;

	if (nt_input_open(path, &input, &error) < 0 || nt_input_rewind(input) < 0)
		return false;
	while ((n = nt_input_next(input, rest, sizeof(rest))) > 0)
		bytes += (uint64_t)n;
	if (nt_input_rewind(input) < 0)
		return false;
	start_ns = cpu_ns();
	if (!run(input))
		return false;
	seconds = (double)(cpu_ns() - start_ns) / 1e9;
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("%-34s %6.0f MB/s   peak of the process %5ld MB\n", name,
	       (double)bytes / 1e6 / seconds, usage.ru_maxrss / 1000);
	return true;
}

int main(int argc, char **argv)
{
	if (argc == 2 && measure(argv[1], "unpacking", unpack) &&
	    measure(argv[1], "scanner, all skipped", skip_all) &&
	    measure(argv[1], "scanner, events as of a profiler", pick) &&
	    measure(argv[1], "jansson, a tree", build_tree))
		return 0;
	(void)fprintf(stderr, "usage: json FILE%s%s\n", *error.text ? ": " : "", error.text);
	return 1;
}
