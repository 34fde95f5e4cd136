/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Parser of marker files. Each operation has four rows of one Id: begin and end on the host
 * (SourceKind 0) and on the device (1), in any order. One of them carries the name,
 * "comm:OPERATION!GROUP!TYPE!COUNT". Several processes may append to a file in turn, so that an Id
 * may repeat.
 */
#include "cli/systrace/markers.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/readers/lines.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/base/table.h"
#include "proto/text.h"
#include "proto/wire.h"

enum {
	MAX_ROWS = 1 << 25,
	MAX_KINDS = 1 << 18,
	MAX_FIELDS = 32,
	NO_KIND = UINT32_MAX,
};

enum marker_column {
	COLUMN_ID,
	COLUMN_NAME,
	COLUMN_SOURCE,
	COLUMN_TIME,
	COLUMN_END,
};

static const struct {
	const char *name, *other;
} column_names[COLUMN_END] = {
	{"Id", NULL},
	{"Name", NULL},
	{"SourceKind", NULL},
	{"Timestamp", "Timestamp(ns)"},
};

enum marker_source {
	SOURCE_HOST,
	SOURCE_DEVICE,
};

struct marker_row {
	uint64_t id, time_ns;
	uint32_t kind;
	uint8_t source;
};

struct marker_kind {
	uint64_t key;
	uint32_t index;
	UT_hash_handle hh;
};

struct marker_field {
	const char *text;
	size_t len;
};

struct marker_table {
	const char *path;
	struct nt_trace_error *error;
	struct nt_lines *lines;
	size_t at[COLUMN_END], fields;
	struct marker_row *row;
	size_t rows, cap;
	struct marker_kind *known;
	struct nt_markers *out;
};

static void release_table(struct marker_table *table)
{
	struct marker_kind *kind, *next;

	HASH_ITER(hh, table->known, kind, next)
	{
		HASH_DEL(table->known, kind);
		free(kind);
	}
	free(table->row);
	nt_lines_close(table->lines);
}

void nt_markers_free(struct nt_markers *markers)
{
	if (!markers)
		return;
	free(markers->kind);
	free(markers->op);
	free(markers);
}

/* ---- names -------------------------------------------------------------------------------- */

/* Without the prefix "Hccl" and any suffix: AlltoAllV, AllGatherV. */
static const struct {
	const char *name;
	uint8_t op, frame_kind;
} operations[] = {
	{"AllReduce", NT_OP_ALL_REDUCE, NT_FRAME_SYNCHRONISING},
	{"AllGather", NT_OP_ALL_GATHER, NT_FRAME_SYNCHRONISING},
	{"ReduceScatter", NT_OP_REDUCE_SCATTER, NT_FRAME_SYNCHRONISING},
	{"Barrier", NT_OP_BARRIER, NT_FRAME_SYNCHRONISING},
	{"AlltoAll", NT_OP_ALL_TO_ALL, NT_FRAME_ALL_TO_ALL},
	{"Broadcast", NT_OP_BROADCAST, NT_FRAME_ROOTED},
	{"Reduce", NT_OP_REDUCE, NT_FRAME_ROOTED},
	{"Gather", NT_OP_GATHER, NT_FRAME_ROOTED},
	{"Scatter", NT_OP_SCATTER, NT_FRAME_ROOTED},
	{"BatchSendRecv", NT_OP_SEND_RECV, NT_FRAME_POINT_TO_POINT},
	{"Send", NT_OP_SEND, NT_FRAME_POINT_TO_POINT},
	{"Rec", NT_OP_RECV, NT_FRAME_POINT_TO_POINT},
};

static void find_operation(const struct marker_field *name, struct nt_marker_kind *kind)
{
	const char *text = name->text;
	size_t len = name->len;

	kind->op = NT_OP_UNKNOWN;
	kind->frame_kind = NT_FRAME_OTHER;
	if (len > 4 && strncasecmp(text, "Hccl", 4) == 0) {
		text += 4;
		len -= 4;
	}
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		const size_t want = strlen(operations[i].name);

		if (len < want || strncasecmp(text, operations[i].name, want) != 0)
			continue;
		kind->op = operations[i].op;
		kind->frame_kind = operations[i].frame_kind;
		return;
	}
}

/* Bytes of an element: "fp16", "BFP16", "float32", "int8"; 0 if unknown. */
static uint64_t width_of(const struct marker_field *type)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < type->len && bits < 1000; i++)
		if (isdigit((unsigned char)type->text[i]))
			bits = bits * 10 + (uint64_t)(type->text[i] - '0');
	return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

static struct marker_field cut(struct marker_field *rest, char separator)
{
	const char *end = memchr(rest->text, separator, rest->len);
	struct marker_field first = {rest->text, end ? (size_t)(end - rest->text) : rest->len};

	rest->text += first.len + (end != NULL);
	rest->len -= first.len + (end != NULL);
	return first;
}

static int refuse_name(const struct marker_table *table, const struct marker_field *name)
{
	return nt_trace_refuse(table->error,
			       "%s:%" PRIu64
			       ": Name is '%.*s', expected comm:OPERATION!GROUP!TYPE!COUNT",
			       table->path, nt_lines_number(table->lines),
			       (int)(name->len < 60 ? name->len : 60), name->text);
}

static int describe_kind(const struct marker_table *table, const struct marker_field *name,
			 struct nt_marker_kind *ret_kind)
{
	const char separator = memchr(name->text, '!', name->len) ? '!' : ',';
	struct marker_field rest = {name->text + 5, name->len - 5};
	const struct marker_field op = cut(&rest, separator), group = cut(&rest, separator);
	const struct marker_field type = cut(&rest, separator);
	struct nt_marker_kind kind = {0};
	uint64_t count = 0, width = width_of(&type);

	if (!op.len || !group.len || nt_parse_u64(rest.text, rest.len, 0, UINT64_MAX, &count) < 0)
		return refuse_name(table, name);
	find_operation(&op, &kind);
	(void)nt_text_clean(op.text, op.len, kind.name, sizeof(kind.name) - 1);
	if (width && count <= (UINT64_MAX >> 8) / width)
		kind.bytes = count * width;
	kind.group = nt_hash_mix(nt_hash_bytes(NT_HASH_SEED, group.text, group.len));
	kind.shape = nt_hash_bytes(NT_HASH_SEED, op.text, op.len);
	/* The volume exchanged among experts varies from call to call. */
	if (kind.frame_kind != NT_FRAME_ALL_TO_ALL)
		kind.shape = nt_hash_bytes(kind.shape, type.text, type.len + 1 + rest.len);
	*ret_kind = kind;
	return 0;
}

/* Finds or adds the kind of this name; NO_KIND for a marker of something else. */
static int find_kind(struct marker_table *table, const struct marker_field *name,
		     uint32_t *ret_kind)
{
	const uint64_t key = nt_hash_mix(nt_hash_bytes(NT_HASH_SEED, name->text, name->len));
	struct nt_markers *out = table->out;
	struct nt_marker_kind described;
	struct marker_kind *kind = NULL;
	int r;

	*ret_kind = NO_KIND;
	if (name->len < 5 || memcmp(name->text, "comm:", 5) != 0)
		return 0;
	HASH_FIND(hh, table->known, &key, sizeof(key), kind);
	if (kind) {
		*ret_kind = kind->index;
		return 0;
	}
	r = describe_kind(table, name, &described);
	if (r < 0)
		return r;
	if (out->kinds == MAX_KINDS)
		return nt_trace_refuse(table->error, "%s:%" PRIu64 ": more than %d different calls",
				       table->path, nt_lines_number(table->lines), MAX_KINDS);
	/* Grows at powers of two, so that no capacity is stored. */
	if ((out->kinds & (out->kinds - 1)) == 0) {
		struct nt_marker_kind *grown = reallocarray(
			out->kind, out->kinds ? (size_t)out->kinds * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		out->kind = grown;
	}
	kind = calloc(1, sizeof(*kind));
	if (!kind)
		return -ENOMEM;
	kind->key = key;
	kind->index = out->kinds;
	HASH_ADD(hh, table->known, key, sizeof(kind->key), kind);
	if (!nt_table_has(kind)) {
		free(kind);
		return -ENOMEM;
	}
	out->kind[out->kinds++] = described;
	*ret_kind = kind->index;
	return 0;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* Splits a line; a quoted field may contain commas. MAX_FIELDS + 1: too many, or an open quote. */
static size_t split(const char *line, struct marker_field *field)
{
	size_t n = 0;

	for (;;) {
		const bool quoted = *line == '"';
		const char *end = quoted ? strchr(line + 1, '"') : strchrnul(line, ',');

		if (n == MAX_FIELDS || !end || (quoted && end[1] && end[1] != ','))
			return MAX_FIELDS + 1;
		field[n++] = (struct marker_field){line + quoted, (size_t)(end - line) - quoted};
		end += quoted;
		if (!*end)
			return n;
		line = end + 1;
	}
}

static bool field_is(const struct marker_field *field, const char *text)
{
	return text && field->len == strlen(text) && memcmp(field->text, text, field->len) == 0;
}

static int read_header(struct marker_table *table, const struct marker_field *field, size_t n)
{
	for (size_t c = 0; c < COLUMN_END; c++) {
		size_t f = 0;

		while (f < n && !field_is(&field[f], column_names[c].name) &&
		       !field_is(&field[f], column_names[c].other))
			f++;
		if (f == n)
			return nt_trace_refuse(
				table->error,
				"%s:1: no column '%s'; a file of markers has Id, Name, SourceKind and "
				"Timestamp",
				table->path, column_names[c].name);
		table->at[c] = f;
	}
	table->fields = n;
	return 0;
}

static int read_number(const struct marker_table *table, const struct marker_field *field,
		       enum marker_column column, uint64_t max, uint64_t *ret_value)
{
	const struct marker_field *f = &field[table->at[column]];

	if (nt_parse_u64(f->text, f->len, 0, max, ret_value) < 0)
		return nt_trace_refuse(
			table->error,
			"%s:%" PRIu64 ": %s is '%.*s', expected an integer from 0 to %" PRIu64,
			table->path, nt_lines_number(table->lines), column_names[column].name,
			(int)(f->len < 40 ? f->len : 40), f->text, max);
	return 0;
}

static int add_row(struct marker_table *table, const struct marker_row *row)
{
	if (table->rows == MAX_ROWS)
		return nt_trace_refuse(table->error, "%s:%" PRIu64 ": more than %d rows",
				       table->path, nt_lines_number(table->lines), MAX_ROWS);
	if (table->rows == table->cap) {
		const size_t cap = table->cap ? table->cap * 2 : 4096;
		struct marker_row *rows = reallocarray(table->row, cap, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		table->row = rows;
		table->cap = cap;
	}
	table->row[table->rows++] = *row;
	return 0;
}

static int read_row(struct marker_table *table, const struct marker_field *field)
{
	uint64_t source = 0;
	struct marker_row row = {0};
	int r;

	r = read_number(table, field, COLUMN_ID, UINT64_MAX, &row.id);
	r = r ?: read_number(table, field, COLUMN_SOURCE, SOURCE_DEVICE, &source);
	r = r ?: read_number(table, field, COLUMN_TIME, INT64_MAX, &row.time_ns);
	r = r ?: find_kind(table, &field[table->at[COLUMN_NAME]], &row.kind);
	row.source = (uint8_t)source;
	return r ?: add_row(table, &row);
}

static int read_line(struct marker_table *table, const char *line)
{
	const uint64_t number = nt_lines_number(table->lines);
	struct marker_field field[MAX_FIELDS];
	const size_t n = split(line, field);

	if (n > MAX_FIELDS)
		return nt_trace_refuse(table->error,
				       "%s:%" PRIu64 ": more than %d columns, or a quote left open",
				       table->path, number, MAX_FIELDS);
	if (number == 1)
		return read_header(table, field, n);
	if (n != table->fields)
		return nt_trace_refuse(table->error,
				       "%s:%" PRIu64 ": %zu fields, the header has %zu",
				       table->path, number, n, table->fields);
	return read_row(table, field);
}

static int read_rows(struct marker_table *table)
{
	char *line = NULL;
	int r;

	r = nt_lines_open(table->path, &table->lines);
	if (r < 0) {
		(void)nt_trace_refuse(table->error, "%s: %s", table->path, strerrordesc_np(-r));
		return r;
	}
	while ((r = nt_lines_next(table->lines, &line)) > 0) {
		r = read_line(table, line);
		if (r < 0)
			return r;
	}
	if (r == -ENOMEM || r == 0)
		return r;
	return nt_trace_refuse(table->error, "%s:%" PRIu64 ": %s", table->path,
			       nt_lines_number(table->lines),
			       r == -EMSGSIZE ? "line longer than 64 KiB"
					      : "damaged: the file is cut short or is not text");
}

/* ---- operations --------------------------------------------------------------------------- */

static int by_id_source_time(const void *a, const void *b)
{
	const struct marker_row *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static uint64_t order_of(const struct nt_marker_op *op)
{
	return op->launch_ns ? op->launch_ns : op->start_ns;
}

static int by_launch(const void *a, const void *b)
{
	const struct nt_marker_op *x = a, *y = b;
	const uint64_t first = order_of(x), second = order_of(y);

	if (first != second)
		return first < second ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static uint32_t kind_of(const struct marker_row *pair)
{
	return pair[0].kind != NO_KIND ? pair[0].kind : pair[1].kind;
}

/* All rows of one Id: the n-th pair of the host matches the n-th pair of the device. */
static void pair_rows(struct nt_markers *out, const struct marker_row *row, size_t n)
{
	size_t hosts = 0, devices;

	while (hosts < n && row[hosts].source == SOURCE_HOST)
		hosts++;
	devices = n - hosts;
	/* Other things than communication may be marked, too. */
	for (size_t i = 0; i < n; i++) {
		if (row[i].kind != NO_KIND)
			break;
		if (i + 1 == n)
			return;
	}
	out->unfinished += (hosts & 1) + (devices & 1);
	for (size_t i = 0; i + 1 < devices; i += 2) {
		const struct marker_row *device = &row[hosts + i],
					*host = i + 1 < hosts ? &row[i] : NULL;
		struct nt_marker_op op = {
			.start_ns = device[0].time_ns,
			.end_ns = device[1].time_ns,
			.launch_ns = host ? host[0].time_ns : 0,
			.launched_ns = host ? host[1].time_ns : 0,
			.kind = kind_of(device),
		};

		if (op.kind == NO_KIND && host)
			op.kind = kind_of(host);
		if (op.kind == NO_KIND)
			out->unfinished++;
		else
			out->op[out->ops++] = op;
	}
}

/* Most operations are launched before they run; otherwise the two clocks are unrelated. */
static bool check_host(const struct nt_markers *out)
{
	size_t timed = 0, impossible = 0;

	for (size_t i = 0; i < out->ops; i++) {
		timed += out->op[i].launch_ns != 0;
		impossible += out->op[i].launch_ns > out->op[i].start_ns;
	}
	return timed * 2 > out->ops && impossible * 2 <= timed;
}

static int pair_all(struct marker_table *table)
{
	struct nt_markers *out = table->out;

	if (!table->rows)
		return 0;
	out->op = calloc(table->rows / 2 + 1, sizeof(*out->op));
	if (!out->op)
		return -ENOMEM;
	qsort(table->row, table->rows, sizeof(*table->row), by_id_source_time);
	for (size_t i = 0, end; i < table->rows; i = end) {
		for (end = i + 1; end < table->rows && table->row[end].id == table->row[i].id;)
			end++;
		pair_rows(out, &table->row[i], end - i);
	}
	out->has_host = check_host(out);
	for (size_t i = 0; i < out->ops && !out->has_host; i++)
		out->op[i].launch_ns = out->op[i].launched_ns = 0;
	if (out->ops)
		qsort(out->op, out->ops, sizeof(*out->op), by_launch);
	return 0;
}

int nt_markers_read(const char *path, struct nt_markers **ret_markers,
		    struct nt_trace_error *ret_error)
{
	nt_auto(nt_markers) struct nt_markers *markers = NULL;
	__attribute__((cleanup(release_table))) struct marker_table table = {.path = path,
									     .error = ret_error};
	int r;

	markers = calloc(1, sizeof(*markers));
	if (!markers)
		return -ENOMEM;
	table.out = markers;
	r = read_rows(&table);
	r = r ?: pair_all(&table);
	if (r < 0)
		return r;
	*ret_markers = nt_take(markers);
	return 0;
}

/* ---- the file's name ---------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Length without .csv and .gz. */
static size_t stem_of(const char *base)
{
	static const char *const ends[] = {".gz", ".csv"};
	size_t len = strlen(base);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const size_t end = strlen(ends[i]);

		if (len > end && memcmp(base + len - end, ends[i], end) == 0)
			len -= end;
	}
	return len;
}

static const char *const prefixes[] = {"hccl_activity-", "mspti-marker-"};

static size_t prefix_of(const char *base)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(base, prefixes[i], strlen(prefixes[i])) == 0)
			return strlen(prefixes[i]);
	return 0;
}

bool nt_markers_is_file(const char *path)
{
	const char *base = base_name(path);
	const size_t stem = stem_of(base);

	return prefix_of(base) && strncmp(base + stem, ".csv", 4) == 0;
}

bool nt_markers_place(const char *path, uint32_t *ret_rank, struct nt_trace_node *ret_node)
{
	const char *base = base_name(path);
	size_t end = stem_of(base), digits = 0, start = prefix_of(base);

	while (digits < end && isdigit((unsigned char)base[end - digits - 1]))
		digits++;
	if (nt_parse_u32(base + end - digits, digits, 0, NT_FRAME_MAX_RANKS - 1, ret_rank) < 0)
		return false;
	/* "10.0.0.1-." or "10.0.0.1-": the address, which may hold a '-' of its own. */
	end -= digits;
	end -= end > start && base[end - 1] == '.';
	end -= end > start && base[end - 1] == '-';
	ret_node->name[0] = '\0';
	if (start && end > start)
		(void)nt_text_clean(base + start, end - start, ret_node->name,
				    sizeof(ret_node->name) - 1);
	return true;
}
