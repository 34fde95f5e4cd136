/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A document that a reader gets in pieces: a source for nt_json_scan_new(). */
#ifndef NT_TESTS_UNIT_PIECE_SOURCE_H
#define NT_TESTS_UNIT_PIECE_SOURCE_H

#include <stddef.h>
#include <string.h>

struct piece_source {
	const char *text;
	size_t len, at, piece; /* piece: the most bytes at a time */
	int failure; /* returned after the last byte; 0: the document ends */
};

static inline ptrdiff_t piece_source_read(void *context, char *data, size_t size)
{
	struct piece_source *source = context;
	size_t n = source->len - source->at;

	n = n < source->piece ? n : source->piece;
	n = n < size ? n : size;
	if (!n && source->failure)
		return source->failure;
	memcpy(data, source->text + source->at, n);
	source->at += n;
	return (ptrdiff_t)n;
}

#endif
