/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collapsed stacks, as flamegraph.pl and speedscope read them. */
#include <inttypes.h>
#include <string.h>

#include "cli/profile/flame.h"

/* The separators of the format, and blanks of the ends, are replaced. */
static int put_name(struct nt_buf *buf, const char *text)
{
	int r = 0;

	for (const char *c = text; *c && r == 0; c++) {
		const char plain = *c == ';' || (unsigned char)*c < ' ' ? '_' : *c;

		r = nt_buf_append(buf, &plain, 1);
	}
	return r;
}

static int put_folded_frame(struct nt_buf *buf, const struct nt_flame_frame *frame)
{
	const char *slash = strrchr(frame->file, '/');
	int r = nt_buf_append(buf, ";", 1);

	if (r == 0)
		r = put_name(buf, *frame->function ? frame->function : "?");
	if (r == 0 && *frame->file)
		r = nt_buf_append(buf, " (", 2);
	if (r == 0 && *frame->file)
		r = put_name(buf, slash ? slash + 1 : frame->file);
	if (r == 0 && *frame->file)
		r = nt_buf_append(buf, ")", 1);
	return r;
}

int nt_flame_folded(const struct nt_flame *flame, struct nt_buf *buf)
{
	int r = 0;

	for (size_t i = 0; i < flame->stacks && r == 0; i++) {
		const struct nt_flame_stack *stack = &flame->stack[i];

		r = put_name(buf, *stack->thread ? stack->thread : "?");
		if (r == 0)
			r = nt_buf_printf(buf, " [%s]", stack->on_cpu ? "on-cpu" : "off-cpu");
		for (size_t j = 0; j < stack->frames && r == 0; j++)
			r = put_folded_frame(buf, &flame->frame[stack->frame[j]]);
		if (r == 0)
			r = nt_buf_printf(buf, " %" PRIu64 "\n", stack->count);
	}
	return r;
}
