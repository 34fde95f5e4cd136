/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A JSON value as text at the end of a buffer. The text is jansson's, byte for byte. What REST serves, without
 * indentation, is written here: jansson takes three times as long, most of it for snprintf() of
 * integers.
 */
#include "common/system/json_append.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	OWN_FLAGS = JSON_COMPACT | JSON_ENCODE_ANY, /* and a precision: what is written here */
	MAX_DEPTH = 2048, /* as jansson's */
	NUMBER_BYTES = 64,
	DEFAULT_PRECISION = 17,
	SMALLEST_PLAIN = 0x20, /* characters below are escaped */
};

struct json_sink {
	struct nt_buf *buf;
	int error;
};

/* jansson 2.14 continues after an error in a member's name: the error must persist. */
static int append(const char *text, size_t len, void *data)
{
	struct json_sink *sink = data;

	if (!sink->error)
		sink->error = nt_buf_append(sink->buf, text, len);
	return sink->error;
}

static int append_escape(unsigned char c, struct nt_buf *buf)
{
	static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	char text[8];
	int len;

	for (size_t i = 0; i + 1 < sizeof(shorts); i += 2) {
		if ((unsigned char)shorts[i] == c)
			return nt_buf_append(buf, (char[]){'\\', shorts[i + 1]}, 2);
	}
	len = snprintf(text, sizeof(text), "\\u%04X", c);
	return nt_buf_append(buf, text, (size_t)len);
}

/* Strings of jansson are valid UTF-8. */
static int append_text(const char *text, size_t len, struct nt_buf *buf)
{
	size_t from = 0;
	int r = nt_buf_append(buf, "\"", 1);

	for (size_t i = 0; r == 0 && i < len; i++) {
		const unsigned char c = (unsigned char)text[i];

		if (c >= SMALLEST_PLAIN && c != '"' && c != '\\')
			continue;
		r = nt_buf_append(buf, text + from, i - from);
		if (r == 0)
			r = append_escape(c, buf);
		from = i + 1;
	}
	if (r == 0)
		r = nt_buf_append(buf, text + from, len - from);
	return r < 0 ? r : nt_buf_append(buf, "\"", 1);
}

static int append_integer(json_int_t value, struct nt_buf *buf)
{
	char text[NUMBER_BYTES], *at = text + sizeof(text);
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (value < 0)
		*--at = '-';
	return nt_buf_append(buf, at, (size_t)(text + sizeof(text) - at));
}

static int append_real(const json_t *json, size_t flags, struct nt_buf *buf)
{
	const size_t precision = (flags >> 11) & 0x1f; /* as JSON_REAL_PRECISION() sets it */
	char text[NUMBER_BYTES];
	size_t len = (size_t)snprintf(text, sizeof(text), "%.*g",
				      precision ? (int)precision : DEFAULT_PRECISION,
				      json_real_value(json));

	if (memchr(text, 'e', len)) /* jansson shortens exponents */
		len = json_dumpb(json, text, sizeof(text), flags | JSON_ENCODE_ANY);
	else if (!memchr(text, '.', len) && len + 2 < sizeof(text))
		len += (size_t)snprintf(text + len, sizeof(text) - len, ".0");
	return len && len <= sizeof(text) ? nt_buf_append(buf, text, len) : -ENOMEM;
}

static int append_scalar(const json_t *json, size_t flags, struct nt_buf *buf)
{
	switch (json_typeof(json)) {
	case JSON_STRING:
		return append_text(json_string_value(json), json_string_length(json), buf);
	case JSON_INTEGER:
		return append_integer(json_integer_value(json), buf);
	case JSON_REAL:
		return append_real(json, flags, buf);
	case JSON_TRUE:
		return nt_buf_append(buf, "true", 4);
	case JSON_FALSE:
		return nt_buf_append(buf, "false", 5);
	default:
		return nt_buf_append(buf, "null", 4);
	}
}

static int append_value(const json_t *json, size_t flags, size_t depth, struct nt_buf *buf)
{
	json_t *object = (json_t *)json; /* iterators take no const, and change nothing */
	const bool is_object = json_is_object(json);
	void *member = json_object_iter(object); /* NULL in what is no object */
	bool is_first = true;
	int r;

	if (!is_object && !json_is_array(json))
		return append_scalar(json, flags, buf);
	if (depth == MAX_DEPTH)
		return -ENOMEM;
	r = nt_buf_append(buf, is_object ? "{" : "[", 1);
	for (size_t i = 0; r == 0 && (is_object ? member != NULL : i < json_array_size(json));
	     i++) {
		r = is_first ? 0 : nt_buf_append(buf, ",", 1);
		is_first = false;
		if (r == 0 && is_object) {
			const char *name = json_object_iter_key(member);

			r = append_text(name, strlen(name), buf);
			if (r == 0)
				r = nt_buf_append(buf, ":", 1);
		}
		if (r == 0)
			r = append_value(is_object ? json_object_iter_value(member)
						   : json_array_get(json, i),
					 flags, depth + 1, buf);
		member = is_object ? json_object_iter_next(object, member) : NULL;
	}
	return r < 0 ? r : nt_buf_append(buf, is_object ? "}" : "]", 1);
}

static bool is_own(const json_t *json, size_t flags)
{
	const size_t others = flags & ~(size_t)JSON_REAL_PRECISION(JSON_MAX_INDENT);

	if (!json || (others | JSON_ENCODE_ANY) != OWN_FLAGS)
		return false;
	return (flags & JSON_ENCODE_ANY) || json_is_object(json) || json_is_array(json);
}

int nt_json_append(const json_t *json, size_t flags, struct nt_buf *buf)
{
	struct json_sink sink = {.buf = buf};
	int r;

	if (is_own(json, flags))
		return append_value(json, flags, 0, buf);
	r = json_dump_callback(json, append, &sink, flags);
	if (sink.error)
		return sink.error;
	return r ? -ENOMEM : 0;
}
