/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the user of `neutracer top` looks at: view, selection, filter; and how keys change it. */
#ifndef NT_CLI_TOP_TOP_VIEW_H
#define NT_CLI_TOP_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/term/frame.h"
#include "cli/term/keys.h"
#include "cli/top/top_data.h"

enum nt_top_view_kind {
	NT_TOP_VIEW_ALL, /* all lists */
	NT_TOP_VIEW_RANKS,
	NT_TOP_VIEW_NODES,
};

/* What a key requires of the program. */
enum nt_top_action {
	NT_TOP_STAY,
	NT_TOP_QUIT,
	NT_TOP_FETCH, /* at once: another job, or no longer paused */
	NT_TOP_REPAINT, /* the whole screen */
};

enum {
	NT_TOP_FILTER = 64,
};

/* All zero is the view at the start; then `data` is set. */
struct nt_top_view {
	const struct nt_top_data *data; /* borrowed */
	const char *server; /* borrowed */
	uint64_t every_ns, now_ns; /* now: real time */
	const char *error; /* why the data is stale, or NULL; borrowed */
	bool is_document; /* printed once: no help on keys */
	bool is_ascii; /* the bars are of ASCII */

	enum nt_top_view_kind kind;
	enum nt_top_list list; /* of the selection */
	struct {
		size_t at, first, rows; /* index selected, first one shown, number shown */
		char key[NT_TOP_KEY]; /* of the item selected */
	} part[NT_TOP_LISTS];
	bool is_paused, shows_help, shows_details, edits_filter;
	size_t details_first, details_rows, details_lines;
	char filter[NT_TOP_FILTER];
	char job[NT_TOP_KEY]; /* whose ranks were chosen; "": none was */
};

/* Items of a list that the filter lets through, borrowed; the array is the caller's. -ENOMEM. */
NT_MUST_CHECK int nt_top_view_items(const struct nt_top_view *view, enum nt_top_list list,
				    const json_t ***ret_item, size_t *ret_count);

/* The data was replaced: the selection stays on its item, if that is still there. -ENOMEM. */
NT_MUST_CHECK int nt_top_view_refresh(struct nt_top_view *view);

/* -ENOMEM, or *ret_action is set. */
NT_MUST_CHECK int nt_top_view_key(struct nt_top_view *view, const struct nt_key *key,
				  enum nt_top_action *ret_action);

/* The item selected, or NULL. */
const json_t *nt_top_view_selected(const struct nt_top_view *view);

/* Draws all of the frame; scrolls so that the selection is visible. -ENOMEM. */
NT_MUST_CHECK int nt_top_draw(struct nt_top_view *view, struct nt_screen_frame *frame);

/* Draws the item selected, from that row to the one before the last. -ENOMEM. */
NT_MUST_CHECK int nt_top_draw_details(struct nt_top_view *view, struct nt_screen_frame *frame,
				      size_t row);

/* Makes the table of some items of a list. columns: of the terminal. -ENOMEM. */
struct nt_table;
NT_MUST_CHECK int nt_top_rows(const struct nt_top_view *view, enum nt_top_list list,
			      const json_t *const *item, size_t count, size_t columns,
			      struct nt_table **ret_table);

#endif
