/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/rank_stacks.h"

#include <stdio.h>

#include "cli/live/table.h"
#include "proto/json.h"

enum {
	TEXT_BYTES = 512,
	NUMBER_BYTES = 24,
};

static void print_head(const json_t *stack)
{
	const char *name = nt_json_get_text(stack, "name", NULL);
	const char *interpreter = nt_json_get_text(stack, "interpreter", NULL);
	const char *wait = nt_json_get_text(stack, "wait", NULL);
	char text[TEXT_BYTES];

	(void)snprintf(
		text, sizeof(text), "rank %.0f%s, thread %.0f%s%s%s, state %s%s%s%s%s%s%s, read %s",
		nt_json_get_number(stack, "rank", 0),
		json_is_true(json_object_get(stack, "culprit")) ? "" : " (for comparison)",
		nt_json_get_number(stack, "thread", 0), name ? " '" : "", name ? name : "",
		name ? "'" : "", nt_json_get_text(stack, "state", "not known"), wait ? " in " : "",
		wait ? wait : "",
		json_is_true(json_object_get(stack, "holds_gil")) ? ", holds the GIL" : "",
		json_is_true(json_object_get(stack, "gc_running")) ? ", garbage collection runs"
								   : "",
		interpreter ? ", " : "", interpreter ? interpreter : "",
		nt_json_get_text(stack, "read", "-"));
	(void)printf("\n%s%s%s\n", nt_style_begin(NT_STYLE_HEAD, stdout), nt_text_defuse(text),
		     nt_style_end(stdout));
}

static void print_frame(const json_t *frame)
{
	const double line = nt_json_get_number(frame, "line", 0);
	char text[TEXT_BYTES], number[NUMBER_BYTES] = "";

	if (line > 0)
		(void)snprintf(number, sizeof(number), ":%.0f", line);
	(void)snprintf(text, sizeof(text), "%s (%s%s)", nt_json_get_text(frame, "function", "?"),
		       nt_json_get_text(frame, "file", "?"), number);
	(void)printf("  %s\n", nt_text_defuse(text));
}

static void print_reason(const json_t *stack, const char *member, const char *what)
{
	const char *reason = nt_json_get_text(stack, member, NULL);
	char text[TEXT_BYTES];

	if (!reason)
		return;
	(void)snprintf(text, sizeof(text), "%s: %s", what, reason);
	(void)printf("  %s%s%s\n", nt_style_begin(NT_STYLE_DIM, stdout), nt_text_defuse(text),
		     nt_style_end(stdout));
}

static void print_stack(const json_t *stack)
{
	const json_t *frames = json_object_get(stack, "frames");
	const double left_out = nt_json_get_number(stack, "frames_left_out", 0);

	print_head(stack);
	for (size_t i = 0; i < json_array_size(frames); i++)
		print_frame(json_array_get(frames, i));
	if (left_out > 0)
		(void)printf("  %.0f more frames\n", left_out);
	print_reason(stack, "python_reason", "Python frames");
	print_reason(stack, "native_reason", "native frames");
}

void nt_live_print_stacks(const json_t *stacks)
{
	for (size_t i = 0; i < json_array_size(stacks); i++)
		print_stack(json_array_get(stacks, i));
}
