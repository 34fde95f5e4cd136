/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/base/parse_number.h"

enum {
	GAP = 2, /* blanks between columns */
	SHRUNK = 8, /* narrowest that a column becomes */
};

struct cell {
	char *text;
	size_t width; /* columns */
	enum nt_style style;
};

struct nt_table {
	struct nt_column column[NT_TABLE_MAX_COLUMNS];
	size_t columns;
	size_t width[NT_TABLE_MAX_COLUMNS]; /* by nt_table_fit() */
	size_t most; /* columns of the terminal */
	struct cell *cell;
	size_t cells, cap;
};

/* ---- terminals ------------------------------------------------------------------------------- */

static int later_terminal = -1;

void nt_table_set_terminal(int fd)
{
	later_terminal = fd;
}

static int terminal_of(FILE *out)
{
	const int fd = fileno(out);

	return fd < 0 ? later_terminal : fd;
}

const char *nt_style_begin(enum nt_style style, FILE *out)
{
	return nt_text_takes_colours(terminal_of(out)) ? nt_style_sequence(style) : "";
}

const char *nt_style_end(FILE *out)
{
	return nt_text_takes_colours(terminal_of(out)) ? "\033[0m" : "";
}

/* Columns of the terminal, or SIZE_MAX if there is none. */
static size_t terminal_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint32_t number;

	if (!isatty(terminal_of(out)))
		return SIZE_MAX;
	if (columns && nt_parse_u32(columns, strlen(columns), 20, 10000, &number) == 0)
		return number;
	if (ioctl(terminal_of(out), TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return 80;
}

/* ---- tables ---------------------------------------------------------------------------------- */

int nt_table_new(const struct nt_column *columns, size_t count, struct nt_table **ret_table)
{
	nt_auto(nt_table) struct nt_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	if (!count || count > NT_TABLE_MAX_COLUMNS)
		return -E2BIG;
	memcpy(table->column, columns, count * sizeof(*columns));
	table->columns = count;
	for (size_t i = 0; i < count; i++) {
		int r = nt_table_add(table, NT_STYLE_HEAD, "%s", columns[i].title);

		if (r < 0)
			return r;
	}
	*ret_table = nt_take(table);
	return 0;
}

void nt_table_free(struct nt_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->cells; i++)
		free(table->cell[i].text);
	free(table->cell);
	free(table);
}

static int grow(struct nt_table *table)
{
	size_t cap = table->cap ? 2 * table->cap : 64;
	struct cell *cell = reallocarray(table->cell, cap, sizeof(*cell));

	if (!cell)
		return -ENOMEM;
	table->cell = cell;
	table->cap = cap;
	return 0;
}

int nt_table_add(struct nt_table *table, enum nt_style style, const char *fmt, ...)
{
	nt_autofree char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	if (table->cells == table->cap && grow(table) < 0)
		return -ENOMEM;
	nt_text_defuse(text);
	table->cell[table->cells++] = (struct cell){text, nt_text_columns(text), style};
	nt_take(text);
	return 0;
}

enum {
	HIDDEN = 0, /* as a width; a visible column is at least as wide as its title */
};

/* Returns the width of all visible columns. */
static size_t total_width(const struct nt_table *table, const size_t *width)
{
	size_t total = 0;

	for (size_t i = 0; i < table->columns; i++) {
		if (width[i] != HIDDEN)
			total += width[i] + (total ? GAP : 0);
	}
	return total;
}

/* Shrinks columns from the right until the table fits. True if it does. */
static bool shrink(const struct nt_table *table, size_t available, size_t *width)
{
	size_t total = total_width(table, width);

	for (size_t i = table->columns; i-- > 0 && total > available;) {
		size_t over = total - available;
		size_t spare = width[i] > SHRUNK ? width[i] - SHRUNK : 0;

		if (!table->column[i].shrinks)
			continue;
		width[i] -= over < spare ? over : spare;
		total -= over < spare ? over : spare;
	}
	return total <= available;
}

static bool is_empty(const struct nt_table *table, size_t column)
{
	for (size_t row = table->columns; row + table->columns <= table->cells;
	     row += table->columns)
		if (strcmp(table->cell[row + column].text, "-") != 0)
			return false;
	return true;
}

/*
 * As wide as the widest cell; then columns shrink; then optional ones are hidden, from the right.
 */
static void fit(const struct nt_table *table, size_t available, size_t *width)
{
	size_t natural[NT_TABLE_MAX_COLUMNS] = {0};
	size_t optional = table->columns;

	for (size_t row = 0; row + table->columns <= table->cells; row += table->columns) {
		for (size_t i = 0; i < table->columns; i++) {
			if (natural[i] < table->cell[row + i].width)
				natural[i] = table->cell[row + i].width;
		}
	}
	for (size_t i = 0; i < table->columns; i++)
		if (table->column[i].rare && is_empty(table, i))
			natural[i] = HIDDEN;
	for (;;) {
		memcpy(width, natural, sizeof(natural));
		if (shrink(table, available, width))
			return;
		while (optional > 0 && !table->column[optional - 1].optional)
			optional--;
		if (!optional)
			return;
		natural[--optional] = HIDDEN;
	}
}

void nt_table_fit(struct nt_table *table, size_t columns)
{
	table->most = columns;
	fit(table, columns, table->width);
}

static int append_cell(const struct nt_table *table, size_t row, size_t column, bool last,
		       struct nt_buf *line)
{
	const struct cell *cell = &table->cell[row * table->columns + column];
	const bool right = table->column[column].right;
	/* No blanks at the end of a row. */
	const size_t width = last && !right && cell->width < table->width[column]
				     ? cell->width
				     : table->width[column];
	const char begin[] = {nt_style_byte(cell->style), '\0'}, end[] = {nt_style_byte(0), '\0'};
	int r = cell->style ? nt_buf_printf(line, "%s", begin) : 0;

	r = r ? r : nt_text_append_field(line, cell->text, width, right);
	if (r == 0 && cell->style)
		r = nt_buf_printf(line, "%s", end);
	return r || last ? r : nt_buf_printf(line, "%*s", GAP, "");
}

int nt_table_row(const struct nt_table *table, size_t row, struct nt_buf *line)
{
	const size_t before = line->len;
	size_t end = 0; /* of the visible ones */
	int r = nt_buf_printf(line, "%s", "");

	for (size_t i = 0; i < table->columns; i++)
		end = table->width[i] == HIDDEN ? end : i + 1;
	for (size_t i = 0; i < end && r == 0; i++)
		if (table->width[i] != HIDDEN)
			r = append_cell(table, row, i, i == end - 1, line);
	if (r == 0) {
		size_t used,
			bytes = nt_text_fit((const char *)line->data + before, table->most, &used);

		line->len = before + bytes;
		line->data[line->len] = '\0';
	}
	return r;
}

void nt_table_print(const struct nt_table *table, FILE *out)
{
	const bool terminal = isatty(terminal_of(out));
	struct nt_table fitted = *table;

	nt_table_fit(&fitted, terminal_width(out));
	for (size_t row = 0; (row + 1) * table->columns <= table->cells; row++) {
		nt_autobuf struct nt_buf line = {0};

		if (nt_table_row(&fitted, row, &line) < 0 ||
		    nt_text_write((const char *)line.data, nt_text_takes_colours(terminal_of(out)),
				  !terminal || nt_text_locale_is_utf8(), out) < 0) {
			(void)fprintf(stderr, "neutracer: out of memory\n");
			return;
		}
		(void)fputc('\n', out);
	}
}
