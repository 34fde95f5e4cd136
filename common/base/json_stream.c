/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/json_stream.h"

#include <errno.h>
#include <string.h>

/* Stores a finished run of bytes: in the object, in the rest, or nowhere. */
static int keep(struct nt_json_stream *json_stream, const char *data, size_t len)
{
	int r;

	if (json_stream->in_object) {
		if (json_stream->is_left_out)
			return 0;
		if (len > json_stream->max_bytes - json_stream->text.len) {
			json_stream->is_left_out = true;
			json_stream->too_large++;
			return 0;
		}
		json_stream->text.max = 2 * json_stream->max_bytes;
		return nt_buf_append(&json_stream->text, data, len);
	}
	if (json_stream->mode == NT_JSON_STREAM_VALUES)
		return 0;
	json_stream->rest.max = NT_JSON_STREAM_REST;
	r = nt_buf_append(&json_stream->rest, data, len);
	return r == -ENOBUFS ? -EFBIG : r;
}

static void read_string(struct nt_json_stream *json_stream, char c)
{
	if (json_stream->is_escaped)
		json_stream->is_escaped = false;
	else if (c == '\\')
		json_stream->is_escaped = true;
	else if (c == '"')
		json_stream->in_string = false;
	if (json_stream->in_string && json_stream->depth == 1 &&
	    json_stream->key_len < NT_JSON_STREAM_KEY)
		json_stream->key[json_stream->key_len++] = c;
}

static bool begins_object(const struct nt_json_stream *json_stream)
{
	if (json_stream->in_object)
		return false;
	if (json_stream->mode == NT_JSON_STREAM_VALUES)
		return json_stream->depth == 0;
	return json_stream->in_items && json_stream->depth == 2;
}

static bool ends_object(const struct nt_json_stream *json_stream)
{
	return json_stream->in_object &&
	       json_stream->depth == (json_stream->mode == NT_JSON_STREAM_VALUES ? 0 : 2);
}

static int emit(struct nt_json_stream *json_stream)
{
	bool is_left_out = json_stream->is_left_out;
	int r = 0;

	json_stream->in_object = json_stream->is_left_out = false;
	if (!is_left_out)
		r = json_stream->object(json_stream->context, (const char *)json_stream->text.data,
					json_stream->text.len);
	nt_buf_clear(&json_stream->text);
	return r < 0 ? r : 0;
}

static int open_bracket(struct nt_json_stream *json_stream, char c)
{
	if (json_stream->depth == NT_JSON_STREAM_DEPTH)
		return -EBADMSG;
	json_stream->depth++;
	if (c == '[' && json_stream->depth == 2 && json_stream->key_len == 5 &&
	    memcmp(json_stream->key, "items", 5) == 0)
		json_stream->in_items = true;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* data[*from, i) is pending and not stored yet. */
static int take(struct nt_json_stream *json_stream, const char *data, size_t i, size_t *from)
{
	char c = data[i];
	int r = 0;

	if (json_stream->in_string) {
		read_string(json_stream, c);
		return 0;
	}
	switch (c) {
	case '"':
		json_stream->in_string = true;
		if (json_stream->depth == 1)
			json_stream->key_len = 0;
		return json_stream->depth ? 0 : -EBADMSG;
	case '{':
	case '[':
		if (begins_object(json_stream)) {
			r = keep(json_stream, data + *from, i - *from);
			*from = i;
			json_stream->in_object = true;
		}
		return r < 0 ? r : open_bracket(json_stream, c);
	case '}':
	case ']':
		if (!json_stream->depth)
			return -EBADMSG;
		json_stream->depth--;
		if (json_stream->in_items && json_stream->depth == 1)
			json_stream->in_items = false;
		if (!ends_object(json_stream))
			return 0;
		r = keep(json_stream, data + *from, i + 1 - *from);
		*from = i + 1;
		return r < 0 ? r : emit(json_stream);
	case ',':
		if (json_stream->in_items && json_stream->depth == 2 && !json_stream->in_object) {
			r = keep(json_stream, data + *from, i - *from);
			*from = i + 1;
		}
		return r;
	default:
		return json_stream->depth || is_blank(c) ? 0 : -EBADMSG;
	}
}

int nt_json_stream_feed(struct nt_json_stream *json_stream, const char *data, size_t len)
{
	size_t from = 0;
	int r = json_stream->is_bad ? -EBADMSG : 0;

	for (size_t i = 0; r == 0 && i < len; i++)
		r = take(json_stream, data, i, &from);
	if (r == 0)
		r = keep(json_stream, data + from, len - from);
	json_stream->is_bad |= r < 0;
	return r;
}

int nt_json_stream_end(const struct nt_json_stream *json_stream)
{
	return json_stream->is_bad || json_stream->depth || json_stream->in_string ? -EBADMSG : 0;
}

void nt_json_stream_release(struct nt_json_stream *json_stream)
{
	nt_buf_release(&json_stream->text);
	nt_buf_release(&json_stream->rest);
}
