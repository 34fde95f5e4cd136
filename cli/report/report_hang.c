/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the calls in which ranks hung, from the dumps of their flight recorders. */
#include "cli/report/report_impl.h"

#include <inttypes.h>

#include "proto/json.h"
#include "proto/wire.h"

enum {
	MAX_LINES = 16,
	MAX_SPANS = 12, /* of numbers in one list */
};

int nt_report_ranks(const uint32_t *rank, size_t n, struct nt_buf *buf)
{
	size_t end;
	int r = 0, spans = 0;

	for (size_t i = 0; i < n && r == 0; i = end, spans++) {
		if (spans == MAX_SPANS)
			return nt_buf_printf(buf, " and %zu more", n - i);
		for (end = i + 1; end < n && rank[end] == rank[end - 1] + 1;)
			end++;
		r = nt_buf_printf(buf, "%s%u", i ? ", " : "", rank[i]);
		if (r == 0 && end - i > 1)
			r = nt_buf_printf(buf, "-%u", rank[end - 1]);
	}
	return r;
}

/* ", the last there 45264": how far the absent ones are. */
static int print_absent(const struct nt_trace_wait *wait, struct nt_buf *buf)
{
	uint64_t least = UINT64_MAX, most = 0;
	bool known = wait->absents > 0;
	int r;

	for (size_t i = 0; i < wait->absents; i++) {
		known = known && wait->absent_at[i] != UINT64_MAX;
		least = wait->absent_at[i] < least ? wait->absent_at[i] : least;
		most = wait->absent_at[i] > most ? wait->absent_at[i] : most;
	}
	if (!wait->absents)
		return 0;
	r = nt_buf_printf(buf, "; not entered by ");
	r = r ?: nt_report_ranks(wait->absent, wait->absents, buf);
	if (r < 0 || !known)
		return r;
	if (least == most)
		return nt_buf_printf(buf, " (last entered: %" PRIu64 ")", most);
	return nt_buf_printf(buf, " (last entered: %" PRIu64 " to %" PRIu64 ")", least, most);
}

static int print_wait(const struct nt_trace_wait *wait, struct nt_buf *buf)
{
	int r;

	r = nt_buf_printf(buf, "rank%s ", wait->ranks > 1 ? "s" : "");
	r = r ?: nt_report_ranks(wait->rank, wait->ranks, buf);
	r = r
		    ?: nt_buf_printf(
			       buf, " wait%s for %.1f s in %s %" PRIu64 " of process group %s%s",
			       wait->ranks > 1 ? "" : "s", (double)wait->wait_ns / 1e9,
			       wait->mixed ? "call" : nt_op_name(wait->op), wait->number,
			       wait->group, wait->mixed ? ", not all in the same operation" : "");
	r = r ?: print_absent(wait, buf);
	return r ?: nt_buf_printf(buf, "\n");
}

int nt_report_hang_text(const struct nt_report *report, struct nt_buf *buf)
{
	int r = report->waits ? nt_buf_printf(buf, "\n") : 0;

	for (size_t i = 0; i < report->waits && r == 0; i++) {
		if (i == MAX_LINES)
			return nt_buf_printf(buf, "and %zu more calls\n",
					     report->waits + report->waits_dropped - i);
		r = print_wait(&report->wait[i], buf);
	}
	return r;
}

static json_t *list_ranks(const uint32_t *rank, size_t n)
{
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(list, json_integer(rank[i])) < 0)
			return NULL;
	return json_incref(list);
}

static json_t *list_calls(const uint64_t *call, size_t n)
{
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(list, call[i] == UINT64_MAX
							? json_null()
							: json_integer((json_int_t)call[i])) < 0)
			return NULL;
	return json_incref(list);
}

int nt_report_hang_json(const struct nt_report *report, json_t *root)
{
	json_t *list = json_array();
	int r = json_object_set_new(root, "waits", list); /* takes ownership of it */

	for (size_t i = 0; i < report->waits && r == 0; i++) {
		const struct nt_trace_wait *wait = &report->wait[i];

		r = json_array_append_new(
			list,
			json_pack("{s:s, s:I, s:o, s:f, s:o, s:o, s:o}", "collective",
				  wait->mixed ? "mixed" : nt_op_name(wait->op), "number",
				  (json_int_t)wait->number, "process_group",
				  nt_json_text(wait->group), "seconds", (double)wait->wait_ns / 1e9,
				  "ranks", list_ranks(wait->rank, wait->ranks), "absent",
				  list_ranks(wait->absent, wait->absents), "absent_last_entered",
				  list_calls(wait->absent_at, wait->absents)));
	}
	return r
		       ?: json_object_set_new(root, "waits_left_out",
					      json_integer((json_int_t)report->waits_dropped));
}
