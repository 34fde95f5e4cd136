/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a full-screen program shows at one moment: rows of styled text, none wider than the terminal. */
#ifndef NT_CLI_TERM_FRAME_H
#define NT_CLI_TERM_FRAME_H

#include <stddef.h>
#include <stdio.h>

#include "cli/term/text.h"

enum {
	NT_SCREEN_FRAME_MAX_COLUMNS = 1000,
	NT_SCREEN_FRAME_MAX_ROWS = 500,
};

struct nt_screen_frame {
	size_t columns, rows;
	struct nt_buf line[NT_SCREEN_FRAME_MAX_ROWS]; /* with style bytes; empty: a blank row */
};

/* A larger terminal is used up to the limits. -ENOMEM. */
NT_MUST_CHECK int nt_screen_frame_new(size_t columns, size_t rows,
				      struct nt_screen_frame **ret_frame);
void nt_screen_frame_free(struct nt_screen_frame *frame);
NT_DEFINE_AUTO(nt_screen_frame, nt_screen_frame_free)

/* Sets a row to text, defused and cut. A row below the last one is left out. -ENOMEM. */
NT_MUST_CHECK int nt_screen_frame_put(struct nt_screen_frame *frame, size_t row,
				      enum nt_style style, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Sets a row to a line that has style bytes; if selected, with a mark and in one style. -ENOMEM. */
NT_MUST_CHECK int nt_screen_frame_put_line(struct nt_screen_frame *frame, size_t row,
					   const char *line, bool selected);

/*
 * Writes what differs from the frame before, which may be NULL, as sequences for a terminal of that
 * size. -ENOMEM.
 */
NT_MUST_CHECK int nt_screen_frame_paint(const struct nt_screen_frame *frame,
					const struct nt_screen_frame *before, bool colours,
					bool utf8, FILE *out);

/* Writes the rows as lines, without blank ones at the end. -ENOMEM. */
NT_MUST_CHECK int nt_screen_frame_print(const struct nt_screen_frame *frame, bool colours,
					bool utf8, FILE *out);

#endif
