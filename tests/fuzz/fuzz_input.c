/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file for `neutracer analyze` before anything of it is understood: perhaps gzipped, by lines or
 * whole, and what of it is shown in a table on a terminal.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/live/table.h"
#include "cli/readers/input.h"
#include "cli/readers/lines.h"
#include "tests/fuzz/lib/cost.h"

enum {
	MAX_CELLS = 64,
};

static void read_lines(const char *path)
{
	nt_auto(nt_lines) struct nt_lines *lines = NULL;
	uint64_t number = 0;
	char *line;

	assert(nt_lines_open(path, &lines) == 0);
	while (nt_lines_next(lines, &line) == 1) {
		assert(nt_lines_number(lines) == ++number);
		assert(!strchr(line, '\n') && strlen(line) <= 64 << 10);
	}
}

static void read_whole(const char *path)
{
	nt_auto(nt_input) struct nt_input *input = NULL;
	nt_autobuf struct nt_buf buf = {0}, again = {0};
	struct nt_trace_error error = {0};

	assert(nt_input_open(path, &input, &error) == 0);
	if (nt_input_read(input, &buf, SIZE_MAX) < 0) {
		assert(error.text[0]);
		return;
	}
	(void)nt_input_is_flight(path);
	assert(nt_input_rewind(input) == 0 && nt_input_read(input, &again, SIZE_MAX) == 0);
	assert(buf.len == again.len && (!buf.len || memcmp(buf.data, again.data, buf.len) == 0));
}

static void print_table(const uint8_t *data, size_t size)
{
	static const struct nt_column columns[] = {{.title = "ONE", .shrinks = true},
						   {.title = "TWO", .right = true},
						   {.title = "THREE"}};
	nt_auto(nt_table) struct nt_table *table = NULL;
	char *printed = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&printed, &len);

	assert(out && nt_table_new(columns, 3, &table) == 0);
	for (size_t i = 0; i < MAX_CELLS && size; i++) {
		const size_t cell = data[0] < size ? data[0] : size;

		assert(nt_table_add(table, NT_STYLE_PLAIN, "%.*s", (int)cell, (const char *)data) ==
		       0);
		data += cell ? cell : 1;
		size -= cell ? cell : 1;
	}
	nt_table_print(table, out);
	assert(fclose(out) == 0);
	for (size_t i = 0; i < len; i++)
		assert((unsigned char)printed[i] >= 0x20 || printed[i] == '\n');
	free(printed);
}

static int run(const uint8_t *data, size_t size)
{
	nt_autoclose int fd = memfd_create("input", MFD_CLOEXEC);
	char path[64];

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_lines(path);
	read_whole(path);
	print_table(data, size);
	return 0;
}

/* What was gzipped may be a thousand times as large, and is held twice while its buffer grows. */
FUZZ_TARGET(run, .peak = {2 << 20, 4096}, .steps = {100000, 20000}, .cpu_ns = {100000000, 400000})
