/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/input/format.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cli/readers/input.h"
#include "cli/systrace/markers.h"
#include "common/base/cleanup.h"

enum {
	HEAD_BYTES = 64 << 10,
};

static const struct {
	const char *name, *files;
} formats[NT_FORMAT_END] = {
	[NT_FORMAT_UNKNOWN] = {"files of no known format", ""},
	[NT_FORMAT_RECORDING] = {"recordings of the bus", "a directory with neutracer.window.v1"},
	[NT_FORMAT_KINETO] = {"PyTorch profiler traces", "*.json"},
	[NT_FORMAT_STRAGGLER] = {"tables of operation times", "*.csv"},
	[NT_FORMAT_SYSTRACE] = {"markers of sysTrace", "hccl_activity-*.csv"},
	[NT_FORMAT_FLIGHT] = {"flight-recorder dumps", "*.json, *.pkl or *RANK"},
	[NT_FORMAT_NSYS] = {"Nsight Systems exports", "*.sqlite"},
	[NT_FORMAT_TIMELINE] = {"timelines of MegatronApp, veScale or StragglerAnalysis", "*.json"},
	[NT_FORMAT_METRICS] = {"tables of a node's metrics", "*.csv"},
};

const char *nt_format_name(enum nt_format format)
{
	return formats[format].name;
}

const char *nt_format_files(enum nt_format format)
{
	return formats[format].files;
}

/* `end` with or without .gz. */
static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	if (len > 3 && strcmp(name + len - 3, ".gz") == 0)
		len -= 3;
	return len >= end_len && strncmp(name + len - end_len, end, end_len) == 0;
}

static bool has_suffix(const char *name, const char *end)
{
	const size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && strcmp(name + len - end_len, end) == 0;
}

/* PyTorch's names of dumps end in the rank. */
static bool ends_in_number(const char *name)
{
	const size_t len = strlen(name) - (has_suffix(name, ".gz") ? strlen(".gz") : 0);

	return len && strchr("0123456789", name[len - 1]);
}

bool nt_format_may_be(enum nt_format format, const char *name)
{
	switch (format) {
	case NT_FORMAT_KINETO:
		return ends_with(name, ".json");
	case NT_FORMAT_STRAGGLER:
	case NT_FORMAT_METRICS:
		return ends_with(name, ".csv");
	case NT_FORMAT_SYSTRACE:
		return nt_markers_is_file(name);
	case NT_FORMAT_FLIGHT:
		return ends_with(name, ".json") || ends_with(name, ".pkl") ||
		       ends_with(name, ".pickle") || ends_in_number(name);
	case NT_FORMAT_NSYS:
		return has_suffix(name, ".sqlite") || has_suffix(name, ".sqlite3") ||
		       has_suffix(name, ".db");
	case NT_FORMAT_TIMELINE:
		/* veScale's are called trace_step0_9. */
		return ends_with(name, ".json") || ends_in_number(name);
	default:
		return false;
	}
}

bool nt_format_is_known(const char *name)
{
	for (enum nt_format format = NT_FORMAT_RECORDING; format < NT_FORMAT_END; format++)
		if (nt_format_may_be(format, name))
			return true;
	return false;
}

bool nt_format_is_nsys_report(const char *name)
{
	return has_suffix(name, ".nsys-rep");
}

bool nt_format_is_archive(const char *name)
{
	static const char *const suffixes[] = {".zip", ".tar", ".tar.gz", ".tgz"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (has_suffix(name, suffixes[i]))
			return true;
	return false;
}

static void close_gz(gzFile *file)
{
	if (*file)
		(void)gzclose_r(*file);
}

/* Bytes of the beginning, unpacked; -1: damaged, or not readable. */
static int read_head(const char *path, char *head)
{
	__attribute__((cleanup(close_gz))) gzFile file = NULL;
	char place[NT_INPUT_PLACE_BYTES];

	file = gzopen(nt_input_place(path, place), "rbe");
	return file ? gzread(file, head, HEAD_BYTES) : -1;
}

static bool has(const char *head, size_t len, const char *text)
{
	return memmem(head, len, text, strlen(text));
}

/* Of a table: its first line has the names of the columns. */
static bool is_table(const char *head, size_t len)
{
	const char *end = memchr(head, '\n', len);

	return end && has(head, (size_t)(end - head), "optype") &&
	       has(head, (size_t)(end - head), "start_ts");
}

/* A list of operations of many ranks, which no profiler of one process names so. */
static bool is_timeline(const char *head, size_t len)
{
	if (has(head, len, "\"g_rk\""))
		return has(head, len, "\"iteration\"");
	return has(head, len, "\"step\"") &&
	       (has(head, len, "\"forward-compute\"") || has(head, len, "\"backward-compute\""));
}

/* The first level has one of the profiler's names, or is the list of events itself. */
static enum nt_format find_json(const char *head, size_t len)
{
	static const char *const names[] = {"\"traceEvents\"", "\"schemaVersion\"",
					    "\"distributedInfo\"", "\"deviceProperties\"",
					    "\"baseTimeNanoseconds\""};
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", head[at]))
		at++;
	if (at == len)
		return NT_FORMAT_UNKNOWN;
	if (head[at] == '[' && is_timeline(head, len))
		return NT_FORMAT_TIMELINE;
	if (head[at] == '[')
		return has(head, len, "\"ph\"") ? NT_FORMAT_KINETO : NT_FORMAT_UNKNOWN;
	if (head[at] != '{')
		return NT_FORMAT_UNKNOWN;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has(head, len, names[i]))
			return NT_FORMAT_KINETO;
	return NT_FORMAT_UNKNOWN;
}

enum nt_format nt_format_find(const char *path, const char *name, bool *ret_damaged)
{
	nt_autofree char *head = malloc(HEAD_BYTES);
	int n;

	*ret_damaged = false;
	if (nt_markers_is_file(name))
		return NT_FORMAT_SYSTRACE;
	if (!head)
		return NT_FORMAT_UNKNOWN;
	n = read_head(path, head);
	*ret_damaged = n <= 0;
	if (n <= 0)
		return NT_FORMAT_UNKNOWN;
	if (nt_format_may_be(NT_FORMAT_STRAGGLER, name))
		return is_table(head, (size_t)n) ? NT_FORMAT_STRAGGLER : NT_FORMAT_UNKNOWN;
	if (has(head, (size_t)n < 16 ? (size_t)n : 16, "SQLite format 3"))
		return has(head, (size_t)n, "StringIds") ? NT_FORMAT_NSYS : NT_FORMAT_UNKNOWN;
	if (nt_input_is_flight(path))
		return NT_FORMAT_FLIGHT;
	return find_json(head, (size_t)n);
}
