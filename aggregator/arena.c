/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks in a list, newest first. Each is at least twice as large as a small request needs. */
#include "aggregator/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	ARENA_BLOCK_MIN = 4096,
	ARENA_BLOCK_MAX = 1 << 20, /* growth ends here; a larger request gets its own block */
};

struct block {
	struct block *next;
	size_t size, used;
	_Alignas(max_align_t) unsigned char data[];
};

struct nt_arena {
	struct block *block;
	size_t next_size;
};

int nt_arena_new(struct nt_arena **ret_arena)
{
	struct nt_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return -ENOMEM;
	arena->next_size = ARENA_BLOCK_MIN;
	*ret_arena = arena;
	return 0;
}

static void free_blocks(struct block *block)
{
	while (block) {
		struct block *next = block->next;

		free(block);
		block = next;
	}
}

void nt_arena_free(struct nt_arena *arena)
{
	if (!arena)
		return;
	free_blocks(arena->block);
	free(arena);
}

static struct block *add_block(struct nt_arena *arena, size_t bytes)
{
	size_t size = bytes > arena->next_size ? bytes : arena->next_size;
	struct block *block;

	if (size > SIZE_MAX - sizeof(*block))
		return NULL;
	block = malloc(sizeof(*block) + size);
	if (!block)
		return NULL;
	block->size = size;
	block->used = 0;
	block->next = arena->block;
	arena->block = block;
	if (arena->next_size < ARENA_BLOCK_MAX)
		arena->next_size *= 2;
	return block;
}

void *nt_arena_alloc(struct nt_arena *arena, size_t count, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	struct block *block = arena->block;
	size_t bytes;
	void *piece;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	bytes = bytes ? (bytes + align - 1) / align * align : align;
	if (!block || block->size - block->used < bytes)
		block = add_block(arena, bytes);
	if (!block)
		return NULL;
	piece = block->data + block->used;
	block->used += bytes;
	memset(piece, 0, bytes);
	return piece;
}

const char *nt_arena_text(struct nt_arena *arena, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 1;
	char *copy = nt_arena_alloc(arena, size, 1);

	if (copy && text)
		memcpy(copy, text, size);
	return copy;
}

const char *nt_arena_printf(struct nt_arena *arena, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	text = nt_arena_alloc(arena, (size_t)n + 1, 1);
	if (!text)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return text;
}

void nt_arena_reset(struct nt_arena *arena)
{
	struct block *keep = arena->block;

	if (!keep)
		return;
	/* The newest is the largest of the growing ones; a lone giant is not worth keeping. */
	free_blocks(keep->next);
	keep->next = NULL;
	keep->used = 0;
	if (keep->size > 4 * ARENA_BLOCK_MAX) {
		free(keep);
		arena->block = NULL;
	}
}
