/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The newest stacks of ranks, of all jobs, as their windows sent them. Of at most NT_RANK_STACKS ranks:
 * beyond that the oldest of the key with the most is replaced, so that no job takes the room of all.
 * They are not saved.
 */
#ifndef NT_ENGINE_STACKS_RANK_STACK_H
#define NT_ENGINE_STACKS_RANK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "proto/arena.h"
#include "proto/wire.h"

enum {
	NT_RANK_STACKS = 128,
	NT_RANK_STACK_THREADS = 4, /* of one rank; the main one is first */
	NT_RANK_STACK_FRAMES = 48, /* of one thread; the others are counted as left out */
	NT_RANK_STACK_FUNCTION = 128, /* bytes of a name */
	NT_RANK_STACK_FILE = 160,
};

/* A process of a key. */
struct nt_rank_stack_id {
	uint64_t key; /* hash of the bus key */
	uint64_t process; /* hash of node, pid and start */
};

struct nt_rank_stack {
	struct nt_rank_stack_id id;
	uint64_t real_ns; /* when it was read; 0: a free entry */
	struct nt_wire_stack *thread; /* in the arena */
	size_t threads;
	struct nt_arena arena;
};

struct nt_rank_stacks {
	struct nt_rank_stack entry[NT_RANK_STACKS];
	uint64_t taken, evicted; /* so far */
};

void nt_rank_stacks_release(struct nt_rank_stacks *stacks);

struct nt_rank_stack_id nt_rank_stack_id_of(const char *key, const char *node, uint32_t pid,
					    uint64_t start_boot_ns);

/* Takes the stacks of a window, if it has any. 1: taken; 0: none, or an older one. -ENOMEM. */
NT_MUST_CHECK int nt_rank_stacks_take(struct nt_rank_stacks *stacks,
				      const struct nt_message *message);

/* True if a rank of the key has one. */
bool nt_rank_stacks_has(const struct nt_rank_stacks *stacks, const char *key);
/* NULL: none. Valid until the next one is taken. */
const struct nt_rank_stack *nt_rank_stacks_find(const struct nt_rank_stacks *stacks,
						const struct nt_rank_stack_id *id);

/* A deep copy within the caps above. -ENOMEM. */
NT_MUST_CHECK int nt_rank_stack_copy(const struct nt_wire_stack *stack, struct nt_arena *arena,
				     struct nt_wire_stack *ret_copy);

#endif
