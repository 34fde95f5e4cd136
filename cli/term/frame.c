/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/term/frame.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int nt_screen_frame_new(size_t columns, size_t rows, struct nt_screen_frame **ret_frame)
{
	struct nt_screen_frame *frame = calloc(1, sizeof(*frame));

	if (!frame)
		return -ENOMEM;
	frame->columns =
		columns < NT_SCREEN_FRAME_MAX_COLUMNS ? columns : NT_SCREEN_FRAME_MAX_COLUMNS;
	frame->rows = rows < NT_SCREEN_FRAME_MAX_ROWS ? rows : NT_SCREEN_FRAME_MAX_ROWS;
	*ret_frame = frame;
	return 0;
}

void nt_screen_frame_free(struct nt_screen_frame *frame)
{
	if (!frame)
		return;
	for (size_t i = 0; i < frame->rows; i++)
		nt_buf_release(&frame->line[i]);
	free(frame);
}

static const char *text_of(const struct nt_screen_frame *frame, size_t row)
{
	return frame->line[row].len ? (const char *)frame->line[row].data : "";
}

static int begin_style(struct nt_buf *line, enum nt_style style)
{
	const char byte[] = {nt_style_byte(style), '\0'};

	return nt_buf_printf(line, "%s", byte);
}

int nt_screen_frame_put(struct nt_screen_frame *frame, size_t row, enum nt_style style,
			const char *fmt, ...)
{
	nt_autofree char *text = NULL;
	size_t columns;
	va_list ap;
	int r;

	if (row >= frame->rows)
		return 0;
	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL;
		return -ENOMEM;
	}
	nt_text_defuse(text);
	columns = nt_text_columns(text);
	nt_buf_clear(&frame->line[row]);
	r = style == NT_STYLE_PLAIN ? 0 : begin_style(&frame->line[row], style);
	return r ? r
		 : nt_text_append_field(&frame->line[row], text,
					columns < frame->columns ? columns : frame->columns, false);
}

int nt_screen_frame_put_line(struct nt_screen_frame *frame, size_t row, const char *line,
			     bool selected)
{
	size_t used, bytes = nt_text_fit(line, frame->columns > 2 ? frame->columns - 2 : 0, &used);
	struct nt_buf *to;
	int r;

	if (row >= frame->rows)
		return 0;
	to = &frame->line[row];
	nt_buf_clear(to);
	if (!selected)
		return nt_buf_printf(to, "  %.*s", (int)bytes, line);
	r = begin_style(to, NT_STYLE_SELECTED);
	r = r ? r : nt_buf_printf(to, "> ");
	for (size_t i = 0; i < bytes && r == 0; i++)
		if (line[i] < 0 || line[i] > NT_STYLE_END)
			r = nt_buf_printf(to, "%c", line[i]);
	return r ? r : nt_buf_printf(to, "%*s", (int)(frame->columns - 2 - used), "");
}

int nt_screen_frame_paint(const struct nt_screen_frame *frame, const struct nt_screen_frame *before,
			  bool colours, bool utf8, FILE *out)
{
	bool all = !before || before->columns != frame->columns || before->rows != frame->rows;

	if (all)
		(void)fputs("\033[0m\033[2J", out);
	for (size_t row = 0; row < frame->rows; row++) {
		if (!all && strcmp(text_of(frame, row), text_of(before, row)) == 0)
			continue;
		/* Erased before it is written: a full row leaves the cursor upon its last column. */
		(void)fprintf(out, "\033[%zu;1H\033[K", row + 1);
		if (nt_text_write(text_of(frame, row), colours, utf8, out) < 0)
			return -ENOMEM;
	}
	return 0;
}

int nt_screen_frame_print(const struct nt_screen_frame *frame, bool colours, bool utf8, FILE *out)
{
	size_t end = frame->rows;

	while (end && !frame->line[end - 1].len)
		end--;
	for (size_t row = 0; row < end; row++) {
		if (nt_text_write(text_of(frame, row), colours, utf8, out) < 0)
			return -ENOMEM;
		(void)fputc('\n', out);
	}
	return 0;
}
