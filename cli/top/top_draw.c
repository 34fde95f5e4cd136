/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layout of `neutracer top`: two rows of title, lists or details, and a row of keys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/live/live.h"
#include "cli/top/top_view.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	TITLES_HEIGHT = 16, /* of the body, from which on lists have titles of columns */
	ALL_HEIGHT = 8, /* below, the list of the selection alone is shown */
};

static const char *const help_lines[] = {
	"up, down, k, j     select; past the end of a list is the next one",
	"page up, page down, home, end, g, G",
	"tab                next list",
	"enter, right       details of the item; of a job, also its ranks below",
	"escape, left       back; clears the filter",
	"1                  incidents, jobs, ranks and nodes",
	"2                  the ranks of the job, the most unlike its peers first",
	"3                  the nodes, the highest score first",
	"/                  filter: items that contain a text",
	"p, space           pause, and go on",
	"Ctrl-L             redraw",
	"Ctrl-Z             suspend",
	"q, Ctrl-C          quit",
	"",
	"The bar of a rank is its step: own work (full), then waiting (light).",
};

/* ---- title and keys -------------------------------------------------------------------------- */

/* "12:03:04", UTC. Returns text. */
static const char *time_text(uint64_t real_ns, char text[NT_CLOCK_TEXT])
{
	(void)nt_clock_format(real_ns, 0, text);
	memmove(text, text + 11, 8);
	text[8] = '\0';
	return text;
}

/* Text at the left, and at the right where there is room. */
static int put_ends(struct nt_screen_frame *frame, size_t row, enum nt_style style,
		    const char *left, const char *right)
{
	const size_t used = nt_text_columns(left) + nt_text_columns(right);

	if (!*right || used + 2 > frame->columns)
		return nt_screen_frame_put(frame, row, style, "%s", left);
	return nt_screen_frame_put(frame, row, style, "%s%*s%s", left, (int)(frame->columns - used),
				   "", right);
}

static int put_title(const struct nt_top_view *view, struct nt_screen_frame *frame)
{
	char left[NT_LIVE_TEXT * 2], right[64], now[NT_CLOCK_TEXT];

	(void)snprintf(left, sizeof(left), "neutracer top  %s", view->server);
	nt_text_defuse(left);
	if (view->is_document)
		(void)snprintf(right, sizeof(right), "%s UTC", time_text(view->now_ns, now));
	else
		(void)snprintf(right, sizeof(right), "%severy %.3g s  %s UTC",
			       view->is_paused ? "PAUSED  " : "", (double)view->every_ns / 1e9,
			       time_text(view->now_ns, now));
	return put_ends(frame, 0, NT_STYLE_HEAD, left, right);
}

static int put_views(const struct nt_top_view *view, struct nt_screen_frame *frame)
{
	static const char *const names[] = {"all", "ranks", "nodes"};
	char left[64], right[NT_TOP_FILTER + 16] = "";
	size_t len = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		len += (size_t)snprintf(left + len, sizeof(left) - len,
					i == (size_t)view->kind ? "[%zu %s]" : " %zu %s ", i + 1,
					names[i]);
	if (*view->filter)
		(void)snprintf(right, sizeof(right), "filter: %s", view->filter);
	return put_ends(frame, 1, NT_STYLE_PLAIN, left, nt_text_defuse(right));
}

static int put_stale(const struct nt_top_view *view, struct nt_screen_frame *frame, size_t row)
{
	char since[NT_CLOCK_TEXT];
	const uint64_t age_ns =
		view->now_ns > view->data->real_ns ? view->now_ns - view->data->real_ns : 0;

	return nt_screen_frame_put(frame, row, NT_STYLE_BAD, "STALE since %s UTC (%.0f s): %.*s",
				   time_text(view->data->real_ns, since), (double)age_ns / 1e9,
				   (int)strcspn(view->error, "\n"), view->error);
}

static int put_keys(const struct nt_top_view *view, struct nt_screen_frame *frame)
{
	const size_t row = frame->rows - 1;

	if (view->is_document)
		return 0;
	if (view->edits_filter)
		return nt_screen_frame_put(frame, row, NT_STYLE_HEAD,
					   "filter: %s_  (enter keeps it, escape clears it)",
					   view->filter);
	if (view->shows_details || view->shows_help)
		return nt_screen_frame_put(frame, row, NT_STYLE_DIM,
					   "esc back  j/k scroll  q quit");
	return nt_screen_frame_put(
		frame, row, NT_STYLE_DIM,
		"q quit  j/k select  enter details  1 2 3 views  / filter  p pause  "
		"? help");
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A list, and the rows that it gets. */
struct top_part {
	enum nt_top_list list;
	const json_t **item; /* owned */
	size_t count, rows;
	bool is_shown, has_titles;
};

static void describe(const struct nt_top_view *view, const struct top_part *part, char text[256])
{
	const struct nt_top_data *data = view->data;
	const json_t *job = nt_top_find(data, NT_TOP_JOBS, data->job);
	const bool more = data->more[part->list];

	switch (part->list) {
	case NT_TOP_INCIDENTS:
		(void)snprintf(text, 256, "FIRING INCIDENTS  %zu%s", part->count, more ? "+" : "");
		break;
	case NT_TOP_JOBS:
		(void)snprintf(text, 256, "JOBS  %zu%s", part->count, more ? "+" : "");
		break;
	case NT_TOP_NODES:
		(void)snprintf(text, 256, "NODES  %zu%s", part->count, more ? "+" : "");
		break;
	default:
		if (*data->ranks_note)
			(void)snprintf(text, 256, "RANKS  %.200s", data->ranks_note);
		else if (!job)
			(void)snprintf(text, 256, "RANKS  no job");
		else
			(void)snprintf(text, 256, "RANKS OF %.100s  %zu%s",
				       nt_json_get_text(job, "name", data->job), part->count,
				       more ? ": the first ones, and those on nodes of culprits"
					    : "");
		break;
	}
}

/* Scrolls so that the selection is inside. */
static void place_selection(struct nt_top_view *view, const struct top_part *part)
{
	size_t *first = &view->part[part->list].first, at = view->part[part->list].at;

	view->part[part->list].rows = part->rows;
	if (at < *first)
		*first = at;
	if (part->rows && at >= *first + part->rows)
		*first = at - part->rows + 1;
	if (*first + part->rows > part->count)
		*first = part->count > part->rows ? part->count - part->rows : 0;
}

static int draw_part(struct nt_top_view *view, struct nt_screen_frame *frame,
		     const struct top_part *part, size_t *row)
{
	nt_auto(nt_table) struct nt_table *table = NULL;
	char text[256], shown[64] = "";
	size_t first;
	int r;

	place_selection(view, part);
	first = view->part[part->list].first;
	if (part->rows && part->rows < part->count)
		(void)snprintf(shown, sizeof(shown), "  (%zu to %zu)", first + 1,
			       first + part->rows);
	describe(view, part, text);
	r = nt_screen_frame_put(frame, (*row)++, NT_STYLE_HEAD, "%s%s", text, shown);
	if (r < 0 || !part->rows)
		return r;
	r = nt_top_rows(view, part->list, part->item + first, part->rows,
			frame->columns > 2 ? frame->columns - 2 : 0, &table);
	for (size_t i = part->has_titles ? 0 : 1; i <= part->rows && r == 0; i++) {
		nt_autobuf struct nt_buf line = {0};
		const bool selected = i && part->list == view->list && !view->is_document &&
				      first + i - 1 == view->part[part->list].at;

		r = nt_table_row(table, i, &line);
		if (r == 0)
			r = nt_screen_frame_put_line(frame, (*row)++, (const char *)line.data,
						     selected);
	}
	return r;
}

/* Rows go in turn to the lists that can use one. */
static void share_rows(struct top_part part[NT_TOP_LISTS], size_t height)
{
	static const enum nt_top_list order[] = {NT_TOP_INCIDENTS, NT_TOP_RANKS, NT_TOP_JOBS,
						 NT_TOP_NODES};
	bool given = true;

	for (size_t i = 0; i < NT_TOP_LISTS; i++) {
		const size_t fixed = part[i].is_shown ? 1 + part[i].has_titles : 0;

		height -= height < fixed ? height : fixed;
	}
	while (height && given) {
		given = false;
		for (size_t i = 0; i < NT_TOP_LISTS && height; i++) {
			struct top_part *one = &part[order[i]];

			if (!one->is_shown || one->rows == one->count)
				continue;
			one->rows++;
			height--;
			given = true;
		}
	}
}

static bool shows_list(const struct nt_top_view *view, enum nt_top_list list, size_t height)
{
	if (view->kind == NT_TOP_VIEW_ALL && height >= ALL_HEIGHT)
		return true;
	return list == view->list;
}

static int draw_lists(struct nt_top_view *view, struct nt_screen_frame *frame, size_t row,
		      size_t height)
{
	struct top_part part[NT_TOP_LISTS] = {0};
	int r = 0;

	for (size_t i = 0; i < NT_TOP_LISTS && r == 0; i++) {
		part[i].list = (enum nt_top_list)i;
		part[i].is_shown = shows_list(view, part[i].list, height);
		r = nt_top_view_items(view, part[i].list, &part[i].item, &part[i].count);
		part[i].has_titles = part[i].count && height >= TITLES_HEIGHT;
	}
	if (r == 0)
		share_rows(part, height);
	for (size_t i = 0; i < NT_TOP_LISTS && r == 0; i++)
		if (part[i].is_shown)
			r = draw_part(view, frame, &part[i], &row);
	for (size_t i = 0; i < NT_TOP_LISTS; i++)
		free(part[i].item);
	return r;
}

static int draw_help(struct nt_screen_frame *frame, size_t row)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(help_lines) / sizeof(help_lines[0]) && r == 0; i++)
		if (row + 1 < frame->rows)
			r = nt_screen_frame_put(frame, row++, NT_STYLE_PLAIN, "%s", help_lines[i]);
	return r;
}

int nt_top_draw(struct nt_top_view *view, struct nt_screen_frame *frame)
{
	const size_t keys = view->is_document ? 0 : 1;
	size_t row = 2;
	int r = put_title(view, frame);

	r = r ? r : put_views(view, frame);
	if (r == 0 && view->error && view->data->real_ns)
		r = put_stale(view, frame, row++);
	if (r < 0 || row + keys >= frame->rows)
		return r;
	if (view->shows_help)
		r = draw_help(frame, row);
	else if (!view->data->real_ns)
		r = nt_screen_frame_put(frame, row, NT_STYLE_DIM, "loading");
	else if (view->shows_details)
		r = nt_top_draw_details(view, frame, row);
	else
		r = draw_lists(view, frame, row, frame->rows - row - keys);
	return r ? r : put_keys(view, frame);
}
