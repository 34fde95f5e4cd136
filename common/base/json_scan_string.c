/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Strings of JSON, and their place in the stored value. */
#include "common/base/json_scan_impl.h"

#include <errno.h>
#include <string.h>

#include "common/base/utf8.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_ENDIAN_OF(word) (word)
#else
#define LITTLE_ENDIAN_OF(word) __builtin_bswap64(word)
#endif

enum {
	ESCAPES = 12, /* bytes of the longest escape: \uD834\uDD1E */
};

/* ---- stored texts ---------------------------------------------------------------------------- */

static const char *moved(const struct nt_json_scan *scan, const char *text, const char *to)
{
	const uintptr_t from = (uintptr_t)scan->text, at = (uintptr_t)text;

	return at >= from && at - from < scan->text_len ? to + (at - from) : text;
}

/* Makes room for texts; those that are there move. */
static int grow_text(struct nt_json_scan *scan, size_t more)
{
	size_t cap = scan->text_cap ? scan->text_cap : 256;
	char *grown;

	if (more > NT_JSON_SCAN_TEXT_BYTES - scan->text_len)
		return nt_json_scan_refuse_large(scan);
	while (cap < scan->text_len + more)
		cap *= 2;
	grown = malloc(cap);
	if (!grown)
		return -ENOMEM;
	if (scan->text_len)
		memcpy(grown, scan->text, scan->text_len);
	for (size_t i = 0; i < scan->values; i++) {
		struct nt_json_value *value = &scan->value[i];

		value->key = moved(scan, value->key, grown);
		if (value->kind == NT_JSON_STRING)
			value->text = moved(scan, value->text, grown);
	}
	free(scan->text);
	scan->text = grown;
	scan->text_cap = cap;
	return 0;
}

static inline int add_text(struct nt_json_scan *scan, const char *text, size_t len)
{
	if (len > scan->text_cap - scan->text_len) {
		int r = grow_text(scan, len);

		if (r < 0)
			return r;
	}
	if (len)
		memcpy(scan->text + scan->text_len, text, len);
	scan->text_len += len;
	return 0;
}

/* ---- strings ---------------------------------------------------------------------------------- */

static inline void need(struct nt_json_scan *scan, ptrdiff_t bytes)
{
	if (scan->end - scan->at < bytes && !scan->at_end)
		nt_json_scan_refill(scan);
}

const char *nt_json_scan_run(const char *at)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;

	for (;; at += sizeof(uint64_t)) {
		uint64_t bytes, quote, escape, found;

		memcpy(&bytes, at, sizeof(bytes));
		bytes = LITTLE_ENDIAN_OF(bytes); /* cppcheck-suppress selfAssignment */
		quote = bytes ^ ones * '"';
		escape = bytes ^ ones * '\\';
		/* The lowest mark is exact: borrows only reach higher bytes. */
		found = (((quote - ones) & ~quote) | ((escape - ones) & ~escape) |
			 (bytes - ones * ' ') | bytes) &
			tops;
		if (found)
			return at + __builtin_ctzll(found) / 8;
	}
}

/* Four hexadecimal digits; -1: they are none. */
static int read_hex(const char *at)
{
	int code = 0;

	for (size_t i = 0; i < 4; i++) {
		const char c = at[i];
		const int digit = c >= '0' && c <= '9'   ? c - '0'
				  : c >= 'a' && c <= 'f' ? c - 'a' + 10
				  : c >= 'A' && c <= 'F' ? c - 'A' + 10
							 : -1;

		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

static size_t encode(uint32_t code, char *text)
{
	if (code < 0x80) {
		text[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		text[0] = (char)(0xc0 | code >> 6);
		text[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		text[0] = (char)(0xe0 | code >> 12);
		text[1] = (char)(0x80 | (code >> 6 & 0x3f));
		text[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	text[0] = (char)(0xf0 | code >> 18);
	text[1] = (char)(0x80 | (code >> 12 & 0x3f));
	text[2] = (char)(0x80 | (code >> 6 & 0x3f));
	text[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Reads \uXXXX, perhaps both halves of a surrogate pair. The bytes of `text`; 0: refused. */
static size_t read_code(struct nt_json_scan *scan, char *text)
{
	int code = read_hex(scan->at + 2), low;

	/* A premature end has fewer digits; the padding is none. */
	if (code <= 0 || (code >= 0xdc00 && code <= 0xdfff))
		return 0;
	scan->at += 6;
	if (code < 0xd800 || code > 0xdbff)
		return encode((uint32_t)code, text);
	if (scan->at[0] != '\\' || scan->at[1] != 'u')
		return 0;
	low = read_hex(scan->at + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return 0;
	scan->at += 6;
	return encode(0x10000 + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)(low - 0xdc00), text);
}

/* At a backslash. */
static int read_escape(struct nt_json_scan *scan, bool stores)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *name;
	size_t len = 1;
	char text[4];

	need(scan, ESCAPES);
	name = scan->at[1] ? strchr(names, scan->at[1]) : NULL;
	if (name) {
		text[0] = meant[name - names];
		scan->at += 2;
	} else {
		len = scan->at[1] == 'u' ? read_code(scan, text) : 0;
		if (!len)
			return nt_json_scan_refuse(scan, "invalid escape");
	}
	return stores ? add_text(scan, text, len) : 0;
}

/* At a byte that is not ASCII. */
static int read_wide(struct nt_json_scan *scan, bool stores)
{
	size_t len;

	need(scan, 4);
	len = nt_utf8_length(scan->at, (size_t)(scan->end - scan->at));
	if (!len)
		return nt_json_scan_refuse(scan, "not UTF-8");
	scan->at += len;
	return stores ? add_text(scan, scan->at - len, len) : 0;
}

int nt_json_scan_string(struct nt_json_scan *scan, bool stores)
{
	int r = 0;

	scan->at++;
	while (r == 0) {
		const char *from = scan->at;

		scan->at = nt_json_scan_run(from);
		if (stores) {
			r = add_text(scan, from, (size_t)(scan->at - from));
			if (r < 0)
				return r;
		}
		if (*scan->at == '"') {
			scan->at++;
			return stores ? add_text(scan, "", 1) : 0;
		}
		if (*scan->at == '\\')
			r = read_escape(scan, stores);
		else if (*scan->at & 0x80)
			r = read_wide(scan, stores);
		else if (scan->at == scan->end && !scan->at_end)
			nt_json_scan_refill(scan);
		else
			r = nt_json_scan_refuse(scan, "control character in a string");
	}
	return r;
}
