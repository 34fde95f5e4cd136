/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A text table for terminals. Columns are as wide as needed; the last ones are cut at the
 * terminal's width, and whole if the output is no terminal. No row is wider than the terminal.
 * Colours on a terminal only, and not with NO_COLOR.
 */
#ifndef NT_CLI_LIVE_TABLE_H
#define NT_CLI_LIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/term/text.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_TABLE_MAX_COLUMNS = 16,
};

struct nt_column {
	const char *title;
	bool right; /* aligned */
	bool shrinks; /* shrinks if the terminal is narrow; never below 8 columns */
	bool optional; /* omitted if that is not enough */
	bool rare; /* omitted if every row has "-" for it */
};

struct nt_table;

NT_MUST_CHECK int nt_table_new(const struct nt_column *columns, size_t count,
			       struct nt_table **ret_table);
void nt_table_free(struct nt_table *table);
NT_DEFINE_AUTO(nt_table, nt_table_free)

/* Adds the next cell, left to right and row by row. Control characters are replaced. -ENOMEM. */
NT_MUST_CHECK int nt_table_add(struct nt_table *table, enum nt_style style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void nt_table_print(const struct nt_table *table, FILE *out);

/* Fits the columns into this width, for nt_table_row(). SIZE_MAX: as wide as needed. */
void nt_table_fit(struct nt_table *table, size_t columns);

/* Appends a row as a line with style bytes, no wider than the width; row 0 has the titles. -ENOMEM. */
NT_MUST_CHECK int nt_table_row(const struct nt_table *table, size_t row, struct nt_buf *line);

/*
 * A stream in memory whose content goes to the terminal fd later is treated as that terminal. -1:
 * such a stream is none.
 */
void nt_table_set_terminal(int fd);

/* The escape sequence that begins a style on this stream; "" if it takes no colours. */
const char *nt_style_begin(enum nt_style style, FILE *out);
const char *nt_style_end(FILE *out);

#endif
