/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/target.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/utf8.h"

static struct nt_target target;

static int parse(const char *text)
{
	return nt_target_parse(text, strlen(text), &target);
}

static void a_path_is_taken_apart_before_it_is_decoded(void **state)
{
	(void)state;
	assert_int_equal(parse("/api/v1/jobs/a%2Fb+c"), 0);
	assert_int_equal(target.segments, 4);
	assert_string_equal(target.segment[0], "api");
	assert_string_equal(target.segment[3], "a/b+c");
	assert_int_equal(target.queries, 0);
}

static void parameters_are_decoded_and_a_plus_is_a_blank(void **state)
{
	(void)state;
	assert_int_equal(parse("/x?a=1+2%2b3&b&c=&&d=%3d%26"), 0);
	assert_string_equal(nt_target_query(&target, "a"), "1 2+3");
	assert_string_equal(nt_target_query(&target, "b"), "");
	assert_string_equal(nt_target_query(&target, "c"), "");
	assert_string_equal(nt_target_query(&target, "d"), "=&");
	assert_null(nt_target_query(&target, "e"));
}

static void the_root_and_empty_segments_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(parse("/"), 0);
	assert_int_equal(target.segments, 0);
	assert_int_equal(parse("/a//b/"), 0);
	assert_int_equal(target.segments, 4);
	assert_string_equal(target.segment[1], "");
	assert_string_equal(target.segment[3], "");
}

static void an_origin_is_left_out(void **state)
{
	(void)state;
	assert_int_equal(parse("http://host:80/a?b=c"), 0);
	assert_string_equal(target.segment[0], "a");
	assert_int_equal(parse("HTTPS://host/a"), 0);
	assert_int_equal(parse("http://host"), -EINVAL);
}

static void a_host_that_cannot_be_is_eaddrnotavail(void **state)
{
	static const char *const good[] = {"h",     "a.b-c:0",  "10.0.0.1:65535",
					   "[::1]", "[::1]:80", "h:"};
	static const char *const bad[] = {"",     "u@h",   "h:65536", "h:x", "h h",
					  "[::1", "[]",    "[::1]x",  "<h>", "[::1]:x",
					  ":80",  "h:1:2", "[g::]/",  "a\\b"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(nt_target_host_is_sound(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(nt_target_host_is_sound(bad[i], strlen(bad[i])));
	assert_false(nt_target_host_is_sound("h\0h", 3));
	assert_int_equal(parse("http:///a"), -EADDRNOTAVAIL);
	assert_int_equal(parse("https://u@h/a"), -EADDRNOTAVAIL);
	assert_int_equal(parse("http://?a=/b"), -EADDRNOTAVAIL);
}

static void what_is_no_target_is_einval(void **state)
{
	static const char *const bad[] = {
		"",          "a",          "*",       "/%",    "/%4",
		"/%4g",      "/%00",       "/%1f",    "/\x7f", "/a?b=%0d",
		"/\xc3\x28", "/%ed%a0%80", "/%c0%af", "?a=1",  "/%f5%80%80%80",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i]), -EINVAL);
}

static void a_parameter_given_twice_is_eexist(void **state)
{
	(void)state;
	assert_int_equal(parse("/a?b=1&%62=2"), -EEXIST);
}

static void the_caps_hold_and_one_more_is_refused(void **state)
{
	char text[NT_TARGET_MAX_BYTES + 2];
	size_t len;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_int_equal(nt_target_parse(text, NT_TARGET_MAX_BYTES, &target), 0);
	assert_int_equal(nt_target_parse(text, NT_TARGET_MAX_BYTES + 1, &target), -ENAMETOOLONG);
	for (size_t i = 0; i < NT_TARGET_MAX_SEGMENTS; i++)
		memcpy(text + 2 * i, "/a", 2);
	len = 2 * (size_t)NT_TARGET_MAX_SEGMENTS;
	assert_int_equal(nt_target_parse(text, len, &target), 0);
	memcpy(text + len, "/a", 2);
	assert_int_equal(nt_target_parse(text, len + 2, &target), -E2BIG);
	len = (size_t)snprintf(text, sizeof(text), "/?");
	for (int i = 0; i < NT_TARGET_MAX_QUERY; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%c&", 'a' + i);
	assert_int_equal(nt_target_parse(text, len, &target), 0);
	assert_int_equal(target.queries, NT_TARGET_MAX_QUERY);
	text[len] = 'z';
	assert_int_equal(nt_target_parse(text, len + 1, &target), -E2BIG);
}

static void the_longest_query_of_bare_names_fits(void **state)
{
	char text[NT_TARGET_MAX_BYTES];
	size_t len = NT_TARGET_MAX_BYTES - 1;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "/?", 2);
	for (size_t i = 1; i < NT_TARGET_MAX_QUERY; i++) {
		text[len - 2 * i] = '&';
		text[len - 2 * i + 1] = (char)('A' + i);
	}
	assert_int_equal(nt_target_parse(text, len, &target), 0);
	assert_int_equal(target.queries, NT_TARGET_MAX_QUERY);
}

static void characters_are_as_long_as_they_should_be(void **state)
{
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
		{"a", 1},
		{"\xc3\xa4", 2},
		{"\xe2\x82\xac", 3},
		{"\xf0\x9f\x98\x80", 4},
		{"\x80", 0},
		{"\xc0\x80", 0},
		{"\xe0\x80\x80", 0},
		{"\xed\xa0\x80", 0},
		{"\xf4\x90\x80\x80", 0},
		{"\xe2\x82", 0},
		{"\xff", 0},
		{"", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(nt_utf8_length(cases[i].text, strlen(cases[i].text)),
				 cases[i].length);
	assert_true(nt_utf8_is_valid("a\xc3\xa4", 3));
	assert_false(nt_utf8_is_valid("a\xc3", 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_taken_apart_before_it_is_decoded),
		cmocka_unit_test(parameters_are_decoded_and_a_plus_is_a_blank),
		cmocka_unit_test(the_root_and_empty_segments_are_told_apart),
		cmocka_unit_test(an_origin_is_left_out),
		cmocka_unit_test(a_host_that_cannot_be_is_eaddrnotavail),
		cmocka_unit_test(what_is_no_target_is_einval),
		cmocka_unit_test(a_parameter_given_twice_is_eexist),
		cmocka_unit_test(the_caps_hold_and_one_more_is_refused),
		cmocka_unit_test(the_longest_query_of_bare_names_fits),
		cmocka_unit_test(characters_are_as_long_as_they_should_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
