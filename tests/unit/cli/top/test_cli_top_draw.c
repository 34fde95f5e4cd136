/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Frames of `neutracer top`, as text in tests/golden/top/. Where the layout changes on purpose,
 * NT_GOLDEN_UPDATE=1 writes the files anew: read the difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top/top_view.h"
#include "common/system/clock.h"
#include "proto/json.h"

#define NOW_NS (1795230012ULL * NT_SECOND) /* 2026-11-21T03:00:12Z */

static const char *const list_names[NT_TOP_LISTS] = {"incidents", "jobs", "ranks", "nodes"};

static struct nt_top_data data;

static int load(void **state)
{
	nt_autojson json_t *json = json_load_file("tests/golden/top/data.json", 0, NULL);

	(void)state;
	assert_non_null(json);
	for (size_t i = 0; i < NT_TOP_LISTS; i++)
		data.list[i] = json_incref(json_object_get(json, list_names[i]));
	(void)snprintf(data.job, sizeof(data.job), "a1");
	data.real_ns = NOW_NS - 2 * NT_SECOND;
	assert_int_equal(nt_top_data_sort(&data), 0);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	nt_top_data_release(&data);
	return 0;
}

static struct nt_top_view view_of(const char *keys)
{
	struct nt_top_view view = {
		.data = &data,
		.server = "http://127.0.0.1:9480",
		.every_ns = 2 * NT_SECOND,
		.now_ns = NOW_NS,
	};
	struct nt_keys bytes = {0};
	enum nt_top_action action;
	struct nt_key key;

	assert_int_equal(nt_top_view_refresh(&view), 0);
	nt_keys_add(&bytes, keys, strlen(keys));
	while (nt_keys_next(&bytes, true, &key))
		assert_int_equal(nt_top_view_key(&view, &key, &action), 0);
	return view;
}

static void assert_frame(struct nt_top_view view, size_t columns, size_t rows, const char *name)
{
	nt_auto(nt_screen_frame) struct nt_screen_frame *frame = NULL;
	nt_autofree char *text = NULL;
	static char want[64 << 10];
	char path[128];
	size_t len, want_len;
	FILE *out = open_memstream(&text, &len), *file;

	assert_int_equal(nt_screen_frame_new(columns, rows, &frame), 0);
	assert_int_equal(nt_top_draw(&view, frame), 0);
	assert_int_equal(nt_screen_frame_print(frame, false, !view.is_ascii, out), 0);
	assert_int_equal(fclose(out), 0);
	for (size_t i = 0; i < frame->rows; i++)
		if (frame->line[i].len)
			assert_true(nt_text_columns((const char *)frame->line[i].data) <= columns);
	(void)snprintf(path, sizeof(path), "tests/golden/top/%s.txt", name);
	file = fopen(path, getenv("NT_GOLDEN_UPDATE") ? "w" : "r");
	assert_non_null(file);
	if (getenv("NT_GOLDEN_UPDATE")) {
		assert_int_equal(fwrite(text, 1, len, file), len);
	} else {
		want_len = fread(want, 1, sizeof(want) - 1, file);
		want[want_len] = '\0';
		assert_string_equal(text, want);
	}
	assert_int_equal(fclose(file), 0);
}

static void all_lists(void **state)
{
	(void)state;
	assert_frame(view_of(""), 80, 24, "all");
	assert_frame(view_of(""), 160, 40, "all-wide");
}

static void a_small_terminal_has_fewer_columns_and_rows(void **state)
{
	(void)state;
	assert_frame(view_of("jj"), 48, 12, "all-small");
	assert_frame(view_of("jj"), 30, 7, "all-tiny");
}

static void any_size_is_drawn(void **state)
{
	(void)state;
	for (size_t columns = 1; columns < 100; columns += 7) {
		for (size_t rows = 1; rows < 30; rows++) {
			nt_auto(nt_screen_frame) struct nt_screen_frame *frame = NULL;
			struct nt_top_view view = view_of(columns % 2 ? "jjj\r" : "G");

			view.error = columns % 3 ? "gone" : NULL;
			assert_int_equal(nt_screen_frame_new(columns, rows, &frame), 0);
			assert_int_equal(nt_top_draw(&view, frame), 0);
			for (size_t i = 0; i < rows; i++)
				assert_true(!frame->line[i].len ||
					    nt_text_columns((const char *)frame->line[i].data) <=
						    columns);
		}
	}
}

static void views_of_one_list(void **state)
{
	(void)state;
	assert_frame(view_of("2jj"), 80, 24, "ranks");
	assert_frame(view_of("3"), 80, 24, "nodes");
	assert_frame(view_of("?"), 80, 24, "help");
}

static void details_of_an_incident(void **state)
{
	(void)state;
	assert_frame(view_of("\r"), 80, 30, "details");
	assert_frame(view_of("\rjj"), 80, 12, "details-scrolled");
}

static void a_filter_and_a_pause(void **state)
{
	(void)state;
	assert_frame(view_of("/GPU-07\rp"), 80, 24, "filtered");
	assert_frame(view_of("/gpu"), 80, 24, "filter-edited");
}

static void stale_data_says_since_when(void **state)
{
	struct nt_top_view view = view_of("");

	(void)state;
	view.error =
		"cannot connect to the aggregator at http://127.0.0.1:9480: refused\nStart it.";
	view.is_ascii = true;
	assert_frame(view, 80, 24, "stale-ascii");
}

static void the_selection_stays_on_its_item(void **state)
{
	struct nt_top_view view = view_of("jjj");
	struct nt_top_data after = data;

	(void)state;
	assert_int_equal(view.list, NT_TOP_JOBS);
	assert_string_equal(view.part[NT_TOP_JOBS].key, "b2");
	after.list[NT_TOP_JOBS] = json_array();
	for (size_t i = 3; i-- > 0;)
		json_array_append(after.list[NT_TOP_JOBS],
				  json_array_get(data.list[NT_TOP_JOBS], i));
	view.data = &after;
	assert_int_equal(nt_top_view_refresh(&view), 0);
	assert_string_equal(view.part[NT_TOP_JOBS].key, "b2");
	json_array_clear(after.list[NT_TOP_JOBS]);
	assert_int_equal(nt_top_view_refresh(&view), 0);
	assert_null(nt_top_view_selected(&view));
	json_decref(after.list[NT_TOP_JOBS]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lists),
		cmocka_unit_test(a_small_terminal_has_fewer_columns_and_rows),
		cmocka_unit_test(any_size_is_drawn),
		cmocka_unit_test(views_of_one_list),
		cmocka_unit_test(details_of_an_incident),
		cmocka_unit_test(a_filter_and_a_pause),
		cmocka_unit_test(stale_data_says_since_when),
		cmocka_unit_test(the_selection_stays_on_its_item),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
