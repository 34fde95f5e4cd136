/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A splitter for JSON that arrives in pieces of any size: it yields whole objects, so a list of
 * thousands needs the memory of one. It tracks quotes and brackets only; the callback parses.
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
	NT_JSON_STREAM_VALUES, /* a sequence of values */
	NT_JSON_STREAM_ITEMS, /* one object whose member "items" is an array of objects */
};

/* Initialise the first four members, zero the rest; release with nt_json_stream_release(). */
struct nt_json_stream {
	enum nt_json_stream_mode mode;
	size_t max_bytes; /* of an object; a larger one is skipped and counted */
	/* Called with each whole object, borrowed. Negative: ends nt_json_stream_feed() with it. */
	int (*object)(void *context, const char *text, size_t len);
	void *context;
	uint64_t too_large;

	/* ITEMS: the text around the items, with an empty array in their place. */
	struct nt_buf rest;

	struct nt_buf text; /* of the current object so far */
	size_t depth;
	bool in_string, is_escaped, in_object, in_items, is_left_out;
	bool is_bad; /* sticky */
	char key[NT_JSON_STREAM_KEY]; /* of the outermost object, truncated to fit */
	size_t key_len;
};

/*
 * -EBADMSG: not JSON. -EFBIG: too much text around the items. -ENOMEM, or the result of `object`.
 */
NT_MUST_CHECK int nt_json_stream_feed(struct nt_json_stream *json_stream, const char *data,
				      size_t len);
/* End of input. -EBADMSG if a value is incomplete. */
NT_MUST_CHECK int nt_json_stream_end(const struct nt_json_stream *json_stream);
void nt_json_stream_release(struct nt_json_stream *json_stream);
#define nt_autosplitter __attribute__((cleanup(nt_json_stream_release)))

#endif
