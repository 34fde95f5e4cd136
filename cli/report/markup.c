/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/report/markup.h"

#include <errno.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "proto/text.h"

enum {
	PIECE_BYTES = 3 << 12, /* a multiple of 3, so that pieces can be concatenated */
};

static const char *entity_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static int append_clean(struct nt_buf *buf, const char *text, size_t max)
{
	/* A longer text is read just far enough to detect that. */
	const size_t len = strnlen(text, 4 * max + 4);
	nt_autofree char *clean = malloc((max < len ? max : len) + 1);
	size_t n;
	int r = 0;

	if (!clean)
		return -ENOMEM;
	n = nt_text_clean(text, len, clean, max);
	for (size_t i = 0; i < n && r == 0;) {
		const char *entity = entity_of(clean[i]);
		size_t plain = 0;

		if (entity) {
			r = nt_buf_append(buf, entity, strlen(entity));
			i++;
			continue;
		}
		while (i + plain < n && !entity_of(clean[i + plain]))
			plain++;
		r = nt_buf_append(buf, &clean[i], plain);
		i += plain;
	}
	return r < 0 || len <= max ? r : nt_buf_append(buf, "…", strlen("…"));
}

void nt_markup_text(struct nt_markup *page, const char *text, size_t max)
{
	if (!page->error)
		page->error = append_clean(page->buf, text, max);
}

void nt_markup_base64(struct nt_markup *page, const void *data, size_t size)
{
	const unsigned char *at = data;

	while (size && !page->error) {
		const size_t piece = size < PIECE_BYTES ? size : PIECE_BYTES;
		/* EVP_EncodeBlock() ends with a NUL. */
		page->error = nt_buf_reserve(page->buf, (piece + 2) / 3 * 4 + 1);
		if (page->error)
			return;
		page->buf->len +=
			(size_t)EVP_EncodeBlock(page->buf->data + page->buf->len, at, (int)piece);
		at += piece;
		size -= piece;
	}
}

void nt_markup_bytes(struct nt_markup *page, const char *text, size_t size)
{
	if (!page->error)
		page->error = nt_buf_append(page->buf, text, size);
}

void nt_markup_policy_hash(struct nt_markup *page, const char *text, size_t size)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)text, size, hash);
	nt_markup_put(page, "'sha256-");
	nt_markup_base64(page, hash, sizeof(hash));
	nt_markup_put(page, "'");
}
