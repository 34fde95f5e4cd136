/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An arena: memory that is released all at once, with a limit that bounds what untrusted input can
 * allocate. Zero-initialised is empty and unlimited. Single-threaded.
 */
#ifndef NT_PROTO_ARENA_H
#define NT_PROTO_ARENA_H

#include <stddef.h>

#include "common/base/cleanup.h"

struct nt_arena_chunk;

struct nt_arena {
	struct nt_arena_chunk *chunk; /* the newest, used for allocation */
	size_t taken; /* bytes handed out */
	size_t limit; /* of taken; 0: none */
	size_t first; /* bytes of the first chunk; 0: a default */
	int refused; /* the last failure: -ENOBUFS, the limit; -ENOMEM */
};

/* Zeroed and aligned for any plain type. NULL at the limit or out of memory. */
void *nt_arena_alloc(struct nt_arena *arena, size_t size);

void nt_arena_release(struct nt_arena *arena);

#define nt_autoarena __attribute__((cleanup(nt_arena_release)))

#endif
