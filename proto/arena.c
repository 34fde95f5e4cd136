/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/arena.h"

#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

enum {
	ARENA_CHUNK_BYTES = 4096,
	ARENA_CHUNK_MAX_BYTES = 1 << 20, /* chunks double up to here */
};

struct nt_arena_chunk {
	struct nt_arena_chunk *next;
	size_t used, size;
	alignas(max_align_t) unsigned char data[];
};

static int add_chunk(struct nt_arena *arena, size_t least)
{
	size_t size = arena->first ? arena->first : ARENA_CHUNK_BYTES;
	struct nt_arena_chunk *chunk;

	if (arena->chunk && arena->chunk->size * 2 > size)
		size = arena->chunk->size * 2;
	if (size > ARENA_CHUNK_MAX_BYTES)
		size = ARENA_CHUNK_MAX_BYTES;
	if (size < least)
		size = least;
	chunk = malloc(sizeof(*chunk) + size);
	if (!chunk)
		return -1;
	chunk->size = size;
	chunk->used = 0;
	chunk->next = arena->chunk;
	arena->chunk = chunk;
	return 0;
}

void *nt_arena_alloc(struct nt_arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	void *data;

	if (size > SIZE_MAX / 4) {
		arena->refused = -ENOMEM;
		return NULL;
	}
	size = (size + align - 1) & ~(align - 1);
	if (arena->limit && (size > arena->limit || arena->taken > arena->limit - size)) {
		arena->refused = -ENOBUFS;
		return NULL;
	}
	if (!arena->chunk || arena->chunk->size - arena->chunk->used < size)
		if (add_chunk(arena, size) < 0) {
			arena->refused = -ENOMEM;
			return NULL;
		}
	data = arena->chunk->data + arena->chunk->used;
	arena->chunk->used += size;
	arena->taken += size;
	memset(data, 0, size);
	return data;
}

void nt_arena_release(struct nt_arena *arena)
{
	while (arena->chunk) {
		struct nt_arena_chunk *next = arena->chunk->next;

		free(arena->chunk);
		arena->chunk = next;
	}
	arena->taken = 0;
}
