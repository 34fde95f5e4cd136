/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/top/top_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

enum {
	MAX_DEPTH = 3, /* of the texts of an item that the filter compares */
};

/* ---- the filter ------------------------------------------------------------------------------ */

static bool matches(const json_t *value, const char *filter, int depth)
{
	const char *name;
	json_t *member;
	size_t i;

	if (json_is_string(value))
		return strcasestr(json_string_value(value), filter) != NULL;
	if (depth == MAX_DEPTH)
		return false;
	json_array_foreach(value, i, member)
	{
		if (matches(member, filter, depth + 1))
			return true;
	}
	json_object_foreach((json_t *)(uintptr_t)value, name, member)
	{
		if (matches(member, filter, depth + 1))
			return true;
	}
	return false;
}

int nt_top_view_items(const struct nt_top_view *view, enum nt_top_list list,
		      const json_t ***ret_item, size_t *ret_count)
{
	const json_t *all = view->data->list[list];
	const size_t most = json_array_size(all);
	nt_autofree const json_t **item = calloc(most + 1, sizeof(const json_t *));
	size_t count = 0;

	if (!item)
		return -ENOMEM;
	for (size_t i = 0; i < most; i++) {
		const json_t *one = json_array_get(all, i);

		if (!*view->filter || matches(one, view->filter, 0))
			item[count++] = one;
	}
	*ret_item = nt_take(item);
	*ret_count = count;
	return 0;
}

/* ---- the selection --------------------------------------------------------------------------- */

static bool is_visible(const struct nt_top_view *view, enum nt_top_list list)
{
	switch (view->kind) {
	case NT_TOP_VIEW_RANKS:
		return list == NT_TOP_RANKS;
	case NT_TOP_VIEW_NODES:
		return list == NT_TOP_NODES;
	case NT_TOP_VIEW_ALL:
		break;
	}
	return true;
}

/* Selects by index, clamped. */
static int select_at(struct nt_top_view *view, enum nt_top_list list, size_t at)
{
	nt_autofree const json_t **item = NULL;
	size_t count;

	if (nt_top_view_items(view, list, &item, &count) < 0)
		return -ENOMEM;
	view->part[list].at = count && at >= count ? count - 1 : count ? at : 0;
	view->part[list].key[0] = '\0';
	if (count)
		(void)nt_top_key(list, item[view->part[list].at], view->part[list].key);
	return 0;
}

int nt_top_view_refresh(struct nt_top_view *view)
{
	for (size_t l = 0; l < NT_TOP_LISTS; l++) {
		const enum nt_top_list list = (enum nt_top_list)l;
		nt_autofree const json_t **item = NULL;
		size_t count, at = view->part[list].at;
		char key[NT_TOP_KEY];

		if (nt_top_view_items(view, list, &item, &count) < 0)
			return -ENOMEM;
		for (size_t i = 0; i < count && *view->part[list].key; i++) {
			if (strcmp(nt_top_key(list, item[i], key), view->part[list].key) != 0)
				continue;
			at = i;
			break;
		}
		if (select_at(view, list, at) < 0)
			return -ENOMEM;
	}
	return 0;
}

const json_t *nt_top_view_selected(const struct nt_top_view *view)
{
	const char *key = view->part[view->list].key;

	return *key ? nt_top_find(view->data, view->list, key) : NULL;
}

/* The next visible list in that direction that has items; the same if there is none. */
static int change_list(struct nt_top_view *view, int direction, bool wraps)
{
	for (int step = 1; step < NT_TOP_LISTS; step++) {
		const int to = (int)view->list + direction * step;
		const enum nt_top_list list =
			(enum nt_top_list)((to + NT_TOP_LISTS) % NT_TOP_LISTS);
		nt_autofree const json_t **item = NULL;
		size_t count;

		if (!wraps && (to < 0 || to >= NT_TOP_LISTS))
			return 0;
		if (nt_top_view_items(view, list, &item, &count) < 0)
			return -ENOMEM;
		if (!count || !is_visible(view, list))
			continue;
		view->list = list;
		return wraps ? 0 : select_at(view, list, direction > 0 ? 0 : count - 1);
	}
	return 0;
}

/* Past the end of a list is the next one. */
static int move_selection(struct nt_top_view *view, int direction)
{
	nt_autofree const json_t **item = NULL;
	const size_t at = view->part[view->list].at;
	size_t count;

	if (nt_top_view_items(view, view->list, &item, &count) < 0)
		return -ENOMEM;
	if (!count || (direction < 0 && at == 0) || (direction > 0 && at + 1 >= count))
		return change_list(view, direction, false);
	return select_at(view, view->list, direction > 0 ? at + 1 : at - 1);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void scroll_details(struct nt_top_view *view, enum nt_key_kind kind)
{
	const size_t page = view->details_rows ? view->details_rows : 1;
	const size_t last = view->details_lines > page ? view->details_lines - page : 0;
	size_t first = view->details_first;

	if (kind == NT_KEY_UP)
		first -= first > 0;
	else if (kind == NT_KEY_DOWN)
		first++;
	else if (kind == NT_KEY_PAGE_UP)
		first -= first < page ? first : page;
	else if (kind == NT_KEY_PAGE_DOWN)
		first += page;
	else if (kind == NT_KEY_HOME)
		first = 0;
	else if (kind == NT_KEY_LAST)
		first = last;
	view->details_first = first < last ? first : last;
}

static int scroll(struct nt_top_view *view, enum nt_key_kind kind)
{
	const size_t at = view->part[view->list].at;
	const size_t page = view->part[view->list].rows ? view->part[view->list].rows : 1;

	if (view->shows_details) {
		scroll_details(view, kind);
		return 0;
	}
	switch (kind) {
	case NT_KEY_UP:
		return move_selection(view, -1);
	case NT_KEY_DOWN:
		return move_selection(view, 1);
	case NT_KEY_PAGE_UP:
		return select_at(view, view->list, at > page ? at - page : 0);
	case NT_KEY_PAGE_DOWN:
		return select_at(view, view->list, at + page);
	case NT_KEY_HOME:
		return select_at(view, view->list, 0);
	case NT_KEY_LAST:
		return select_at(view, view->list, SIZE_MAX);
	default:
		return 0;
	}
}

static int show_view(struct nt_top_view *view, enum nt_top_view_kind kind)
{
	view->kind = kind;
	view->shows_details = view->shows_help = false;
	if (kind == NT_TOP_VIEW_RANKS)
		view->list = NT_TOP_RANKS;
	else if (kind == NT_TOP_VIEW_NODES)
		view->list = NT_TOP_NODES;
	return 0;
}

/* The details of the item; a job's ranks are shown from then on. */
static enum nt_top_action open_details(struct nt_top_view *view)
{
	const json_t *item = nt_top_view_selected(view);

	if (!item)
		return NT_TOP_STAY;
	view->shows_details = true;
	view->details_first = 0;
	if (view->list != NT_TOP_JOBS || strcmp(view->job, view->part[NT_TOP_JOBS].key) == 0)
		return NT_TOP_STAY;
	memcpy(view->job, view->part[NT_TOP_JOBS].key, sizeof(view->job));
	return NT_TOP_FETCH;
}

/* Back, one thing at a time. */
static int go_back(struct nt_top_view *view)
{
	if (view->shows_help)
		view->shows_help = false;
	else if (view->shows_details)
		view->shows_details = false;
	else if (*view->filter) {
		view->filter[0] = '\0';
		return nt_top_view_refresh(view);
	}
	return 0;
}

static int edit_filter(struct nt_top_view *view, const struct nt_key *key)
{
	size_t len = strlen(view->filter);

	switch (key->kind) {
	case NT_KEY_TEXT:
		if (len + strlen(key->text) < NT_TOP_FILTER)
			memcpy(view->filter + len, key->text, strlen(key->text) + 1);
		break;
	case NT_KEY_BACKSPACE:
		while (len && ((unsigned char)view->filter[len - 1] & 0xc0) == 0x80)
			len--;
		view->filter[len ? len - 1 : 0] = '\0';
		break;
	case NT_KEY_ESCAPE:
		view->filter[0] = '\0';
		view->edits_filter = false;
		break;
	case NT_KEY_ENTER:
		view->edits_filter = false;
		break;
	default:
		return scroll(view, key->kind);
	}
	return nt_top_view_refresh(view);
}

static int take_letter(struct nt_top_view *view, char letter, enum nt_top_action *ret_action)
{
	switch (letter) {
	case 'q':
		*ret_action = NT_TOP_QUIT;
		return 0;
	case 'p':
	case ' ':
		view->is_paused = !view->is_paused;
		*ret_action = view->is_paused ? NT_TOP_STAY : NT_TOP_FETCH;
		return 0;
	case '?':
		view->shows_help = !view->shows_help;
		return 0;
	case '/':
		view->edits_filter = true;
		view->shows_details = view->shows_help = false;
		return 0;
	case '1':
		return show_view(view, NT_TOP_VIEW_ALL);
	case '2':
		return show_view(view, NT_TOP_VIEW_RANKS);
	case '3':
		return show_view(view, NT_TOP_VIEW_NODES);
	case 'j':
		return scroll(view, NT_KEY_DOWN);
	case 'k':
		return scroll(view, NT_KEY_UP);
	case 'g':
		return scroll(view, NT_KEY_HOME);
	case 'G':
		return scroll(view, NT_KEY_LAST);
	default:
		return 0;
	}
}

int nt_top_view_key(struct nt_top_view *view, const struct nt_key *key,
		    enum nt_top_action *ret_action)
{
	*ret_action = NT_TOP_STAY;
	if (key->kind == NT_KEY_REDRAW) {
		*ret_action = NT_TOP_REPAINT;
		return 0;
	}
	if (view->edits_filter)
		return edit_filter(view, key);
	switch (key->kind) {
	case NT_KEY_TEXT:
		return take_letter(view, key->text[0], ret_action);
	case NT_KEY_ENTER:
	case NT_KEY_RIGHT:
		*ret_action = view->shows_help ? NT_TOP_STAY : open_details(view);
		return 0;
	case NT_KEY_ESCAPE:
	case NT_KEY_LEFT:
	case NT_KEY_BACKSPACE:
		return go_back(view);
	case NT_KEY_TAB:
		return view->shows_details ? 0 : change_list(view, 1, true);
	default:
		return scroll(view, key->kind);
	}
}
