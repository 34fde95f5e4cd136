/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/json_stream.h"

static int note(void *context, const char *text, size_t len)
{
	struct nt_buf *seen = context;
	int r = nt_buf_append(seen, text, len);

	return r < 0 ? r : nt_buf_append(seen, "|", 1);
}

/* The objects of text, given `step` bytes at a time, each followed by a bar. */
static int split(enum nt_json_stream_mode mode, const char *text, size_t step, size_t max,
		 struct nt_buf *seen, struct nt_json_stream *json_stream)
{
	size_t len = strlen(text);
	int r = 0;

	*json_stream = (struct nt_json_stream){
		.mode = mode, .max_bytes = max, .object = note, .context = seen};
	for (size_t at = 0; r == 0 && at < len; at += step)
		r = nt_json_stream_feed(json_stream, text + at, len - at < step ? len - at : step);
	return r < 0 ? r : nt_json_stream_end(json_stream);
}

static void check(enum nt_json_stream_mode mode, const char *text, const char *objects,
		  const char *rest)
{
	for (size_t step = 1; step <= strlen(text) + 1; step++) {
		nt_autosplitter struct nt_json_stream json_stream = {0};
		nt_autobuf struct nt_buf seen = {0};

		assert_int_equal(split(mode, text, step, 4096, &seen, &json_stream), 0);
		assert_int_equal(nt_buf_append(&seen, "", 1), 0);
		assert_string_equal((const char *)seen.data, objects);
		assert_int_equal(nt_buf_append(&json_stream.rest, "", 1), 0);
		assert_string_equal((const char *)json_stream.rest.data, rest);
	}
}

static void a_stream_is_cut_into_its_values_however_it_comes(void **state)
{
	(void)state;
	check(NT_JSON_STREAM_VALUES, "", "", "");
	check(NT_JSON_STREAM_VALUES, "{\"a\":[{}]}\n{}\n [1]", "{\"a\":[{}]}|{}|[1]|", "");
	check(NT_JSON_STREAM_VALUES, "{\"a}\\\"{\":\"\\\\\"}{\"b\":\"]\"}",
	      "{\"a}\\\"{\":\"\\\\\"}|{\"b\":\"]\"}|", "");
}

static void a_list_is_cut_into_its_items_and_what_is_around_them(void **state)
{
	(void)state;
	check(NT_JSON_STREAM_ITEMS,
	      "{\"metadata\":{\"items\":[{}]},\"items\":[{\"a\":[1,{}]},{}],\"z\":[{}]}",
	      "{\"a\":[1,{}]}|{}|", "{\"metadata\":{\"items\":[{}]},\"items\":[],\"z\":[{}]}");
	check(NT_JSON_STREAM_ITEMS, "{\"items\":[]}", "", "{\"items\":[]}");
	check(NT_JSON_STREAM_ITEMS, "{\"items\":null,\"itemsx\":[{}]}", "",
	      "{\"items\":null,\"itemsx\":[{}]}");
}

static void what_is_no_json_is_refused_and_stays_refused(void **state)
{
	static const char *const bad[] = {"}", "x", "\"a\"", "{}}", "{", "{\"a", "[{}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		nt_autosplitter struct nt_json_stream json_stream = {0};
		nt_autobuf struct nt_buf seen = {0};

		assert_int_equal(split(NT_JSON_STREAM_VALUES, bad[i], 1, 4096, &seen, &json_stream),
				 -EBADMSG);
		if (json_stream.is_bad)
			assert_int_equal(nt_json_stream_feed(&json_stream, "{}", 2), -EBADMSG);
	}
}

static void an_object_over_the_cap_is_left_out_and_counted(void **state)
{
	static const char text[] = "{\"a\":1}{\"a\":12}{\"a\":3}";

	(void)state;
	for (size_t step = 1; step < sizeof(text); step++) {
		nt_autosplitter struct nt_json_stream json_stream = {0};
		nt_autobuf struct nt_buf seen = {0};

		assert_int_equal(split(NT_JSON_STREAM_VALUES, text, step, 7, &seen, &json_stream),
				 0);
		assert_int_equal(nt_buf_append(&seen, "", 1), 0);
		assert_string_equal((const char *)seen.data, "{\"a\":1}|{\"a\":3}|");
		assert_int_equal(json_stream.too_large, 1);
	}
}

static void too_deep_and_too_much_around_are_refused_at_their_caps(void **state)
{
	static char text[NT_JSON_STREAM_REST + 64];
	const struct {
		size_t len;
		int around;
	} cases[] = {{0, 0}, {1, -EFBIG}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		nt_autosplitter struct nt_json_stream json_stream = {0};
		nt_autosplitter struct nt_json_stream around = {0};
		nt_autobuf struct nt_buf seen = {0};
		size_t n = NT_JSON_STREAM_DEPTH + cases[i].len;

		memset(text, '[', n);
		text[n] = '\0';
		json_stream = (struct nt_json_stream){
			.max_bytes = 4096, .object = note, .context = &seen};
		assert_int_equal(nt_json_stream_feed(&json_stream, text, n),
				 cases[i].len ? -EBADMSG : 0);

		n = NT_JSON_STREAM_REST - 2 + cases[i].len;
		text[0] = '{';
		memset(text + 1, ' ', n);
		text[n + 1] = '}';
		text[n + 2] = '\0';
		assert_int_equal(split(NT_JSON_STREAM_ITEMS, text, 100, 4096, &seen, &around),
				 cases[i].around);
	}
}

static int refuse(void *context, const char *text, size_t len)
{
	(void)context;
	(void)text;
	(void)len;
	return -ENOMEM;
}

static void who_takes_an_object_may_end_it(void **state)
{
	nt_autosplitter struct nt_json_stream json_stream = {.max_bytes = 10, .object = refuse};

	(void)state;
	assert_int_equal(nt_json_stream_feed(&json_stream, "{}{}", 4), -ENOMEM);
	/* What came behind it is lost, so that there is no going on. */
	assert_int_equal(nt_json_stream_feed(&json_stream, " ", 1), -EBADMSG);
	assert_int_equal(nt_json_stream_end(&json_stream), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_is_cut_into_its_values_however_it_comes),
		cmocka_unit_test(a_list_is_cut_into_its_items_and_what_is_around_them),
		cmocka_unit_test(what_is_no_json_is_refused_and_stays_refused),
		cmocka_unit_test(an_object_over_the_cap_is_left_out_and_counted),
		cmocka_unit_test(too_deep_and_too_much_around_are_refused_at_their_caps),
		cmocka_unit_test(who_takes_an_object_may_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
