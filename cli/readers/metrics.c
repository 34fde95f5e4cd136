/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/lines.h"
#include "common/base/parse_number.h"
#include "detect/anomaly/metric.h"
#include "detect/math/stats.h"

enum metric_column {
	METRIC_COLUMN_VALUE,
	METRIC_COLUMN_TIME,
	METRIC_COLUMN_SPLIT,
	METRIC_COLUMN_LABEL,
	METRIC_COLUMN_LEFT_OUT,
};

enum {
	FIRST_ROWS = 4096,
	INTERVALS = 4096, /* of which the usual one is found */
};

struct metric_header {
	size_t columns;
	enum metric_column kind[NT_METRIC_TABLE_COLUMNS];
};

void nt_metric_table_free(struct nt_metric_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; table->name && i < table->metrics; i++)
		free(table->name[i]);
	free(table->name);
	free(table->value);
	free(table->time_s);
	free(table->training);
	free(table->label);
	free(table);
}

__attribute__((format(printf, 4, 5))) static int
refuse_table(struct nt_trace_error *error, const char *path, uint64_t line, const char *format, ...)
{
	char text[NT_TRACE_ERROR_BYTES / 2];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)snprintf(error->text, sizeof(error->text), "%.200s:%" PRIu64 ": %s", path, line,
		       text);
	return -EBADMSG;
}

/* Cuts the next cell off, without blanks and quotes around it. False: there is none. */
static bool next_cell(const char **line, const char **cell, size_t *len)
{
	const char *end;

	if (!*line)
		return false;
	end = strchrnul(*line, ',');
	*cell = *line;
	*len = (size_t)(end - *line);
	*line = *end ? end + 1 : NULL;
	while (*len && strchr(" \t\"", (*cell)[*len - 1]))
		--*len;
	while (*len && strchr(" \t\"", **cell)) {
		++*cell;
		--*len;
	}
	return true;
}

static bool cell_is(const char *cell, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(cell, word, len) == 0;
}

static enum metric_column find_column(const char *name, size_t len)
{
	if (cell_is(name, len, "time") || cell_is(name, len, "timestamp"))
		return METRIC_COLUMN_TIME;
	if (cell_is(name, len, "split"))
		return METRIC_COLUMN_SPLIT;
	return cell_is(name, len, "label") ? METRIC_COLUMN_LABEL : METRIC_COLUMN_VALUE;
}

static int add_metric(struct nt_metric_table *table, struct metric_header *header, const char *name,
		      size_t len)
{
	if (table->metrics == NT_ANOMALY_METRICS_MAX) {
		header->kind[header->columns] = METRIC_COLUMN_LEFT_OUT;
		table->left_out++;
		return 0;
	}
	table->name[table->metrics] = strndup(name, len);
	if (!table->name[table->metrics])
		return -ENOMEM;
	table->metrics++;
	return 0;
}

static int read_names(struct nt_metric_table *table, struct metric_header *header, const char *path,
		      const char *line, struct nt_trace_error *error)
{
	bool has[METRIC_COLUMN_LEFT_OUT] = {false};
	const char *cell;
	size_t len;
	int r = 0;

	table->name = calloc(NT_ANOMALY_METRICS_MAX, sizeof(*table->name));
	if (!table->name)
		return -ENOMEM;
	for (; next_cell(&line, &cell, &len) && r == 0; header->columns++) {
		enum metric_column kind = find_column(cell, len);

		if (header->columns == NT_METRIC_TABLE_COLUMNS)
			return refuse_table(error, path, 1, "more than %d columns",
					    NT_METRIC_TABLE_COLUMNS);
		if (kind != METRIC_COLUMN_VALUE && has[kind])
			return refuse_table(error, path, 1, "two columns named '%.*s'", (int)len,
					    cell);
		has[kind] = true;
		header->kind[header->columns] = kind;
		if (kind == METRIC_COLUMN_VALUE)
			r = add_metric(table, header, cell, len);
	}
	if (r == 0 && !table->metrics)
		return refuse_table(error, path, 1, "no column is a metric");
	return r;
}

static bool has_column(const struct metric_header *header, enum metric_column kind)
{
	for (size_t i = 0; i < header->columns; i++)
		if (header->kind[i] == kind)
			return true;
	return false;
}

static int grow_array(void *array, size_t cap, size_t size)
{
	void **at = array, *grown = reallocarray(*at, cap, size);

	if (!grown)
		return -ENOMEM;
	*at = grown;
	return 0;
}

static int grow_table(struct nt_metric_table *table, const struct metric_header *header)
{
	size_t cap = table->cap ? 2 * table->cap : FIRST_ROWS;
	int r = grow_array(&table->value, cap, table->metrics * sizeof(*table->value));

	if (r == 0 && has_column(header, METRIC_COLUMN_TIME))
		r = grow_array(&table->time_s, cap, sizeof(*table->time_s));
	if (r == 0 && has_column(header, METRIC_COLUMN_SPLIT))
		r = grow_array(&table->training, cap, sizeof(*table->training));
	if (r == 0 && has_column(header, METRIC_COLUMN_LABEL))
		r = grow_array(&table->label, cap, sizeof(*table->label));
	if (r == 0)
		table->cap = cap;
	return r;
}

/* False: the text is neither a number nor a word for a missing one. */
static bool parse_cell(const char *cell, size_t len, double *value)
{
	static const char *const missing[] = {"",     "nan",  "null",     "none",     "na",
					      "inf",  "-inf", "+inf",     "infinity", "-infinity",
					      "-nan", "n/a",  "+infinity"};
	int r = nt_parse_double(cell, len, -HUGE_VAL, HUGE_VAL, value);

	if (r == 0)
		return true;
	*value = NAN;
	if (r == -ERANGE) /* beyond what a double holds */
		return true;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
		if (cell_is(cell, len, missing[i]))
			return true;
	return false;
}

static bool take_cell(struct nt_metric_table *table, enum metric_column kind, const char *cell,
		      size_t len, size_t *metric)
{
	double number;

	switch (kind) {
	case METRIC_COLUMN_SPLIT:
		table->training[table->rows] = cell_is(cell, len, "train");
		return true;
	case METRIC_COLUMN_LABEL:
		if (!parse_cell(cell, len, &number))
			return false;
		table->label[table->rows] = number > 0.0;
		return true;
	case METRIC_COLUMN_TIME:
		return parse_cell(cell, len, &table->time_s[table->rows]);
	case METRIC_COLUMN_VALUE:
		return parse_cell(cell, len,
				  &table->value[table->rows * table->metrics + (*metric)++]);
	default:
		return true;
	}
}

/* 1: the row is complete; 0: it has fewer cells than the header. */
static int read_cells(struct nt_metric_table *table, const struct metric_header *header,
		      const char *path, const struct nt_lines *lines, const char *line,
		      struct nt_trace_error *error)
{
	size_t metric = 0, column = 0, len;
	const char *cell;

	while (next_cell(&line, &cell, &len)) {
		if (column == header->columns)
			return refuse_table(error, path, nt_lines_number(lines),
					    "more cells than the %zu columns", header->columns);
		if (!take_cell(table, header->kind[column], cell, len, &metric))
			return refuse_table(error, path, nt_lines_number(lines),
					    "'%.*s' is no number", (int)(len < 40 ? len : 40),
					    cell);
		column++;
	}
	return column == header->columns;
}

static int read_rows(struct nt_metric_table *table, const struct metric_header *header,
		     const char *path, struct nt_lines *lines, struct nt_trace_error *error)
{
	char *line;
	int r;

	while ((r = nt_lines_next(lines, &line)) > 0) {
		if (!*line)
			continue;
		if (table->rows == NT_METRIC_TABLE_ROWS)
			return refuse_table(error, path, nt_lines_number(lines),
					    "more than %d rows", NT_METRIC_TABLE_ROWS);
		r = table->rows == table->cap ? grow_table(table, header) : 0;
		r = r ?: read_cells(table, header, path, lines, line, error);
		if (r < 0)
			return r;
		if (r == 0 && !nt_lines_is_open(lines))
			return refuse_table(error, path, nt_lines_number(lines),
					    "fewer cells than the %zu columns", header->columns);
		table->cut |= r == 0;
		table->rows += r > 0;
	}
	return r;
}

int nt_metric_table_read(const char *path, struct nt_metric_table **ret_table,
			 struct nt_trace_error *ret_error)
{
	nt_auto(nt_metric_table) struct nt_metric_table *table = calloc(1, sizeof(*table));
	nt_autofree struct metric_header *header = calloc(1, sizeof(*header));
	nt_auto(nt_lines) struct nt_lines *lines = NULL;
	char *line = NULL;
	int r;

	if (!table || !header)
		return -ENOMEM;
	r = nt_lines_open(path, &lines);
	r = r ?: nt_lines_next(lines, &line);
	if (r == 0)
		return refuse_table(ret_error, path, 1, "the file is empty");
	if (r > 0)
		r = read_names(table, header, path, line, ret_error);
	r = r ?: read_rows(table, header, path, lines, ret_error);
	if (r == -EMSGSIZE)
		return refuse_table(ret_error, path, nt_lines_number(lines),
				    "the line is too long");
	if (r == -EBADMSG && !*ret_error->text)
		return refuse_table(ret_error, path, nt_lines_number(lines), "damaged, or no text");
	if (r < 0)
		return r;
	if (!table->rows)
		return refuse_table(ret_error, path, nt_lines_number(lines), "no row of values");
	*ret_table = nt_take(table);
	return 0;
}

double nt_metric_table_interval(const struct nt_metric_table *table)
{
	double step[INTERVALS];
	size_t n = 0;

	for (size_t i = 1; table->time_s && i < table->rows && n < INTERVALS; i++) {
		double away = table->time_s[i] - table->time_s[i - 1];

		if (away > 0.0)
			step[n++] = away;
	}
	return n ? nt_stats_median_of(step, n) : 0.0;
}
