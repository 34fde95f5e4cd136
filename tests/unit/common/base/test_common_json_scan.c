/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/readers/json_tree.h"
#include "common/base/json_scan.h"
#include "tests/unit/piece_source.h"

/* The whole document as a tree of jansson's. */
static int scan(const char *text, size_t len, size_t piece, json_t **ret_tree)
{
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	struct piece_source source = {.text = text, .len = len, .piece = piece};
	const struct nt_json_value *value = NULL;
	enum nt_json_kind kind;
	uint64_t line;
	json_t *tree;
	int r;

	assert_int_equal(nt_json_scan_new(piece_source_read, &source, &scan), 0);
	r = nt_json_scan_peek(scan, &kind, &line);
	r = r ?: nt_json_scan_take(scan, NULL, &value);
	if (r < 0)
		return r;
	tree = nt_json_tree(value);
	assert_non_null(tree);
	r = nt_json_scan_end(scan);
	if (r < 0)
		json_decref(tree);
	else
		*ret_tree = tree;
	return r;
}

static int skip_over(const char *text, size_t len, size_t piece)
{
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	struct piece_source source = {.text = text, .len = len, .piece = piece};
	enum nt_json_kind kind;
	uint64_t line;
	int r;

	assert_int_equal(nt_json_scan_new(piece_source_read, &source, &scan), 0);
	r = nt_json_scan_peek(scan, &kind, &line);
	r = r ?: nt_json_scan_skip(scan);
	return r ?: nt_json_scan_end(scan);
}

/* As jansson: accepted with the same value, or refused. */
static void check_like_jansson(const char *text, size_t len, size_t piece)
{
	json_t *want = json_loadb(text, len, 0, NULL), *got = NULL;
	const int r = scan(text, len, piece, &got);

	if ((r == 0) != (want != NULL) || (want && !json_equal(got, want)))
		fail_msg("'%.*s' in pieces of %zu: %d", (int)len, text, piece, r);
	assert_int_equal(r, skip_over(text, len, piece));
	json_decref(want);
	json_decref(got);
}

static const char rich[] =
	" {\"a\": [1, -2, 3.25, 1e3, -0.5E-2, 0, -0, 0.0, 9223372036854775807,\n"
	"-9223372036854775808, 4486649159395.268, 1790857026000000.125, 18014398509481985.5],"
	"\"\": {}, \"b\\u00e4\\n\\\"\\\\\\/\\b\\f\\r\\t\": \"\\ud834\\udd1e \xc3\xa4 \xe2\x82\xac\","
	" \"c\" :\t[[], [[]], {\"d\": null, \"e\" : true , \"f\":false, \"d\": 7}],\r\n"
	"\"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)\": \"x\"}\n ";

static void documents_are_read_like_jansson_reads_them_wherever_they_are_cut(void **state)
{
	(void)state;
	for (size_t piece = 1; piece <= sizeof(rich); piece++)
		check_like_jansson(rich, strlen(rich), piece);
}

static void every_truncation_is_refused(void **state)
{
	(void)state;
	/* It ends with a space and a newline. */
	for (size_t len = 0; len < strlen(rich) - 2; len++) {
		check_like_jansson(rich, len, SIZE_MAX);
		assert_int_equal(skip_over(rich, len, 3), -EBADMSG);
	}
}

static void every_changed_byte_is_judged_like_jansson_judges_it(void **state)
{
	static const char bytes[] = "\x01 \"\\,:[]{}-+.0eE1nu/\x7f\x80\xc0\xe2\xf4\xff";
	char text[sizeof(rich)];

	(void)state;
	memcpy(text, rich, sizeof(text));
	for (size_t at = 0; at < strlen(rich); at++) {
		for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
			text[at] = bytes[i];
			check_like_jansson(text, strlen(rich), SIZE_MAX);
		}
		/* Behind a number jansson overlooks it. */
		text[at] = '\0';
		assert_int_equal(skip_over(text, strlen(rich), SIZE_MAX), -EBADMSG);
		text[at] = rich[at];
	}
}

static const char *const hostile[] = {
	"",
	" \n",
	"null",
	"1",
	"\"x\"",
	"[1] 2",
	"[1]]",
	"[1,]",
	"[,1]",
	"[1 2]",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{a:1}",
	"{1:1}",
	"{\"a\" 1}",
	"[}",
	"{]",
	"[NaN]",
	"[Infinity]",
	"[-Infinity]",
	"[nul]",
	"[nulll]",
	"[truefalse]",
	"[01]",
	"[-]",
	"[1.]",
	"[.5]",
	"[+1]",
	"[1e]",
	"[1e+]",
	"[0x10]",
	"[1_000]",
	"[9223372036854775808]",
	"[-9223372036854775809]",
	"[100000000000000000000]",
	"[1e308]",
	"[1e309]",
	"[-1e309]",
	"[1e999999999999999999999]",
	"[1e-999999999999999999999]",
	"[0e999999999]",
	"[0.1, 0.2, 0.3, 123456789012345678.9, 12345678901234567890.5, 1e23, 9007199254740993.5]",
	"[2.2250738585072011e-308, 4.9e-324, 1.7976931348623157e308, 5e-325]",
	"[0.000000000000000000000000000000123, 123456789012345678901234567890.0]",
	"[\"\\u0000\"]",
	"[\"\\ud800\"]",
	"[\"\\ud800x\"]",
	"[\"\\udc00\"]",
	"[\"\\ud800\\u0041\"]",
	"[\"\\uD83D\\uDE00\"]",
	"[\"\\u12\"]",
	"[\"\\u12g4\"]",
	"[\"\\x41\"]",
	"[\"\\\"]",
	"[\"a\nb\"]",
	"[\"a\tb\"]",
	"[\"\x7f\"]",
	"[\"\xc0\x80\"]",
	"[\"\xe0\x80\x80\"]",
	"[\"\xed\xa0\x80\"]",
	"[\"\xf4\x90\x80\x80\"]",
	"[\"\xf0\x9f\x98\x80\"]",
	"[\"\xe2\x82\"]",
	"\xef\xbb\xbf[1]",
	"[1]\xff",
	"/* */ [1]",
	"[1] // x",
};

static void hostile_documents_are_judged_like_jansson_judges_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		check_like_jansson(hostile[i], strlen(hostile[i]), SIZE_MAX);
		check_like_jansson(hostile[i], strlen(hostile[i]), 1);
	}
	check_like_jansson("[\"a\0b\"]", 7, SIZE_MAX);
	check_like_jansson("[1]\0", 4, SIZE_MAX);
	check_like_jansson("\0[1]", 4, SIZE_MAX);
}

static void levels_are_counted_like_jansson_counts_them(void **state)
{
	char text[2 * NT_JSON_SCAN_DEPTH + 8];

	(void)state;
	for (size_t depth = NT_JSON_SCAN_DEPTH - 2; depth <= NT_JSON_SCAN_DEPTH + 1; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		check_like_jansson(text, 2 * depth, SIZE_MAX);
		text[depth] = '1';
		memset(text + depth + 1, ']', depth);
		check_like_jansson(text, 2 * depth + 1, SIZE_MAX);
	}
}

static void strings_across_the_window_are_whole(void **state)
{
	const size_t len = 300 << 10;
	char *text = malloc(len + 1);

	(void)state;
	assert_non_null(text);
	for (size_t shift = 0; shift < 16; shift++) {
		memset(text, ' ', len);
		memcpy(text, "[\"", 2);
		for (size_t i = 2; i + 16 < len; i++)
			text[i] = "abcdefghijklmno\xc3\xa4\\n\\u00e4"[(i + shift) % 25];
		memcpy(text + len - 16, "xxxxxxxx\", 12.5]", 16);
		check_like_jansson(text, len, SIZE_MAX);
	}
	free(text);
}

static void only_picked_members_are_stored(void **state)
{
	static const char text[] =
		"{\"skip\": [[1, {\"x\": \"y\"}]], \"pick\": 1, \"in\": {\"no\": 2, \"yes\": [3, "
		"{\"no\": 4, \"yes\": 5}]}, \"pic\": 0, \"picks\": 0, \"p\\u0069ck\": 6}";
	static const struct nt_json_pick inner[] = {{"yes"}, {NULL}};
	static const struct nt_json_pick pick[] = {{"pick"}, {"in", inner}, {NULL}};
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	struct piece_source source = {.text = text, .len = strlen(text), .piece = SIZE_MAX};
	const struct nt_json_value *value = NULL, *list;

	(void)state;
	assert_int_equal(nt_json_scan_new(piece_source_read, &source, &scan), 0);
	assert_int_equal(nt_json_scan_take(scan, pick, &value), 0);
	assert_int_equal(nt_json_scan_end(scan), 0);
	assert_int_equal(value->count, 3);
	assert_int_equal(value->span, 9);
	/* The last of one name. */
	assert_int_equal(nt_json_value_integer(nt_json_value_get(value, "pick")), 6);
	assert_null(nt_json_value_get(value, "skip"));
	list = nt_json_value_get(nt_json_value_get(value, "in"), "yes");
	assert_int_equal(nt_json_value_size(list), 2);
	assert_int_equal(nt_json_value_integer(list + 1), 3);
	assert_true(nt_json_value_is(list + 2, NT_JSON_OBJECT));
}

static void elements_come_one_at_a_time_with_their_lines(void **state)
{
	static const char text[] = "{\"a\": 1,\n\"list\": [\n1, 2,\n\n3]}";
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	struct piece_source source = {.text = text, .len = strlen(text), .piece = 1};
	static const uint64_t lines[] = {3, 3, 5};
	const struct nt_json_value *value = NULL;
	const char *key = NULL;
	uint64_t line = 0;

	(void)state;
	assert_int_equal(nt_json_scan_new(piece_source_read, &source, &scan), 0);
	assert_int_equal(nt_json_scan_enter(scan), 0);
	assert_int_equal(nt_json_scan_next(scan, &key, &line), 1);
	assert_string_equal(key, "a");
	assert_int_equal(nt_json_scan_skip(scan), 0);
	assert_int_equal(nt_json_scan_next(scan, &key, &line), 1);
	assert_string_equal(key, "list");
	assert_int_equal(line, 2);
	assert_int_equal(nt_json_scan_enter(scan), 0);
	for (int64_t i = 0; i < 3; i++) {
		assert_int_equal(nt_json_scan_next(scan, &key, &line), 1);
		assert_null(key);
		assert_int_equal(line, lines[i]);
		assert_int_equal(nt_json_scan_take(scan, NULL, &value), 0);
		assert_int_equal(nt_json_value_integer(value), i + 1);
	}
	assert_int_equal(nt_json_scan_next(scan, &key, &line), 0);
	assert_int_equal(nt_json_scan_next(scan, &key, &line), 0);
	assert_int_equal(nt_json_scan_end(scan), 0);
}

static void the_place_of_a_mistake_is_stated(void **state)
{
	static const char text[] = "[1,\n2,\n x]";
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	struct piece_source source = {.text = text, .len = strlen(text), .piece = SIZE_MAX};
	uint64_t line = 0, byte = 0;

	(void)state;
	assert_int_equal(nt_json_scan_new(piece_source_read, &source, &scan), 0);
	assert_int_equal(nt_json_scan_skip(scan), -EBADMSG);
	assert_string_equal(nt_json_scan_why(scan, &line, &byte), "invalid token");
	assert_int_equal(line, 3);
	assert_int_equal(byte, 8);
}

static void the_error_of_the_source_is_returned(void **state)
{
	(void)state;
	for (size_t len = 0; len <= strlen(rich); len++) {
		nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
		struct piece_source source = {
			.text = rich, .len = len, .piece = SIZE_MAX, .failure = -EIO};
		uint64_t line, byte;
		int r;

		assert_int_equal(nt_json_scan_new(piece_source_read, &source, &scan), 0);
		r = nt_json_scan_skip(scan);
		assert_int_equal(r ?: nt_json_scan_end(scan), -EIO);
		assert_string_equal(nt_json_scan_why(scan, &line, &byte), "");
	}
}

/* A document of `len` bytes between `head` and `tail`. */
static char *make_long(const char *head, char with, size_t len, const char *tail)
{
	char *text = malloc(strlen(head) + len + strlen(tail) + 1);

	assert_non_null(text);
	memcpy(text, head, strlen(head));
	memset(text + strlen(head), with, len);
	memcpy(text + strlen(head) + len, tail, strlen(tail) + 1);
	return text;
}

static void what_is_stored_has_a_cap_and_what_is_skipped_has_none(void **state)
{
	char *text = make_long("[\"", 'a', NT_JSON_SCAN_TEXT_BYTES - 1, "\"]");
	json_t *tree = NULL;

	(void)state;
	assert_int_equal(scan(text, strlen(text), SIZE_MAX, &tree), 0);
	json_decref(tree);
	free(text);
	text = make_long("[\"", 'a', NT_JSON_SCAN_TEXT_BYTES, "\"]");
	assert_int_equal(scan(text, strlen(text), SIZE_MAX, &tree), -EBADMSG);
	assert_int_equal(skip_over(text, strlen(text), SIZE_MAX), 0);
	free(text);
	text = make_long("[[]", ' ', 4 * NT_JSON_SCAN_VALUES, "]");
	for (size_t i = 0; i < NT_JSON_SCAN_VALUES - 2; i++)
		memcpy(text + 3 + 3 * i, ",[]", 3);
	assert_int_equal(scan(text, strlen(text), SIZE_MAX, &tree), 0);
	json_decref(tree);
	memcpy(text + 3 + 3 * (NT_JSON_SCAN_VALUES - 2), ",[]", 3);
	assert_int_equal(scan(text, strlen(text), SIZE_MAX, &tree), -EBADMSG);
	assert_int_equal(skip_over(text, strlen(text), SIZE_MAX), 0);
	free(text);
	text = make_long("[1.", '0', NT_JSON_SCAN_NUMBER - 3, "]");
	assert_int_equal(skip_over(text, strlen(text), SIZE_MAX), 0);
	free(text);
	text = make_long("[1.", '0', 2 * NT_JSON_SCAN_NUMBER, "]");
	assert_int_equal(skip_over(text, strlen(text), 1), -EBADMSG);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_are_read_like_jansson_reads_them_wherever_they_are_cut),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(every_changed_byte_is_judged_like_jansson_judges_it),
		cmocka_unit_test(hostile_documents_are_judged_like_jansson_judges_them),
		cmocka_unit_test(levels_are_counted_like_jansson_counts_them),
		cmocka_unit_test(strings_across_the_window_are_whole),
		cmocka_unit_test(only_picked_members_are_stored),
		cmocka_unit_test(elements_come_one_at_a_time_with_their_lines),
		cmocka_unit_test(the_place_of_a_mistake_is_stated),
		cmocka_unit_test(the_error_of_the_source_is_returned),
		cmocka_unit_test(what_is_stored_has_a_cap_and_what_is_skipped_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
