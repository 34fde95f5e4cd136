/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of each list of `neutracer top`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/live/live.h"
#include "cli/top/top_view.h"
#include "proto/json.h"

enum {
	MAX_BAR = 40, /* columns */
	MIN_BAR = 8,
};

static const struct nt_column incident_columns[] = {
	{.title = "SEVERITY"},
	{.title = "WHO", .shrinks = true},
	{.title = "JOB", .shrinks = true},
	{.title = "CLASS"},
	{.title = "SLOWDOWN", .right = true},
	{.title = "AGE", .right = true},
	{.title = "HANDLING", .optional = true, .rare = true},
	{.title = "SUMMARY", .shrinks = true, .optional = true},
};

static const struct nt_column job_columns[] = {
	{.title = "JOB", .shrinks = true},
	{.title = "STATE"},
	{.title = "RANKS", .right = true},
	{.title = "NODES", .right = true, .optional = true},
	{.title = "STEP", .right = true},
	{.title = "SLOWDOWN", .right = true},
	{.title = "INCIDENTS", .right = true},
	{.title = "SAMPLED", .right = true, .optional = true},
	{.title = "SEEN", .right = true, .optional = true},
};

static const struct nt_column rank_columns[] = {
	{.title = "RANK", .right = true},
	{.title = "NODE", .shrinks = true},
	{.title = "FOUND", .rare = true},
	{.title = "OWN", .right = true},
	{.title = "PEERS", .right = true, .optional = true},
	{.title = "WAITS", .right = true},
	{.title = "OWN+WAITING"},
	{.title = "INSIDE", .shrinks = true, .optional = true, .rare = true},
};

static const struct nt_column node_columns[] = {
	{.title = "NODE", .shrinks = true},
	{.title = "SCORE", .right = true},
	{.title = "THRESHOLD", .right = true, .optional = true},
	{.title = "STATE"},
	{.title = "RANKS", .right = true},
	{.title = "AGENT", .optional = true},
	{.title = "METRICS", .shrinks = true, .optional = true},
};

/* ---- cells ----------------------------------------------------------------------------------- */

static int add_incident_row(struct nt_table *table, const struct nt_top_view *view,
			    const json_t *incident)
{
	const char *severity = nt_json_get_text(incident, "severity", "-");
	const enum nt_style style = nt_live_severity_style(severity);
	char text[NT_LIVE_TEXT];
	int r = nt_table_add(table, style, "%s", severity);

	r = r ? r : nt_table_add(table, style, "%s", nt_live_who(incident, text));
	r = r ? r : nt_table_add(table, 0, "%s", nt_json_get_text(incident, "job", "-"));
	r = r ? r : nt_table_add(table, 0, "%s", nt_json_get_text(incident, "class", "-"));
	r = r ? r : nt_table_add(table, 0, "%s", nt_live_slowdown(incident, text));
	r = r ? r
	      : nt_table_add(table, 0, "%s",
			     nt_live_age_at(nt_json_get_text(incident, "since", NULL), view->now_ns,
					    text));
	r = r ? r : nt_table_add(table, 0, "%s", nt_live_handling(incident, view->now_ns));
	return r ? r
		 : nt_table_add(table, NT_STYLE_DIM, "%s",
				nt_json_get_text(incident, "summary", "-"));
}

/* The largest slowdown by an incident of the job. */
static const char *job_slowdown(const struct nt_top_view *view, const json_t *job,
				char text[NT_LIVE_TEXT])
{
	const json_t *incidents = view->data->list[NT_TOP_INCIDENTS], *worst = NULL;
	const bool is_concerned = json_array_size(json_object_get(job, "incidents")) > 0;

	for (size_t i = 0; i < json_array_size(incidents) && is_concerned; i++) {
		const json_t *incident = json_array_get(incidents, i);

		if (nt_top_concerns(job, incident) &&
		    (!worst || nt_json_get_number(incident, "slowdown", 0) >
				       nt_json_get_number(worst, "slowdown", 0)))
			worst = incident;
	}
	return nt_live_slowdown(worst, text);
}

static int add_job_row(struct nt_table *table, const struct nt_top_view *view, const json_t *job)
{
	const char *state = nt_json_get_text(job, "state", "-");
	const size_t incidents = json_array_size(json_object_get(job, "incidents"));
	const double sampled = nt_json_get_number(job, "sampled", -1);
	char text[NT_LIVE_TEXT];
	int r = nt_table_add(table, 0, "%s", nt_json_get_text(job, "name", "-"));

	r = r ? r : nt_table_add(table, nt_live_job_style(state), "%s", state);
	r = r ? r
	      : nt_table_add(table, 0, "%.0f/%.0f", nt_json_get_number(job, "live", 0),
			     nt_json_get_number(job, "size", 0));
	r = r ? r : nt_table_add(table, 0, "%.0f", nt_json_get_number(job, "nodes", 0));
	r = r ? r : nt_table_add(table, 0, "%s", nt_live_duration(job, "step_seconds", text));
	r = r ? r : nt_table_add(table, 0, "%s", job_slowdown(view, job, text));
	r = r ? r
	      : nt_table_add(table, incidents ? NT_STYLE_BAD : NT_STYLE_PLAIN, "%zu", incidents);
	r = r ? r : nt_table_add(table, 0, sampled < 0 ? "-" : "%.0f%%", 100 * sampled);
	return r ? r
		 : nt_table_add(
			   table, NT_STYLE_DIM, "%s",
			   nt_live_age_at(nt_json_get_text(job, "seen", NULL), view->now_ns, text));
}

/* Of a step what is not own work; negative: unknown. */
static double waiting_of(const json_t *rank)
{
	const double step = nt_json_get_number(rank, "step_seconds", -1);
	const double own = nt_json_get_number(rank, "own_seconds", -1);

	if (step < 0 || own < 0)
		return -1;
	return step > own ? step - own : 0;
}

/* The longest step of the ranks shown fills the bar. */
static double longest_step(const json_t *ranks)
{
	double longest = 0;

	for (size_t i = 0; i < json_array_size(ranks); i++) {
		const json_t *rank = json_array_get(ranks, i);
		const double own = nt_json_get_number(rank, "own_seconds", 0);
		const double step = nt_json_get_number(rank, "step_seconds", 0);
		const double most = step > own ? step : own;

		longest = longest > most ? longest : most;
	}
	return longest;
}

/* "████████░░░░": own work, then waiting. */
static int add_bar(struct nt_table *table, const struct nt_top_view *view, const json_t *rank,
		   double longest, size_t columns)
{
	const double own = nt_json_get_number(rank, "own_seconds", -1), waiting = waiting_of(rank);
	nt_autobuf struct nt_buf text = {0};
	size_t filled, end;
	int r = 0;

	if (own < 0 || longest <= 0)
		return nt_table_add(table, NT_STYLE_DIM, "-");
	filled = (size_t)(own / longest * (double)columns + 0.5);
	end = (size_t)((own + (waiting > 0 ? waiting : 0)) / longest * (double)columns + 0.5);
	for (size_t i = 0; i < columns && i < end && r == 0; i++)
		r = nt_buf_printf(&text, "%s",
				  i < filled       ? view->is_ascii ? "#" : "█"
				  : view->is_ascii ? "."
						   : "░");
	return r ? r
		 : nt_table_add(table,
				nt_top_accusation(view->data, rank) ? NT_STYLE_BAD : NT_STYLE_PLAIN,
				"%s", text.len ? (const char *)text.data : "-");
}

static size_t bar_columns(size_t columns)
{
	const size_t bar = columns > 56 ? columns - 56 : MIN_BAR;

	return bar > MAX_BAR ? MAX_BAR : bar < MIN_BAR ? MIN_BAR : bar;
}

static int add_rank_row(struct nt_table *table, const struct nt_top_view *view, const json_t *rank,
			double longest, size_t columns)
{
	const bool is_known = json_is_true(json_object_get(rank, "rank_known"));
	const json_t *incident = nt_top_accusation(view->data, rank);
	const double waiting = waiting_of(rank);
	char text[NT_LIVE_TEXT];
	int r = nt_table_add(table, incident ? NT_STYLE_BAD : NT_STYLE_PLAIN, "%s%.0f",
			     is_known ? "" : "?", nt_json_get_number(rank, "rank", 0));

	r = r ? r : nt_table_add(table, 0, "%s", nt_json_get_text(rank, "node", "-"));
	r = r ? r
	      : nt_table_add(table, NT_STYLE_BAD, "%s",
			     incident ? nt_json_get_text(incident, "class", "-") : "-");
	r = r ? r : nt_table_add(table, 0, "%s", nt_live_duration(rank, "own_seconds", text));
	r = r ? r : nt_table_add(table, 0, "%s", nt_live_duration(rank, "own_peers_seconds", text));
	if (r == 0 && waiting < 0)
		r = nt_table_add(table, 0, "-");
	else if (r == 0)
		r = nt_table_add(table, 0, waiting < 1 ? "%.1f ms" : "%.2f s",
				 waiting < 1 ? waiting * 1e3 : waiting);
	r = r ? r : add_bar(table, view, rank, longest, bar_columns(columns));
	return r ? r
		 : nt_table_add(
			   table, NT_STYLE_DIM, "%s",
			   nt_json_get_text(json_object_get(rank, "inside"), "operation", "-"));
}

static int add_node_row(struct nt_table *table, const json_t *node)
{
	const json_t *anomaly = json_object_get(node, "anomaly");
	const char *state = nt_json_get_text(anomaly, "state", "not scored");
	const bool is_scored = json_is_object(anomaly) && strcmp(state, "learning") != 0;
	const enum nt_style style = strcmp(state, "alarm") ? NT_STYLE_PLAIN : NT_STYLE_BAD;
	char text[NT_LIVE_TEXT];
	int r = nt_table_add(table, style, "%s", nt_json_get_text(node, "node", "-"));

	r = r ? r
	      : nt_table_add(table, style, is_scored ? "%.1f" : "-",
			     nt_json_get_number(anomaly, "score", 0));
	r = r ? r
	      : nt_table_add(table, 0, is_scored ? "%.1f" : "-",
			     nt_json_get_number(anomaly, "threshold", 0));
	r = r ? r : nt_table_add(table, style, "%s", state);
	r = r ? r : nt_table_add(table, 0, "%.0f", nt_json_get_number(node, "ranks", 0));
	r = r ? r : nt_table_add(table, 0, "%s", nt_json_get_text(node, "state", "-"));
	return r ? r
		 : nt_table_add(table, 0, "%s",
				is_scored ? nt_live_leading_metrics(anomaly, text) : "-");
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define COLUMNS(columns)                                                                           \
	{                                                                                          \
		columns, sizeof(columns) / sizeof((columns)[0])                                    \
	}

int nt_top_rows(const struct nt_top_view *view, enum nt_top_list list, const json_t *const *item,
		size_t count, size_t columns, struct nt_table **ret_table)
{
	static const struct {
		const struct nt_column *column;
		size_t count;
	} tables[NT_TOP_LISTS] = {
		[NT_TOP_INCIDENTS] = COLUMNS(incident_columns),
		[NT_TOP_JOBS] = COLUMNS(job_columns),
		[NT_TOP_RANKS] = COLUMNS(rank_columns),
		[NT_TOP_NODES] = COLUMNS(node_columns),
	};
	const double longest = longest_step(view->data->list[NT_TOP_RANKS]);
	nt_auto(nt_table) struct nt_table *table = NULL;
	int r = nt_table_new(tables[list].column, tables[list].count, &table);

	for (size_t i = 0; i < count && r == 0; i++) {
		if (list == NT_TOP_INCIDENTS)
			r = add_incident_row(table, view, item[i]);
		else if (list == NT_TOP_JOBS)
			r = add_job_row(table, view, item[i]);
		else if (list == NT_TOP_RANKS)
			r = add_rank_row(table, view, item[i], longest, columns);
		else
			r = add_node_row(table, item[i]);
	}
	if (r < 0)
		return r;
	nt_table_fit(table, columns);
	*ret_table = nt_take(table);
	return 0;
}
