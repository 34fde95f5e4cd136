/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer analyze --windows`: the ranks marked by the space detector, window by window. */
#include "cli/report/report_impl.h"

#include <inttypes.h>

#include "proto/json.h"

enum {
	MAX_NAMED = 8, /* ranks in a line of text */
};

static const char *what_of(const struct nt_windows_mark *mark)
{
	return mark->host ? "host work of the step" : "own work of the step";
}

static json_t *mark_json(const struct nt_windows_mark *mark)
{
	return json_pack("{s:I, s:s, s:s, s:o, s:o, s:o}", "rank", (json_int_t)mark->rank, "what",
			 what_of(mark), "unit", "ms", "value", nt_json_number(mark->value_ns / 1e6),
			 "peers", nt_json_number(mark->peers_ns / 1e6), "of_step",
			 nt_json_number(mark->excess));
}

static json_t *window_json(const struct nt_windows *windows, const struct nt_windows_window *window)
{
	const struct nt_windows_job *job = &windows->job[window->job];
	nt_autojson json_t *marked = json_array();

	for (size_t i = 0; i < window->kept; i++)
		if (json_array_append_new(marked, mark_json(&windows->mark[window->first + i])) < 0)
			return NULL;
	return json_pack("{s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:O}", "job", nt_json_text(job->name),
			 "attempt", (json_int_t)job->attempt, "window", (json_int_t)window->number,
			 "start", nt_json_time(window->start_ns), "end",
			 nt_json_time(window->end_ns), "compared_ranks", (json_int_t)window->judged,
			 "marked_ranks", (json_int_t)window->marks, "marked", marked);
}

json_t *nt_report_windows_json(const struct nt_report *report)
{
	const struct nt_windows *windows = report->judgement->windows;
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < windows->listed; i++)
		if (json_array_append_new(list, window_json(windows, &windows->window[i])) < 0)
			return NULL;
	return json_incref(list);
}

static int print_ms(struct nt_buf *buf, double ns)
{
	return ns < 1e9 ? nt_buf_printf(buf, "%.3g ms", ns / 1e6)
			: nt_buf_printf(buf, "%.3g s", ns / 1e9);
}

static int print_mark(const struct nt_windows_mark *mark, struct nt_buf *buf)
{
	int r = nt_buf_printf(buf, "rank %u (%s ", mark->rank, what_of(mark));

	r = r ?: print_ms(buf, mark->value_ns);
	r = r ?: nt_buf_printf(buf, ", peers ");
	r = r ?: print_ms(buf, mark->peers_ns);
	return r ?: nt_buf_printf(buf, ")");
}

static int print_window(const struct nt_report *report, const struct nt_windows_window *window,
			struct nt_buf *buf)
{
	const struct nt_windows *windows = report->judgement->windows;
	const struct nt_windows_job *job = &windows->job[window->job];
	int r = nt_buf_printf(buf, "%s%swindow %" PRIu64 ", ", windows->jobs > 1 ? job->name : "",
			      windows->jobs > 1 ? ": " : "", window->number);

	r = r ?: nt_report_time(report, window->start_ns, buf);
	r = r ?: nt_buf_printf(buf, ": ");
	for (uint32_t i = 0; i < window->kept && i < MAX_NAMED && r == 0; i++) {
		r = i ? nt_buf_printf(buf, ", ") : 0;
		r = r ?: print_mark(&windows->mark[window->first + i], buf);
	}
	if (r == 0 && window->marks > MAX_NAMED)
		r = nt_buf_printf(buf, " and %u more", window->marks - MAX_NAMED);
	return r ?: nt_buf_printf(buf, "\n");
}

int nt_report_windows_text(const struct nt_report *report, struct nt_buf *buf)
{
	const struct nt_windows *windows = report->judgement->windows;
	size_t marked = 0;
	int r;

	for (size_t i = 0; i < windows->listed; i++)
		marked += windows->window[i].marks > 0;
	r = nt_buf_printf(buf, "\nranks marked in %zu of %zu windows\n", marked, windows->listed);
	for (size_t i = 0; i < windows->listed && r == 0; i++)
		if (windows->window[i].kept)
			r = print_window(report, &windows->window[i], buf);
	return r;
}
