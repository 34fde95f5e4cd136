/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The details of an item of `neutracer top`: all its members, with names as in the REST interface. */
#include <errno.h>

#include "cli/live/members.h"
#include "cli/top/top_view.h"
#include "proto/json.h"

int nt_top_draw_details(struct nt_top_view *view, struct nt_screen_frame *frame, size_t row)
{
	const json_t *item = nt_top_view_selected(view);
	const size_t rows = frame->rows - row - 1;
	struct nt_member_lines lines = {0};
	size_t last;
	int r = 0;

	if (!item)
		return nt_screen_frame_put(frame, row, NT_STYLE_DIM, "It is no longer there.");
	if (nt_json_get_text(item, "summary", NULL))
		r = nt_member_lines_add_text(&lines, nt_json_get_text(item, "summary", ""));
	r = r ? r : nt_member_lines_add(&lines, item);
	view->details_rows = rows;
	view->details_lines = lines.count;
	last = lines.count > rows ? lines.count - rows : 0;
	if (view->details_first > last)
		view->details_first = last;
	for (size_t i = 0; i < rows && view->details_first + i < lines.count && r == 0; i++)
		r = nt_screen_frame_put(frame, row + i, NT_STYLE_PLAIN, "%s",
					lines.text[view->details_first + i]);
	nt_member_lines_release(&lines);
	return r;
}
