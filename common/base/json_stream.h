/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON that comes in pieces of any size, cut into whole objects, so that a list of thousands needs
 * the room of one. Only quotes and brackets are understood: whoever gets an object parses it.
 */
#ifndef NT_COMMON_BASE_JSON_STREAM_H
#define NT_COMMON_BASE_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_JSON_STREAM_DEPTH = 256,
	NT_JSON_STREAM_REST = 64 << 10,
	NT_JSON_STREAM_KEY = 16,
};

enum nt_json_stream_mode {
	NT_JSON_STREAM_STREAM, /* one value after the other */
	NT_JSON_STREAM_ITEMS, /* one object, whose member "items" is an array of objects */
};

/* Zeroed but for the first four; nt_json_stream_release() ends it. */
struct nt_json_stream {
	enum nt_json_stream_mode mode;
	size_t max_bytes; /* of an object: a larger one is left out and counted */
	/* A whole object, borrowed for the call. < 0 ends nt_json_stream_feed() with it. */
	int (*object)(void *context, const char *text, size_t len);
	void *context;
	uint64_t too_large;

	/* ITEMS: what is around the items, which are an empty array in it. */
	struct nt_buf rest;

	struct nt_buf text; /* of the object so far */
	size_t depth;
	bool in_string, is_escaped, in_object, in_items, is_left_out;
	bool is_bad; /* sticks */
	char key[NT_JSON_STREAM_KEY]; /* of a member of the outermost object, as far as it fits */
	size_t key_len;
};

/* -EBADMSG: no JSON. -EFBIG: too much around the items. -ENOMEM, or what `object` returned. */
NT_MUST_CHECK int nt_json_stream_feed(struct nt_json_stream *json_stream, const char *data,
				      size_t len);
/* Nothing more comes. -EBADMSG where something is still open. */
NT_MUST_CHECK int nt_json_stream_end(const struct nt_json_stream *json_stream);
void nt_json_stream_release(struct nt_json_stream *json_stream);
#define nt_autosplitter __attribute__((cleanup(nt_json_stream_release)))

#endif
