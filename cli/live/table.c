/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/base/parse_number.h"
#include "common/base/utf8.h"

enum {
	GAP = 2, /* blanks between columns */
	SHRUNK = 8, /* narrowest that a column becomes */
};

struct cell {
	char *text;
	size_t width; /* characters */
	enum nt_style style;
};

struct nt_table {
	struct nt_column column[NT_TABLE_MAX_COLUMNS];
	size_t columns;
	struct cell *cell;
	size_t cells, cap;
};

/* ---- text ------------------------------------------------------------------------------------ */

char *nt_table_defuse(char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len;) {
		size_t n = nt_utf8_length(text + i, len - i);
		bool control = n == 1 && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f);

		/* U+0080 to U+009F are control characters of terminals too. */
		if (n == 2 && (unsigned char)text[i] == 0xc2 && (unsigned char)text[i + 1] < 0xa0)
			text[i] = text[i + 1] = '?';
		else if (!n || control)
			text[i] = '?';
		i += n ? n : 1;
	}
	return text;
}

static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static size_t bytes_of(const char *text, size_t characters)
{
	size_t i = 0;

	while (text[i] && characters) {
		i++;
		while (((unsigned char)text[i] & 0xc0) == 0x80)
			i++;
		characters--;
	}
	return i;
}

/* ---- terminals ------------------------------------------------------------------------------- */

static bool takes_colours(FILE *out)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

const char *nt_style_begin(enum nt_style style, FILE *out)
{
	static const char *const codes[] = {
		[NT_STYLE_PLAIN] = "",           [NT_STYLE_GOOD] = "\033[32m",
		[NT_STYLE_WARNING] = "\033[33m", [NT_STYLE_BAD] = "\033[31;1m",
		[NT_STYLE_DIM] = "\033[2m",      [NT_STYLE_HEAD] = "\033[1m",
	};

	return takes_colours(out) ? codes[style] : "";
}

const char *nt_style_end(FILE *out)
{
	return takes_colours(out) ? "\033[0m" : "";
}

/* Columns of the terminal, or SIZE_MAX if there is none. */
static size_t terminal_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint32_t number;

	if (!isatty(fileno(out)))
		return SIZE_MAX;
	if (columns && nt_parse_u32(columns, strlen(columns), 20, 10000, &number) == 0)
		return number;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col)
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
	nt_table_defuse(text);
	n = (int)width_of(text);
	table->cell[table->cells++] = (struct cell){nt_take(text), (size_t)n, style};
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

static void print_cell(const struct nt_table *table, size_t row, size_t column, size_t width,
		       bool last, FILE *out)
{
	const struct cell *cell = &table->cell[row + column];
	bool cut = cell->width > width;
	size_t shown = cut ? width : cell->width;
	int pad = (int)(width - shown);
	bool right = table->column[column].right;
	int bytes = (int)bytes_of(cell->text, cut ? shown - 1 : shown);

	(void)fprintf(out, "%*s%s%.*s%s%s", right ? pad : 0, "", nt_style_begin(cell->style, out),
		      bytes, cell->text, cut ? "…" : "", nt_style_end(out));
	if (!last)
		(void)fprintf(out, "%*s", (right ? 0 : pad) + GAP, "");
}

void nt_table_print(const struct nt_table *table, FILE *out)
{
	size_t width[NT_TABLE_MAX_COLUMNS];
	size_t end = table->columns; /* of the visible ones */

	fit(table, terminal_width(out), width);
	for (size_t i = table->columns; i-- > 0 && width[i] == HIDDEN;)
		end = i;
	for (size_t row = 0; row + table->columns <= table->cells; row += table->columns) {
		for (size_t i = 0; i < end; i++) {
			if (width[i] != HIDDEN)
				print_cell(table, row, i, width[i], i == end - 1, out);
		}
		(void)fputc('\n', out);
	}
}
