/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A hash table of the blocks of device memory that a process holds. Addresses, handles of physical
 * memory and mappings of these are different keys. A process may choose all values; the hash has a
 * seed of its own, so that it cannot make them collide.
 */
#ifndef NT_AGENT_HEAP_GPU_BLOCK_H
#define NT_AGENT_HEAP_GPU_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_GPU_BLOCKS = 1 << 15, /* of one process; further ones are not known */
};

enum nt_gpu_block_space {
	NT_GPU_BLOCK_NONE, /* of an empty place */
	NT_GPU_BLOCK_ADDRESS, /* memory at this address */
	NT_GPU_BLOCK_HANDLE, /* physical memory with this handle */
	NT_GPU_BLOCK_MAPPING, /* of a handle at this address */
};

struct nt_gpu_block {
	uint64_t key;
	uint64_t bytes;
	uint64_t handle; /* of a mapping */
	uint32_t handles; /* of a handle: releases until it is gone */
	uint32_t mappings; /* of a handle: the memory lives while there are any */
	uint64_t since_ns; /* boot time at which the call returned that made it */
	uint16_t site; /* index of the call site (agent/heap/gpu_heap.h) */
	uint8_t space; /* enum nt_gpu_block_space */
	uint8_t device; /* index there */
	bool is_managed;
	bool is_reused; /* the release of an earlier block with this key has not come yet */
};

struct nt_gpu_blocks {
	struct nt_gpu_block *block; /* owned */
	size_t room, count; /* room: a power of two, or 0 */
	uint64_t seed;
};

/* The block. NULL: it is not known. Valid until the next change. */
struct nt_gpu_block *nt_gpu_blocks_find(const struct nt_gpu_blocks *blocks,
					enum nt_gpu_block_space space, uint64_t key);
/* Adds a block that is not in the table. -ENOSPC: it is full; -ENOMEM. */
NT_MUST_CHECK int nt_gpu_blocks_add(struct nt_gpu_blocks *blocks, const struct nt_gpu_block *block);
void nt_gpu_blocks_remove(struct nt_gpu_blocks *blocks, struct nt_gpu_block *block);
/* Removes all and frees their memory. */
void nt_gpu_blocks_clear(struct nt_gpu_blocks *blocks);

#endif
