/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Text as a terminal shows it: the columns it takes, and characters that must not be printed. A
 * line may have style bytes, which take no column; defused text never has any.
 */
#ifndef NT_CLI_TERM_TEXT_H
#define NT_CLI_TERM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/buf.h"

enum nt_style {
	NT_STYLE_PLAIN,
	NT_STYLE_GOOD,
	NT_STYLE_WARNING,
	NT_STYLE_BAD,
	NT_STYLE_DIM,
	NT_STYLE_HEAD,
	NT_STYLE_SELECTED,
	NT_STYLE_END,
};

/* In a line, begins a style: the byte 1 + style. */
static inline char nt_style_byte(enum nt_style style)
{
	return (char)(1 + (int)style);
}

/* True if terminals of this locale show UTF-8. */
bool nt_text_locale_is_utf8(void);

/* True if the stream is a terminal that shows colours, and NO_COLOR does not forbid them. */
bool nt_text_takes_colours(int fd);

/* The escape sequence that begins a style; "" for NT_STYLE_PLAIN. */
const char *nt_style_sequence(enum nt_style style);

/* Columns of valid or defused text. */
size_t nt_text_columns(const char *text);

/* Bytes of the longest start of text that takes at most so many columns; *ret_columns: those. */
size_t nt_text_fit(const char *text, size_t columns, size_t *ret_columns);

/*
 * In place: replaces by '?' what would control a terminal or hide text: control characters, invalid
 * UTF-8, directions of writing and invisible characters. Returns text.
 */
char *nt_text_defuse(char *text);

/* In place: one ASCII character for each column of text, for terminals without UTF-8. Returns text. */
char *nt_text_ascii(char *text);

/* Appends text, defused, cut with an ellipsis and padded with blanks to the columns. -ENOMEM. */
NT_MUST_CHECK int nt_text_append_field(struct nt_buf *line, const char *text, size_t columns,
				       bool right);

/* Writes a line for a terminal: style bytes become escape sequences, or nothing. -ENOMEM. */
NT_MUST_CHECK int nt_text_write(const char *line, bool colours, bool utf8, FILE *out);

#endif
