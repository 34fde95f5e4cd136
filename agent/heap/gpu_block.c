/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Open addressing with linear probing; a removal moves later blocks of the run back. */
#include "agent/heap/gpu_block.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/hash.h"

enum {
	ROOM_FIRST = 64,
	LOAD_PART = 2, /* at most a half is filled */
};

static size_t home_of(const struct nt_gpu_blocks *blocks, unsigned int space, uint64_t key)
{
	return nt_hash_mix(nt_hash_mix(key ^ blocks->seed) + space) & (blocks->room - 1);
}

/* The place of the key, or the empty one where it would be. */
static size_t place_of(const struct nt_gpu_blocks *blocks, unsigned int space, uint64_t key)
{
	size_t at = home_of(blocks, space, key);

	while (blocks->block[at].space != NT_GPU_BLOCK_NONE &&
	       (blocks->block[at].key != key || blocks->block[at].space != space))
		at = (at + 1) & (blocks->room - 1);
	return at;
}

struct nt_gpu_block *nt_gpu_blocks_find(const struct nt_gpu_blocks *blocks,
					enum nt_gpu_block_space space, uint64_t key)
{
	struct nt_gpu_block *block;

	if (!blocks->count)
		return NULL;
	block = &blocks->block[place_of(blocks, space, key)];
	return block->space == NT_GPU_BLOCK_NONE ? NULL : block;
}

static int grow(struct nt_gpu_blocks *blocks)
{
	struct nt_gpu_blocks grown = {
		.room = blocks->room ? 2 * blocks->room : ROOM_FIRST,
		.count = blocks->count,
		.seed = blocks->seed,
	};

	grown.block = calloc(grown.room, sizeof(*grown.block));
	if (!grown.block)
		return -ENOMEM;
	for (size_t i = 0; i < blocks->room; i++) {
		const struct nt_gpu_block *block = &blocks->block[i];

		if (block->space != NT_GPU_BLOCK_NONE)
			grown.block[place_of(&grown, block->space, block->key)] = *block;
	}
	free(blocks->block);
	*blocks = grown;
	return 0;
}

int nt_gpu_blocks_add(struct nt_gpu_blocks *blocks, const struct nt_gpu_block *block)
{
	int r;

	if (blocks->count >= NT_GPU_BLOCKS)
		return -ENOSPC;
	if ((blocks->count + 1) * LOAD_PART > blocks->room) {
		r = grow(blocks);
		if (r < 0)
			return r;
	}
	blocks->block[place_of(blocks, block->space, block->key)] = *block;
	blocks->count++;
	return 0;
}

void nt_gpu_blocks_remove(struct nt_gpu_blocks *blocks, struct nt_gpu_block *block)
{
	const size_t mask = blocks->room - 1;
	size_t hole = (size_t)(block - blocks->block);

	for (size_t at = (hole + 1) & mask; blocks->block[at].space != NT_GPU_BLOCK_NONE;
	     at = (at + 1) & mask) {
		const size_t home = home_of(blocks, blocks->block[at].space, blocks->block[at].key);

		/* It may fill the hole if its home is not behind that. */
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		blocks->block[hole] = blocks->block[at];
		hole = at;
	}
	blocks->block[hole] = (struct nt_gpu_block){0};
	blocks->count--;
}

void nt_gpu_blocks_clear(struct nt_gpu_blocks *blocks)
{
	free(blocks->block);
	*blocks = (struct nt_gpu_blocks){.seed = blocks->seed};
}
