/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The forms of a profile, and profiles that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <zlib.h>

#include "cli/profile/flame.h"
#include "proto/json.h"

static const char document[] =
	"{\"rank\":3,\"hz\":50,\"duration_s\":2.0,\"taken\":9,\"missed\":1,\"lost\":2,"
	"\"torn\":3,\"empty\":4,\"cpu_s\":0.018,\"reason\":\"<i>because\","
	"\"begin\":\"2026-01-01T00:00:00Z\",\"interpreter\":\"CPython 3.11\",\"frames\":["
	"{\"function\":\"main\",\"file\":\"/a/train.py\",\"native\":false},"
	"{\"function\":\"</script><b>;x\",\"file\":\"/a/b\\\"c.py\",\"native\":false},"
	"{\"function\":\"poll\",\"file\":\"libc.so.6\",\"native\":true}],\"stacks\":["
	"{\"thread\":\"python\",\"state\":\"on-cpu\",\"count\":6,\"left_out\":0,\"frames\":[1,0]},"
	"{\"thread\":\"python\",\"state\":\"off-cpu\",\"count\":2,\"left_out\":0,\"frames\":[2,0]},"
	"{\"thread\":\"python\",\"state\":\"on-cpu\",\"count\":1,\"left_out\":0,\"frames\":[0]}]}";

static json_t *json;
static struct nt_flame flame;
static struct nt_buf text;

static int set_up(void **state)
{
	(void)state;
	if (nt_json_load(document, strlen(document), &json) < 0)
		return -1;
	return nt_flame_read(json, "train<1>", &flame);
}

static int tear_down(void **state)
{
	(void)state;
	nt_flame_release(&flame);
	nt_buf_release(&text);
	json_decref(json);
	json = NULL;
	return 0;
}

static const char *as_text(void)
{
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	return (const char *)text.data;
}

static void folded_has_a_line_for_each_stack(void **state)
{
	(void)state;
	assert_int_equal(nt_flame_folded(&flame, &text), 0);
	assert_string_equal(as_text(),
			    "python [on-cpu];main (train.py) 1\n"
			    "python [on-cpu];main (train.py);</script><b>_x (b\"c.py) 6\n"
			    "python [off-cpu];main (train.py);poll (libc.so.6) 2\n");
}

/* ---- pprof ----------------------------------------------------------------------------------- */

static uint64_t varint(const uint8_t *data, size_t len, size_t *at)
{
	uint64_t value = 0;

	for (int shift = 0;; shift += 7) {
		assert_true(*at < len && shift < 64);
		value |= (uint64_t)(data[*at] & 0x7f) << shift;
		if (!(data[(*at)++] & 0x80))
			return value;
	}
}

struct seen {
	size_t samples, locations, functions, strings, types;
	uint64_t period, comment, weight[8];
	char string[32][32];
};

static void see_sample(const uint8_t *data, size_t len, struct seen *seen)
{
	for (size_t at = 0; at < len;) {
		const uint64_t tag = varint(data, len, &at);
		const uint64_t value = varint(data, len, &at);

		if ((tag & 7) == 2)
			at += value;
		else if (tag >> 3 == 2 && !seen->weight[seen->samples])
			seen->weight[seen->samples] = value;
		else if (tag >> 3 == 1)
			assert_in_range(value, 1, 3);
	}
	seen->samples++;
}

static void see_pprof(const uint8_t *data, size_t len, struct seen *seen)
{
	for (size_t at = 0; at < len;) {
		const uint64_t tag = varint(data, len, &at), value = varint(data, len, &at);

		if (tag >> 3 == 12)
			seen->period = value;
		if (tag >> 3 == 13)
			seen->comment = value;
		if ((tag & 7) == 0)
			continue;
		assert_int_equal(tag & 7, 2);
		assert_true(value <= len - at);
		if (tag >> 3 == 2)
			see_sample(data + at, value, seen);
		if (tag >> 3 == 6 && seen->strings < 32)
			memcpy(seen->string[seen->strings], data + at, value < 31 ? value : 31);
		seen->types += tag >> 3 == 1;
		seen->locations += tag >> 3 == 4;
		seen->functions += tag >> 3 == 5;
		seen->strings += tag >> 3 == 6;
		at += value;
	}
}

static void pprof_is_gzip_of_its_message(void **state)
{
	static uint8_t plain[1 << 16];
	z_stream stream = {.next_out = plain, .avail_out = sizeof(plain)};
	struct seen seen = {0};

	(void)state;
	assert_int_equal(nt_flame_pprof(&flame, &text), 0);
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	stream.next_in = text.data;
	stream.avail_in = (uInt)text.len;
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	see_pprof(plain, stream.total_out, &seen);
	(void)inflateEnd(&stream);
	assert_int_equal(seen.types, 2);
	assert_int_equal(seen.samples, 3);
	assert_int_equal(seen.locations, 3);
	assert_int_equal(seen.functions, 3);
	assert_int_equal(seen.period, 20000000);
	assert_int_equal(seen.weight[0] + seen.weight[1] + seen.weight[2], 9);
	assert_string_equal(seen.string[0], "");
	assert_string_equal(seen.string[9], "main");
	assert_string_equal(seen.string[10], "/a/train.py");
	assert_string_equal(seen.string[13], "poll");
	assert_int_equal(seen.strings, 9 + 2 * 3 + 3 + 1);
	assert_int_equal(seen.comment, 9 + 2 * 3 + 3);
	assert_string_equal(seen.string[18], "9 samples of threads in 2.0 s a");
}

/* ---- the page -------------------------------------------------------------------------------- */

static size_t count_of(const char *in, const char *what)
{
	size_t count = 0;

	for (const char *at = in; (at = strstr(at, what)); at += strlen(what))
		count++;
	return count;
}

static void the_page_nests_frames_and_escapes(void **state)
{
	const char *page;

	(void)state;
	assert_int_equal(nt_flame_html(&flame, &text), 0);
	page = as_text();
	assert_non_null(strstr(page, "<h1>train&lt;1&gt;, rank 3</h1>"));
	assert_non_null(
		strstr(page, "data-n=\"7\"><button type=\"button\" class=\"on\">python [on-cpu]<"));
	assert_non_null(
		strstr(page, "data-n=\"7\"><button type=\"button\" class=\"python\">main ("));
	assert_non_null(
		strstr(page, "data-n=\"2\"><button type=\"button\" class=\"native\">poll ("));
	assert_non_null(strstr(page, ">&lt;/script&gt;&lt;b&gt;;x (/a/b&quot;c.py)<"));
	assert_null(strstr(page, "<b>"));
	assert_null(strstr(page, "http://"));
	assert_null(strstr(page, "https://"));
	assert_int_equal(count_of(page, "</script>"), 1);
	assert_int_equal(count_of(page, "class=\"node\""), 6);
	assert_int_equal(count_of(page, "<div"), count_of(page, "</div>"));
	assert_non_null(strstr(page, "<p class=\"notes\">9 samples of threads in 2.0 s"));
	assert_non_null(strstr(page, "; &lt;i&gt;because; CPython 3.11.</p>"));
}

static void what_is_not_whole_is_stated(void **state)
{
	(void)state;
	assert_int_equal(nt_flame_describe(&flame, &text), 0);
	assert_string_equal(
		as_text(), "9 samples of threads in 2.0 s at 50 Hz: 3 torn, 4 without a frame, "
			   "2 left out; the rate fell to 4.5 Hz, as 1 of 10 times were missed: one "
			   "takes 2.00 ms of processor time; <i>because");
	nt_buf_clear(&text);
	flame.missed = 0;
	flame.reason = "";
	assert_int_equal(nt_flame_describe(&flame, &text), 0);
	assert_string_equal(as_text(),
			    "9 samples of threads in 2.0 s at 50 Hz: 3 torn, 4 without a "
			    "frame, 2 left out");
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void what_is_no_profile_is_refused(void **state)
{
	static const char *const faults[] = {
		"[]",
		"{}",
		"{\"hz\":9,\"frames\":[],\"stacks\":7}",
		"{\"hz\":0,\"frames\":[],\"stacks\":[]}",
		"{\"hz\":9,\"frames\":[],\"stacks\":[{\"frames\":[0]}]}",
		"{\"hz\":9,\"frames\":[{}],\"stacks\":[{\"frames\":[1]}]}",
		"{\"hz\":9,\"frames\":[{}],\"stacks\":[{\"frames\":[-1]}]}",
		"{\"hz\":9,\"frames\":[{}],\"stacks\":[{\"frames\":[\"a\"]}]}",
		"{\"hz\":9,\"frames\":[{}],\"stacks\":[{\"frames\":{}}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		nt_autojson json_t *other = NULL;
		struct nt_flame none;

		assert_int_equal(nt_json_load(faults[i], strlen(faults[i]), &other), 0);
		assert_int_equal(nt_flame_read(other, "job", &none), -EPROTO);
	}
}

static void one_without_samples_has_a_page(void **state)
{
	static const char empty[] = "{\"hz\":9,\"frames\":[],\"stacks\":[]}";
	nt_autojson json_t *other = NULL;
	nt_autoflame struct nt_flame none = {0};

	(void)state;
	assert_int_equal(nt_json_load(empty, strlen(empty), &other), 0);
	assert_int_equal(nt_flame_read(other, "job", &none), 0);
	assert_int_equal(nt_flame_html(&none, &text), 0);
	assert_non_null(strstr(as_text(), "There are no samples."));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(folded_has_a_line_for_each_stack),  TEST(pprof_is_gzip_of_its_message),
		TEST(the_page_nests_frames_and_escapes), TEST(what_is_no_profile_is_refused),
		TEST(one_without_samples_has_a_page),    TEST(what_is_not_whole_is_stated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
