/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON of any bytes, in pieces of a size that the first byte names, is the same value for the scanner
 * and for jansson, or is refused by both.
 */
#include <assert.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/json_tree.h"
#include "common/base/json_scan.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/unit/piece_source.h"

static int scan(const char *text, size_t len, size_t piece, json_t **ret_tree)
{
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	struct piece_source source = {.text = text, .len = len, .piece = piece};
	const struct nt_json_value *value = NULL;
	enum nt_json_kind kind;
	uint64_t line = 0, byte = 0;
	int r;

	assert(nt_json_scan_new(piece_source_read, &source, &scan) == 0);
	r = nt_json_scan_peek(scan, &kind, &line);
	r = r ?: ret_tree ? nt_json_scan_take(scan, NULL, &value) : nt_json_scan_skip(scan);
	if (r == 0 && ret_tree)
		*ret_tree = nt_json_tree(value);
	r = r ?: nt_json_scan_end(scan);
	assert((r < 0) == (*nt_json_scan_why(scan, &line, &byte) != '\0'));
	assert(line > 0 && byte <= len);
	return r;
}

/* jansson overlooks a NUL behind a number, and has no limit for the length of one. */
static bool is_apart(const char *text, size_t len)
{
	size_t digits = 0;

	for (size_t i = 0; i < len; i++) {
		digits = memchr("+-.0123456789eE", text[i], 15) ? digits + 1 : 0;
		if (!text[i] || digits >= NT_JSON_SCAN_NUMBER)
			return true;
	}
	return false;
}

static int run(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	json_t *want, *got = NULL;
	size_t piece;
	int r, skipped;

	if (!size)
		return 0;
	size--;
	piece = data[0] ? data[0] : SIZE_MAX;
	r = scan(text, size, piece, &got);
	/* A long number is skipped, but not stored. */
	skipped = scan(text, size, SIZE_MAX, NULL);
	assert(skipped == r || (skipped == 0 && is_apart(text, size)));
	if (!is_apart(text, size)) {
		want = json_loadb(text, size, 0, NULL);
		assert((r == 0) == (want != NULL));
		assert(!want || json_equal(want, got));
		json_decref(want);
	}
	json_decref(got);
	return 0;
}

FUZZ_TARGET(run, .peak = {1 << 20, 1024}, .total = {2 << 20, 4096}, .steps = {20000, 200},
	    .cpu_ns = {100000000, 20000})
