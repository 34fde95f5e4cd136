/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of operation times as published by ByteDance's StragglerAnalysis.
 */
#include "cli/readers/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/lines.h"
#include "cli/readers/operations.h"
#include "common/base/parse_number.h"

enum {
	MAX_RANK = NT_FRAME_MAX_RANKS - 1,
};

enum column {
	COLUMN_DP_RANK,
	COLUMN_STAGE,
	COLUMN_RANK,
	COLUMN_STEP,
	COLUMN_OPTYPE,
	COLUMN_START,
	COLUMN_DURATION,
	COLUMN_SEQ,
	COLUMN_END,
};

static const char *const column_names[COLUMN_END] = {
	"dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id",
};

struct straggler_table {
	struct nt_operations operations;
	size_t at[COLUMN_END]; /* field number of each column */
	size_t fields;
	bool cut; /* the last line has fewer, and no end */
};

enum {
	MAX_FIELDS = 32,
};

struct field {
	const char *text;
	size_t len;
};

static size_t split(const char *line, struct field *field)
{
	size_t n = 0;

	for (;;) {
		const char *end = strchrnul(line, ',');

		if (n == MAX_FIELDS)
			return MAX_FIELDS + 1;
		field[n++] = (struct field){line, (size_t)(end - line)};
		if (!*end)
			return n;
		line = end + 1;
	}
}

static bool field_is(const struct field *field, const char *text)
{
	return field->len == strlen(text) && memcmp(field->text, text, field->len) == 0;
}

static int read_header(struct straggler_table *table, const char *path, const char *line,
		       struct nt_trace_error *error)
{
	struct field field[MAX_FIELDS];
	size_t n = split(line, field);

	if (n > MAX_FIELDS)
		return nt_trace_refuse(error, "%s:1: more than %d columns", path, MAX_FIELDS);
	for (size_t c = 0; c < COLUMN_END; c++) {
		size_t f = 0;

		while (f < n && !field_is(&field[f], column_names[c]))
			f++;
		if (f == n)
			return nt_trace_refuse(
				error,
				"%s:1: no column '%s'; a table of operation times has dp_rank, stage, "
				"rank, step, optype, start_ts, duration and seq_id",
				path, column_names[c]);
		table->at[c] = f;
	}
	table->fields = n;
	return 0;
}

struct line_context {
	const char *path;
	uint64_t number;
	struct nt_trace_error *error;
	const struct field *field;
	const struct straggler_table *table;
};

static int integer(const struct line_context *at, enum column column, uint64_t max,
		   uint64_t *ret_value)
{
	const struct field *f = &at->field[at->table->at[column]];

	if (nt_parse_u64(f->text, f->len, 0, max, ret_value) < 0)
		return nt_trace_refuse(at->error,
				       "%s:%" PRIu64
				       ": %s is '%.*s', expected an integer from 0 to %" PRIu64,
				       at->path, at->number, column_names[column],
				       (int)(f->len < 40 ? f->len : 40), f->text, max);
	return 0;
}

static int seconds(const struct line_context *at, enum column column, uint64_t *ret_ns)
{
	const struct field *f = &at->field[at->table->at[column]];
	double value = 0;

	if (nt_parse_double(f->text, f->len, 0, 1e7, &value) < 0)
		return nt_trace_refuse(
			at->error, "%s:%" PRIu64 ": %s is '%.*s', expected seconds from 0 to 1e7",
			at->path, at->number, column_names[column],
			(int)(f->len < 40 ? f->len : 40), f->text);
	*ret_ns = (uint64_t)(value * 1e9);
	return 0;
}

static int read_row(struct straggler_table *table, const struct line_context *at)
{
	uint64_t rank = 0, replica = 0, stage = 0, seq = 0;
	struct nt_operation row = {0};
	const struct field *name = &at->field[at->table->at[COLUMN_OPTYPE]];
	int kind, r;

	r = integer(at, COLUMN_RANK, MAX_RANK, &rank);
	r = r ?: integer(at, COLUMN_DP_RANK, MAX_RANK, &replica);
	r = r ?: integer(at, COLUMN_STAGE, MAX_RANK, &stage);
	r = r ?: integer(at, COLUMN_STEP, UINT32_MAX, &row.step);
	r = r ?: integer(at, COLUMN_SEQ, UINT32_MAX, &seq);
	r = r ?: seconds(at, COLUMN_START, &row.start_ns);
	r = r ?: seconds(at, COLUMN_DURATION, &row.duration_ns);
	if (r < 0)
		return r;
	kind = nt_operation_kind(name->text, name->len);
	if (kind < 0)
		return 0;
	row.rank = (uint32_t)rank;
	row.replica = (uint32_t)replica;
	row.stage = (uint32_t)stage;
	row.seq = (uint32_t)seq;
	row.kind = (uint8_t)kind;
	return nt_operations_add(&table->operations, &row);
}

static int read_table(struct straggler_table *table, const char *path, struct nt_trace_error *error)
{
	nt_auto(nt_lines) struct nt_lines *lines = NULL;
	struct field field[MAX_FIELDS];
	char *line = NULL;
	int r;

	r = nt_lines_open(path, &lines);
	if (r < 0) {
		(void)nt_trace_refuse(error, "%s: %s", path, strerrordesc_np(-r));
		return r;
	}
	while ((r = nt_lines_next(lines, &line)) > 0) {
		struct line_context at = {path, nt_lines_number(lines), error, field, table};

		if (at.number == 1) {
			r = read_header(table, path, line, error);
		} else {
			size_t n = split(line, field);

			if (n < table->fields && nt_lines_is_open(lines))
				table->cut = true;
			else if (n != table->fields)
				r = nt_trace_refuse(
					error, "%s:%" PRIu64 ": %zu fields, the header has %zu",
					path, at.number, n, table->fields);
			else
				r = read_row(table, &at);
			if (r == -E2BIG)
				r = nt_trace_refuse(error,
						    "%s:%" PRIu64 ": more than %d operations", path,
						    at.number, NT_OPERATIONS_MAX);
		}
		if (r < 0)
			return r;
	}
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return nt_trace_refuse(error, "%s:%" PRIu64 ": %s", path, nt_lines_number(lines),
				       r == -EMSGSIZE
					       ? "line longer than 64 KiB"
					       : "damaged: the file is cut short or is not text");
	if (!table->operations.count)
		return nt_trace_refuse(error, "%s: no operations", path);
	return 0;
}

static void release_table(struct straggler_table *table)
{
	nt_operations_release(&table->operations);
}

int nt_trace_read_straggler(const char *path, struct nt_trace **ret_trace,
			    struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(release_table))) struct straggler_table table = {
		.operations = {.samples = true}};
	nt_auto(nt_trace) struct nt_trace *trace = calloc(1, sizeof(*trace));
	int r;

	if (!trace)
		return -ENOMEM;
	r = read_table(&table, path, ret_error);
	r = r ?: nt_operations_frames(&table.operations, trace);
	if (r < 0)
		return r;
	trace->cut = table.cut;
	*ret_trace = nt_take(trace);
	return 0;
}
