/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/splitter.h"

#include <errno.h>
#include <string.h>

/* A run of bytes goes where it belongs once it ends: into the object, the rest, or nowhere. */
static int keep(struct nt_splitter *splitter, const char *data, size_t len)
{
	int r;

	if (splitter->in_object) {
		if (splitter->is_left_out)
			return 0;
		if (len > splitter->max_bytes - splitter->text.len) {
			splitter->is_left_out = true;
			splitter->too_large++;
			return 0;
		}
		splitter->text.max = 2 * splitter->max_bytes;
		return nt_buf_append(&splitter->text, data, len);
	}
	if (splitter->mode == NT_SPLITTER_STREAM)
		return 0;
	splitter->rest.max = NT_SPLITTER_REST;
	r = nt_buf_append(&splitter->rest, data, len);
	return r == -ENOBUFS ? -EFBIG : r;
}

static void read_string(struct nt_splitter *splitter, char c)
{
	if (splitter->is_escaped)
		splitter->is_escaped = false;
	else if (c == '\\')
		splitter->is_escaped = true;
	else if (c == '"')
		splitter->in_string = false;
	if (splitter->in_string && splitter->depth == 1 && splitter->key_len < NT_SPLITTER_KEY)
		splitter->key[splitter->key_len++] = c;
}

static bool begins_object(const struct nt_splitter *splitter)
{
	if (splitter->in_object)
		return false;
	if (splitter->mode == NT_SPLITTER_STREAM)
		return splitter->depth == 0;
	return splitter->in_items && splitter->depth == 2;
}

static bool ends_object(const struct nt_splitter *splitter)
{
	return splitter->in_object &&
	       splitter->depth == (splitter->mode == NT_SPLITTER_STREAM ? 0 : 2);
}

static int emit(struct nt_splitter *splitter)
{
	bool is_left_out = splitter->is_left_out;
	int r = 0;

	splitter->in_object = splitter->is_left_out = false;
	if (!is_left_out)
		r = splitter->object(splitter->context, (const char *)splitter->text.data,
				     splitter->text.len);
	nt_buf_clear(&splitter->text);
	return r < 0 ? r : 0;
}

static int open_bracket(struct nt_splitter *splitter, char c)
{
	if (splitter->depth == NT_SPLITTER_DEPTH)
		return -EBADMSG;
	splitter->depth++;
	if (c == '[' && splitter->depth == 2 && splitter->key_len == 5 &&
	    memcmp(splitter->key, "items", 5) == 0)
		splitter->in_items = true;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* data[*from, i) is kept and not yet put away. */
static int take(struct nt_splitter *splitter, const char *data, size_t i, size_t *from)
{
	char c = data[i];
	int r = 0;

	if (splitter->in_string) {
		read_string(splitter, c);
		return 0;
	}
	switch (c) {
	case '"':
		splitter->in_string = true;
		if (splitter->depth == 1)
			splitter->key_len = 0;
		return splitter->depth ? 0 : -EBADMSG;
	case '{':
	case '[':
		if (begins_object(splitter)) {
			r = keep(splitter, data + *from, i - *from);
			*from = i;
			splitter->in_object = true;
		}
		return r < 0 ? r : open_bracket(splitter, c);
	case '}':
	case ']':
		if (!splitter->depth)
			return -EBADMSG;
		splitter->depth--;
		if (splitter->in_items && splitter->depth == 1)
			splitter->in_items = false;
		if (!ends_object(splitter))
			return 0;
		r = keep(splitter, data + *from, i + 1 - *from);
		*from = i + 1;
		return r < 0 ? r : emit(splitter);
	case ',':
		if (splitter->in_items && splitter->depth == 2 && !splitter->in_object) {
			r = keep(splitter, data + *from, i - *from);
			*from = i + 1;
		}
		return r;
	default:
		return splitter->depth || is_blank(c) ? 0 : -EBADMSG;
	}
}

int nt_splitter_feed(struct nt_splitter *splitter, const char *data, size_t len)
{
	size_t from = 0;
	int r = splitter->is_bad ? -EBADMSG : 0;

	for (size_t i = 0; r == 0 && i < len; i++)
		r = take(splitter, data, i, &from);
	if (r == 0)
		r = keep(splitter, data + from, len - from);
	splitter->is_bad |= r < 0;
	return r;
}

int nt_splitter_end(const struct nt_splitter *splitter)
{
	return splitter->is_bad || splitter->depth || splitter->in_string ? -EBADMSG : 0;
}

void nt_splitter_release(struct nt_splitter *splitter)
{
	nt_buf_release(&splitter->text);
	nt_buf_release(&splitter->rest);
}
