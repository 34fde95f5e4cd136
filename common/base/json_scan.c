/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/json_scan.h"

#include <errno.h>
#include <string.h>

#include "common/base/json_number.h"
#include "common/base/json_scan_impl.h"

enum {
	WINDOW_BYTES = 128 << 10,
	PADDING = 8, /* zeros behind the window's bytes: every run of bytes ends there */
};

static const char TOO_DEEP[] = "maximum parsing depth reached";

/* ---- bytes ------------------------------------------------------------------------------------ */

void nt_json_scan_refill(struct nt_json_scan *scan)
{
	size_t len = (size_t)(scan->end - scan->at);

	scan->before += (size_t)(scan->at - scan->window);
	memmove(scan->window, scan->at, len);
	while (len < NT_JSON_SCAN_NUMBER && !scan->at_end) {
		const ptrdiff_t n =
			scan->fill(scan->context, scan->window + len, WINDOW_BYTES - len);

		scan->at_end = n <= 0;
		scan->failed = n < 0 ? (int)n : 0;
		len += n > 0 ? (size_t)n : 0;
	}
	scan->at = scan->window;
	scan->end = scan->window + len;
	memset(scan->window + len, 0, PADDING);
}

int nt_json_scan_refuse(struct nt_json_scan *scan, const char *why)
{
	if (scan->failed)
		return scan->failed;
	scan->why = scan->at == scan->end ? "premature end of input" : why;
	return -EBADMSG;
}

int nt_json_scan_refuse_large(struct nt_json_scan *scan)
{
	scan->why = "a value that is too large";
	return -EBADMSG;
}

/* The next byte that is no space, with what follows it up to NT_JSON_SCAN_NUMBER; 0: none. */
static inline char look(struct nt_json_scan *scan)
{
	const char *at = scan->at;

	for (;;) {
		for (; *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'; at++)
			scan->line += *at == '\n';
		scan->at = at;
		if (scan->end - at >= NT_JSON_SCAN_NUMBER || scan->at_end)
			return *at;
		nt_json_scan_refill(scan);
		at = scan->at;
	}
}

/* ---- levels ----------------------------------------------------------------------------------- */

static int enter(struct nt_json_scan *scan)
{
	if (scan->depth == NT_JSON_SCAN_DEPTH)
		return nt_json_scan_refuse(scan, TOO_DEEP);
	scan->open[scan->depth++] = *scan->at++;
	scan->fresh = true;
	return 0;
}

/* Goes to the next member or element, before its key. 1: there is one; 0: the level is left. */
static inline int go_on(struct nt_json_scan *scan)
{
	const char open = scan->open[scan->depth - 1], close = open == '{' ? '}' : ']';
	char c = look(scan);

	if (c == close) {
		scan->at++;
		scan->depth--;
		scan->fresh = false;
		return 0;
	}
	if (!scan->fresh) {
		if (c != ',')
			return nt_json_scan_refuse(scan,
						   open == '{' ? "'}' expected" : "']' expected");
		scan->at++;
		c = look(scan);
	}
	scan->fresh = false;
	if (open == '{' && c != '"')
		return nt_json_scan_refuse(scan, "string or '}' expected");
	return scan->depth < NT_JSON_SCAN_DEPTH ? 1 : nt_json_scan_refuse(scan, TOO_DEEP);
}

/* Behind a key. */
static inline int go_to_value(struct nt_json_scan *scan)
{
	if (look(scan) != ':')
		return nt_json_scan_refuse(scan, "':' expected");
	scan->at++;
	return 0;
}

/* A string, number or literal; a string is not stored. */
static int read_scalar(struct nt_json_scan *scan, char c, struct nt_json_value *ret_value)
{
	static const struct {
		const char *name;
		size_t len;
		enum nt_json_kind kind;
	} literals[] = {
		{"null", 4, NT_JSON_NULL}, {"true", 4, NT_JSON_TRUE}, {"false", 5, NT_JSON_FALSE}};
	const char *why;
	size_t len = 0;

	if (c == '"') {
		ret_value->kind = NT_JSON_STRING;
		return nt_json_scan_string(scan, false);
	}
	if (c == '-' || (c >= '0' && c <= '9')) {
		why = nt_json_number_read(scan->at, ret_value, &len);
		if (!why && scan->at + len == scan->end && !scan->at_end)
			why = "a number that is too long";
		scan->at += why ? 0 : len;
		return why ? nt_json_scan_refuse(scan, why) : 0;
	}
	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
		if (strncmp(scan->at, literals[i].name, literals[i].len) != 0)
			continue;
		scan->at += literals[i].len;
		ret_value->kind = literals[i].kind;
		return 0;
	}
	return nt_json_scan_refuse(scan, "invalid token");
}

static int skip(struct nt_json_scan *scan)
{
	const size_t outside = scan->depth;
	struct nt_json_value value;
	int r;

	do {
		const char c = look(scan);

		r = c == '{' || c == '[' ? enter(scan) : read_scalar(scan, c, &value);
		while (r == 0 && scan->depth > outside) {
			r = go_on(scan);
			if (r == 1 && scan->open[scan->depth - 1] == '{') {
				r = nt_json_scan_string(scan, false);
				r = r ?: go_to_value(scan);
				r = r ?: 1;
			}
		}
	} while (r == 1);
	return r;
}

/* ---- what is stored --------------------------------------------------------------------------- */

/* The index of the new value. */
static int add_value(struct nt_json_scan *scan, const char *key, size_t *ret_at)
{
	if (scan->values == NT_JSON_SCAN_VALUES)
		return nt_json_scan_refuse_large(scan);
	if (scan->values == scan->value_cap) {
		const size_t cap = scan->value_cap ? 2 * scan->value_cap : 16;
		struct nt_json_value *grown = reallocarray(scan->value, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		scan->value = grown;
		scan->value_cap = cap;
	}
	*ret_at = scan->values;
	scan->value[scan->values++] = (struct nt_json_value){.span = 1, .key = key};
	return 0;
}

/* Reads the key of a member. *ret_pick: how to store its value, NULL: all; 1: it is stored. */
static int read_key(struct nt_json_scan *scan, const struct nt_json_pick *pick,
		    const struct nt_json_pick **ret_inner, const char **ret_key)
{
	const char *key = scan->at + 1, *end;
	const size_t before = scan->text_len;
	size_t len;
	int r;

	end = pick ? nt_json_scan_run(key) : NULL;
	if (end && *end == '"') {
		scan->at = end + 1;
	} else {
		r = nt_json_scan_string(scan, true);
		if (r < 0)
			return r;
		key = scan->text + before;
		end = scan->text + scan->text_len - 1;
	}
	*ret_key = key;
	*ret_inner = NULL;
	if (!pick)
		return 1;
	scan->text_len = before;
	len = (size_t)(end - key);
	for (; pick->key; pick++) {
		if (pick->key[0] != key[0] || strncmp(pick->key, key, len) != 0 || pick->key[len])
			continue;
		*ret_key = pick->key;
		*ret_inner = pick->inner;
		return 1;
	}
	return 0;
}

static int take(struct nt_json_scan *scan, const struct nt_json_pick *pick, const char *key);

static int take_members(struct nt_json_scan *scan, const struct nt_json_pick *pick, size_t at)
{
	const bool object = *scan->at == '{';
	size_t count = 0;
	int r = enter(scan);

	while (r == 0) {
		const struct nt_json_pick *inner = pick;
		const char *key = NULL;
		int stored = 1;

		r = go_on(scan);
		if (r <= 0)
			break;
		if (object) {
			stored = read_key(scan, pick, &inner, &key);
			r = stored < 0 ? stored : go_to_value(scan);
			if (r < 0)
				break;
		}
		r = stored ? take(scan, inner, key) : skip(scan);
		count += (size_t)stored;
	}
	scan->value[at].kind = object ? NT_JSON_OBJECT : NT_JSON_ARRAY;
	scan->value[at].count = count;
	scan->value[at].span = (uint32_t)(scan->values - at);
	return r;
}

static int take(struct nt_json_scan *scan, const struct nt_json_pick *pick, const char *key)
{
	const char c = look(scan);
	size_t at = 0, from;
	int r = add_value(scan, key, &at);

	if (r < 0)
		return r;
	if (c == '{' || c == '[')
		return take_members(scan, pick, at);
	if (c != '"')
		return read_scalar(scan, c, &scan->value[at]);
	from = scan->text_len;
	r = nt_json_scan_string(scan, true);
	if (r < 0)
		return r;
	scan->value[at].kind = NT_JSON_STRING;
	scan->value[at].text = scan->text + from;
	return 0;
}

/* ---- the interface ---------------------------------------------------------------------------- */

int nt_json_scan_new(ptrdiff_t (*fill)(void *context, char *data, size_t size), void *context,
		     struct nt_json_scan **ret_scan)
{
	nt_auto(nt_json_scan) struct nt_json_scan *scan = malloc(sizeof(*scan));

	if (!scan)
		return -ENOMEM;
	*scan = (struct nt_json_scan){.fill = fill, .context = context, .line = 1};
	scan->window = malloc(WINDOW_BYTES + PADDING);
	if (!scan->window)
		return -ENOMEM;
	scan->at = scan->end = scan->window;
	memset(scan->window, 0, PADDING);
	*ret_scan = nt_take(scan);
	return 0;
}

void nt_json_scan_free(struct nt_json_scan *scan)
{
	if (!scan)
		return;
	free(scan->window);
	free(scan->text);
	free(scan->value);
	free(scan);
}

int nt_json_scan_peek(struct nt_json_scan *scan, enum nt_json_kind *ret_kind, uint64_t *ret_line)
{
	const char c = look(scan);

	if (scan->failed)
		return scan->failed;
	if (!scan->depth && c != '{' && c != '[')
		return nt_json_scan_refuse(scan, "'[' or '{' expected");
	*ret_kind = c == '{'   ? NT_JSON_OBJECT
		    : c == '[' ? NT_JSON_ARRAY
		    : c == '"' ? NT_JSON_STRING
		    : c == 'n' ? NT_JSON_NULL
		    : c == 't' ? NT_JSON_TRUE
		    : c == 'f' ? NT_JSON_FALSE
			       : NT_JSON_REAL;
	*ret_line = scan->line;
	return 0;
}

int nt_json_scan_enter(struct nt_json_scan *scan)
{
	const char c = look(scan);

	return c == '{' || c == '[' ? enter(scan)
				    : nt_json_scan_refuse(scan, "'[' or '{' expected");
}

int nt_json_scan_next(struct nt_json_scan *scan, const char **ret_key, uint64_t *ret_line)
{
	int r = go_on(scan);

	*ret_key = NULL;
	*ret_line = scan->line;
	if (r <= 0 || scan->open[scan->depth - 1] != '{')
		return r;
	scan->text_len = scan->values = 0;
	r = nt_json_scan_string(scan, true);
	r = r ?: go_to_value(scan);
	*ret_key = scan->text;
	return r ?: 1;
}

int nt_json_scan_take(struct nt_json_scan *scan, const struct nt_json_pick *pick,
		      const struct nt_json_value **ret_value)
{
	int r;

	scan->text_len = scan->values = 0;
	r = take(scan, pick, NULL);
	*ret_value = r == 0 ? scan->value : NULL;
	return r;
}

int nt_json_scan_skip(struct nt_json_scan *scan)
{
	return skip(scan);
}

int nt_json_scan_end(struct nt_json_scan *scan)
{
	const char c = look(scan);

	return c || scan->at != scan->end || scan->failed
		       ? nt_json_scan_refuse(scan, "end of file expected")
		       : 0;
}

const char *nt_json_scan_why(const struct nt_json_scan *scan, uint64_t *ret_line,
			     uint64_t *ret_byte)
{
	*ret_line = scan->line;
	*ret_byte = scan->before + (size_t)(scan->at - scan->window);
	return scan->why ? scan->why : "";
}
