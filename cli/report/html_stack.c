/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stacks of an incident on the page: one block for each thread. */
#include "cli/report/html_impl.h"

enum {
	MAX_FILE = 160, /* bytes of a path that are shown */
	MAX_FUNCTION = 128,
};

static void put_reason(struct nt_markup *out, const char *what, const char *reason)
{
	if (!*reason)
		return;
	nt_markup_put(out, "<p class=\"soft\">%s: ", what);
	nt_markup_text(out, reason, NT_HTML_TEXT);
	nt_markup_put(out, ".</p>\n");
}

static void put_head(const struct nt_html_page *page, const struct nt_wire_incident_stack *one)
{
	const struct nt_wire_stack *thread = &one->stack;
	struct nt_markup *out = page->out;

	nt_markup_put(out, "<details%s><summary>Stack of rank %u%s, thread %u",
		      one->is_culprit ? " open" : "", one->rank,
		      one->is_culprit ? "" : " for comparison", thread->tid);
	if (*thread->name) {
		nt_markup_put(out, " (");
		nt_markup_text(out, thread->name, NT_HTML_NAME);
		nt_markup_put(out, ")");
	}
	if (thread->holds_gil)
		nt_markup_put(out, ", holds the GIL");
	if (thread->gc_running)
		nt_markup_put(out, ", garbage collection runs");
	nt_markup_put(out, "</summary>\n<p class=\"soft\">Read at ");
	nt_html_time(page, one->real_ns);
	if (*thread->interpreter) {
		nt_markup_put(out, ", ");
		nt_markup_text(out, thread->interpreter, NT_HTML_NAME);
	}
	if (*thread->state) {
		nt_markup_put(out, ", state ");
		nt_markup_text(out, thread->state, NT_HTML_NAME);
	}
	if (*thread->wait) {
		nt_markup_put(out, " in ");
		nt_markup_text(out, thread->wait, NT_HTML_NAME);
	}
	nt_markup_put(out, ".</p>\n");
}

static void put_frames(struct nt_markup *out, const struct nt_wire_stack *thread)
{
	if (!thread->frames)
		return;
	nt_markup_put(out, "<ol>\n");
	for (size_t i = 0; i < thread->frames; i++) {
		const struct nt_wire_stack_frame *frame = &thread->frame[i];

		nt_markup_put(out, "<li><code>");
		nt_markup_text(out, *frame->function ? frame->function : "?", MAX_FUNCTION);
		nt_markup_put(out, "</code> (");
		nt_markup_text(out, *frame->file ? frame->file : "?", MAX_FILE);
		if (frame->line)
			nt_markup_put(out, ":%u", frame->line);
		nt_markup_put(out, ")</li>\n");
	}
	nt_markup_put(out, "</ol>\n");
	if (thread->left_out)
		nt_markup_put(out, "<p class=\"soft\">%u more frames.</p>\n", thread->left_out);
}

void nt_html_stacks(const struct nt_html_page *page, const struct nt_wire_incident *incident)
{
	struct nt_markup *out = page->out;

	for (size_t i = 0; i < incident->stacks; i++) {
		const struct nt_wire_stack *thread = &incident->stack[i].stack;

		put_head(page, &incident->stack[i]);
		put_frames(out, thread);
		put_reason(out, "Python frames", thread->python_reason);
		put_reason(out, "Native frames", thread->native_reason);
		nt_markup_put(out, "</details>\n");
	}
}
