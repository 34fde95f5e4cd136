/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of operation times as published by ByteDance's StragglerAnalysis. The definition of own
 * work is decisive: the sum of the recorded compute operations and nothing else. A victim idles
 * outside any recorded operation (docs/verdicts.md).
 */
#include "cli/readers/trace.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/lines.h"
#include "common/base/parse_number.h"
#include "proto/wire.h"

enum {
	MAX_ROWS = 1 << 26,
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

/* The kinds of operations. `data`: a collective among the data-parallel ranks of one stage. */
static const struct optype {
	const char *name;
	bool compute, data, gc;
	enum nt_op op;
} optypes[] = {
	{"forward-compute", true, false, false, NT_OP_UNKNOWN},
	{"backward-compute", true, false, false, NT_OP_UNKNOWN},
	{"grads-reduce-scatter", false, true, false, NT_OP_REDUCE_SCATTER},
	{"params-all-gather", false, true, false, NT_OP_ALL_GATHER},
	{"layernorm-grads-all-reduce", false, false, false, NT_OP_ALL_REDUCE},
	{"embedding-grads-all-reduce", false, false, false, NT_OP_ALL_REDUCE},
	{"forward-send", false, false, false, NT_OP_SEND},
	{"forward-recv", false, false, false, NT_OP_RECV},
	{"backward-send", false, false, false, NT_OP_SEND},
	{"backward-recv", false, false, false, NT_OP_RECV},
	{"gc", false, false, true, NT_OP_UNKNOWN},
	{"optimizer", false, false, false, NT_OP_UNKNOWN},
	{"optimizer-clip-main-grad", false, false, false, NT_OP_UNKNOWN},
};

struct row {
	uint64_t step, start_ns, duration_ns;
	uint32_t rank, replica, stage, seq;
	uint8_t optype;
};

struct table {
	struct row *row;
	size_t rows, cap;
	size_t at[COLUMN_END]; /* field number of each column */
	size_t fields;
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

static int read_header(struct table *table, const char *path, const char *line,
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
				"%s:1: no column '%s'; this reader wants dp_rank, stage, "
				"rank, step, optype, start_ts, duration and seq_id",
				path, column_names[c]);
		table->at[c] = f;
	}
	table->fields = n;
	return 0;
}

static int add_row(struct table *table, const struct row *row)
{
	if (table->rows == MAX_ROWS)
		return -E2BIG;
	if (table->rows == table->cap) {
		size_t cap = table->cap ? table->cap * 2 : 4096;
		struct row *rows = reallocarray(table->row, cap, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		table->row = rows;
		table->cap = cap;
	}
	table->row[table->rows++] = *row;
	return 0;
}

/* 0: an unknown kind of operation, which is skipped. */
static int find_optype(const struct field *field)
{
	for (size_t i = 0; i < sizeof(optypes) / sizeof(optypes[0]); i++)
		if (field_is(field, optypes[i].name))
			return (int)i;
	return -1;
}

struct line_context {
	const char *path;
	uint64_t number;
	struct nt_trace_error *error;
	const struct field *field;
	const struct table *table;
};

static int integer(const struct line_context *at, enum column column, uint64_t max,
		   uint64_t *ret_value)
{
	const struct field *f = &at->field[at->table->at[column]];

	if (nt_parse_u64(f->text, f->len, 0, max, ret_value) < 0)
		return nt_trace_refuse(at->error,
				       "%s:%" PRIu64
				       ": %s is '%.*s', want an integer from 0 to %" PRIu64,
				       at->path, at->number, column_names[column],
				       (int)(f->len < 40 ? f->len : 40), f->text, max);
	return 0;
}

static int seconds(const struct line_context *at, enum column column, uint64_t *ret_ns)
{
	const struct field *f = &at->field[at->table->at[column]];
	double value = 0;

	if (nt_parse_double(f->text, f->len, 0, 1e7, &value) < 0)
		return nt_trace_refuse(at->error,
				       "%s:%" PRIu64 ": %s is '%.*s', want seconds from 0 to 1e7",
				       at->path, at->number, column_names[column],
				       (int)(f->len < 40 ? f->len : 40), f->text);
	*ret_ns = (uint64_t)(value * 1e9);
	return 0;
}

static int read_row(struct table *table, const struct line_context *at)
{
	uint64_t rank = 0, replica = 0, stage = 0, seq = 0;
	struct row row = {0};
	int optype, r;

	r = integer(at, COLUMN_RANK, MAX_RANK, &rank);
	r = r ?: integer(at, COLUMN_DP_RANK, MAX_RANK, &replica);
	r = r ?: integer(at, COLUMN_STAGE, MAX_RANK, &stage);
	r = r ?: integer(at, COLUMN_STEP, UINT32_MAX, &row.step);
	r = r ?: integer(at, COLUMN_SEQ, UINT32_MAX, &seq);
	r = r ?: seconds(at, COLUMN_START, &row.start_ns);
	r = r ?: seconds(at, COLUMN_DURATION, &row.duration_ns);
	if (r < 0)
		return r;
	optype = find_optype(&at->field[table->at[COLUMN_OPTYPE]]);
	if (optype < 0)
		return 0;
	row.rank = (uint32_t)rank;
	row.replica = (uint32_t)replica;
	row.stage = (uint32_t)stage;
	row.seq = (uint32_t)seq;
	row.optype = (uint8_t)optype;
	return add_row(table, &row);
}

static int read_table(struct table *table, const char *path, struct nt_trace_error *error)
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

			if (n != table->fields)
				r = nt_trace_refuse(
					error, "%s:%" PRIu64 ": %zu fields, the header has %zu",
					path, at.number, n, table->fields);
			else
				r = read_row(table, &at);
			if (r == -E2BIG)
				r = nt_trace_refuse(error,
						    "%s:%" PRIu64 ": more than %d operations", path,
						    at.number, MAX_ROWS);
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
					       : "damaged: the file is cut short or no text");
	if (!table->rows)
		return nt_trace_refuse(error, "%s: no operations", path);
	return 0;
}

static int by_step_rank_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_comm_number_rank(const void *a, const void *b)
{
	const struct nt_frame_sample *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* One identity per data-parallel group; any constant far from 0 will do. */
static uint64_t data_group(uint32_t stage)
{
	return 0x6e740000ULL << 24 | stage;
}

/* Makes the rows of one step, sorted by rank, one frame that starts at base_ns. */
static int add_step(struct nt_trace *trace, const struct row *row, size_t rows, uint64_t base_ns,
		    uint32_t job_ranks)
{
	struct nt_trace_frame *out = NULL;
	struct nt_frame_rank *rank = NULL;
	size_t ranks = 0, samples = 0;
	uint64_t span_ns = 1;
	int r;

	for (size_t i = 0; i < rows; i++) {
		ranks += i == 0 || row[i].rank != row[i - 1].rank;
		samples += optypes[row[i].optype].data;
		if (row[i].start_ns + row[i].duration_ns > span_ns)
			span_ns = row[i].start_ns + row[i].duration_ns;
	}
	r = nt_trace_frame_add(trace, ranks, samples, &out);
	if (r < 0)
		return r;
	out->frame.start_ns = base_ns;
	out->frame.end_ns = base_ns + span_ns;
	out->frame.ranks = ranks;
	out->frame.expected_ranks = job_ranks;
	out->frame.completeness = (double)ranks / job_ranks;

	for (size_t i = 0; i < rows; i++) {
		const struct optype *type = &optypes[row[i].optype];

		if (i == 0 || row[i].rank != row[i - 1].rank) {
			rank = rank ? rank + 1 : out->rank;
			*rank = (struct nt_frame_rank){
				.rank = row[i].rank,
				.node = NT_FRAME_NO_NODE,
				.steps = 1,
				.own_tier = NT_FRAME_T3,
				.rank_known = true,
				.observed = true,
				.uses_gpu = true,
				.step_ns = span_ns,
				.window_ns = span_ns,
				.stage = (int32_t)row[i].stage,
				.replica = (int32_t)row[i].replica,
			};
		}
		if (type->compute) {
			rank->own_ns += row[i].duration_ns;
			rank->own_blocked_ns += row[i].duration_ns;
		}
		if (type->gc)
			rank->gc_ns += row[i].duration_ns;
		if (type->op != NT_OP_UNKNOWN)
			rank->comm_ns += row[i].duration_ns;
		if (type->data)
			out->sample[out->frame.samples++] = (struct nt_frame_sample){
				.comm = data_group(row[i].stage),
				.number = row[i].step << 8 | (uint64_t)type->op << 4 |
					  (row[i].seq & 0xf),
				.op = (uint8_t)type->op,
				.kind = NT_FRAME_SYNCHRONISING,
				.rank = row[i].rank,
				.arrive_ns = base_ns + row[i].start_ns,
				.release_ns = base_ns + row[i].start_ns + row[i].duration_ns,
			};
	}
	qsort(out->sample, out->frame.samples, sizeof(*out->sample), by_comm_number_rank);
	return 0;
}

static uint32_t count_ranks(const struct row *row, size_t rows)
{
	_Static_assert(NT_FRAME_MAX_RANKS % 8 == 0, "one bit a rank");
	uint8_t seen[NT_FRAME_MAX_RANKS / 8] = {0};
	uint32_t n = 0;

	for (size_t i = 0; i < rows; i++) {
		uint8_t bit = (uint8_t)(1 << row[i].rank % 8);

		n += !(seen[row[i].rank / 8] & bit);
		seen[row[i].rank / 8] |= bit;
	}
	return n;
}

int nt_trace_read_straggler(const char *path, struct nt_trace **ret_trace,
			    struct nt_trace_error *ret_error)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct table table = {0};
	nt_autofree struct row *rows = NULL;
	uint64_t base_ns = 0;
	uint32_t job_ranks;
	int r;

	trace = calloc(1, sizeof(*trace));
	if (!trace)
		return -ENOMEM;
	r = read_table(&table, path, ret_error);
	rows = table.row;
	if (r < 0)
		return r;
	assert(rows); /* an empty table was rejected */
	qsort(rows, table.rows, sizeof(*rows), by_step_rank_start);
	job_ranks = count_ranks(rows, table.rows);

	for (size_t i = 0, n; i < table.rows; i += n) {
		for (n = 1; i + n < table.rows && rows[i + n].step == rows[i].step;)
			n++;
		r = add_step(trace, rows + i, n, base_ns, job_ranks);
		if (r < 0)
			return r;
		base_ns = trace->frame[trace->frames - 1].frame.end_ns;
	}
	*ret_trace = nt_take(trace);
	return 0;
}
