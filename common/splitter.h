/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON that comes in pieces of any size, cut into whole objects, so that a list of thousands needs
 * the room of one. Only quotes and brackets are understood: whoever gets an object parses it.
 */
#ifndef NT_COMMON_SPLITTER_H
#define NT_COMMON_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"

enum {
	NT_SPLITTER_DEPTH = 256,
	NT_SPLITTER_REST = 64 << 10,
	NT_SPLITTER_KEY = 16,
};

enum nt_splitter_mode {
	NT_SPLITTER_STREAM, /* one value after the other */
	NT_SPLITTER_ITEMS, /* one object, whose member "items" is an array of objects */
};

/* Zeroed but for the first four; nt_splitter_release() ends it. */
struct nt_splitter {
	enum nt_splitter_mode mode;
	size_t max_bytes; /* of an object: a larger one is left out and counted */
	/* A whole object, borrowed for the call. < 0 ends nt_splitter_feed() with it. */
	int (*object)(void *context, const char *text, size_t len);
	void *context;
	uint64_t too_large;

	/* ITEMS: what is around the items, which are an empty array in it. */
	struct nt_buf rest;

	struct nt_buf text; /* of the object so far */
	size_t depth;
	bool in_string, is_escaped, in_object, in_items, is_left_out;
	bool is_bad; /* sticks */
	char key[NT_SPLITTER_KEY]; /* of a member of the outermost object, as far as it fits */
	size_t key_len;
};

/* -EBADMSG: no JSON. -EFBIG: too much around the items. -ENOMEM, or what `object` returned. */
NT_MUST_CHECK int nt_splitter_feed(struct nt_splitter *splitter, const char *data, size_t len);
/* Nothing more comes. -EBADMSG where something is still open. */
NT_MUST_CHECK int nt_splitter_end(const struct nt_splitter *splitter);
void nt_splitter_release(struct nt_splitter *splitter);
#define nt_autosplitter __attribute__((cleanup(nt_splitter_release)))

#endif
