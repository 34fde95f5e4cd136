/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/format/format_text.h"

#include <errno.h>
#include <string.h>

#include "common/base/utf8.h"

static const char ellipsis[] = "\xe2\x80\xa6";

void nt_format_text_release(struct nt_format_text *text)
{
	nt_buf_release(&text->buf);
}

const char *nt_format_text_get(const struct nt_format_text *text)
{
	return text->buf.data ? (const char *)text->buf.data : "";
}

/* The bytes of the first character; a byte that begins none is one by itself. */
static size_t length_of(const char *text, size_t len)
{
	size_t n = nt_utf8_length(text, len);

	return n ? n : 1;
}

/* Units of a piece of len bytes. */
static size_t measure(const struct nt_format_text *text, const char *piece, size_t len)
{
	size_t units = 0;

	if (text->unit == NT_FORMAT_BYTES)
		return len;
	while (len) {
		size_t n = length_of(piece, len);

		units += n == 4 ? 2 : 1;
		piece += n;
		len -= n;
	}
	return units;
}

static int append(struct nt_format_text *text, const char *piece, size_t len)
{
	int r = nt_buf_append(&text->buf, piece, len);

	if (r == 0)
		r = nt_buf_append(&text->buf, "", 1);
	if (r < 0)
		return r == -ENOBUFS ? -ENOMEM : r;
	text->buf.len--;
	text->used += measure(text, piece, len);
	return 0;
}

/* The place of the ellipsis is always kept free. */
static bool fits(const struct nt_format_text *text, const char *piece, size_t len)
{
	return text->used + measure(text, piece, len) +
		       measure(text, ellipsis, sizeof(ellipsis) - 1) <=
	       text->max;
}

static int cut(struct nt_format_text *text)
{
	text->is_cut = true;
	return append(text, ellipsis, sizeof(ellipsis) - 1);
}

int nt_format_text_add(struct nt_format_text *text, const char *plain)
{
	size_t len = strlen(plain);

	while (len && !text->is_cut) {
		size_t n = length_of(plain, len);
		const char *piece = n == 1 && text->escape ? text->escape(*plain) : NULL;
		size_t piece_len = piece ? strlen(piece) : n;
		int r;

		if (!piece)
			piece = plain;
		r = fits(text, piece, piece_len) ? append(text, piece, piece_len) : cut(text);
		if (r < 0)
			return r;
		plain += n;
		len -= n;
	}
	return 0;
}

int nt_format_text_add_markup(struct nt_format_text *text, const char *markup)
{
	size_t len = strlen(markup);

	if (text->is_cut)
		return 0;
	return fits(text, markup, len) ? append(text, markup, len) : cut(text);
}
