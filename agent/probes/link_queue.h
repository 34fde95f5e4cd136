/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The queue of the thread that makes and frees links (agent/probes/linker.h), in order of service:
 * 1. Links to free and to make, round-robin among the owners of the processes, so that no owner
 *    delays another. Those of one owner that are to be freed come first, since that relieves a
 *    process.
 * 2. Looks; but one entry in NT_LINK_QUEUE_LOOK is a look.
 *
 * Not thread-safe.
 */
#ifndef NT_AGENT_PROBES_LINK_QUEUE_H
#define NT_AGENT_PROBES_LINK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_LINK_QUEUE_MAX = 4096, /* entries to make, and as many looks */
	NT_LINK_QUEUE_OF_OWNER = NT_LINK_QUEUE_MAX / 8,
	NT_LINK_QUEUE_LOOK = 32, /* one look after this many other entries */
};

enum nt_link_job {
	NT_LINK_FREE, /* no cap: at most as many as were made */
	NT_LINK_MAKE,
	NT_LINK_LOOK,
	NT_LINK_JOBS,
};

/* Embedded in a queued object; borrowed until it is popped. */
struct nt_link_entry {
	struct nt_link_entry *next;
};

struct nt_link_list {
	struct nt_link_entry *first, **last;
	size_t count;
};

struct nt_link_owner;

/* The owners with queued entries. */
struct nt_link_turns {
	struct nt_link_owner *table; /* uthash, owned */
	struct nt_link_owner *first; /* in round-robin order */
};

/* Zeroed: empty. */
struct nt_link_queue {
	struct nt_link_turns work, looks; /* work: FREE and MAKE */
	struct nt_link_list unowned; /* FREE without memory for its owner: served first */
	size_t count[NT_LINK_JOBS]; /* entries with an owner */
	unsigned int since_look;
};

void nt_link_list_push(struct nt_link_list *list, struct nt_link_entry *entry);
struct nt_link_entry *nt_link_list_pop(struct nt_link_list *list);

bool nt_link_queue_has_room(const struct nt_link_queue *queue, enum nt_link_job job,
			    uint64_t owner);
/*
 * -EAGAIN: the owner or the queue is at its cap; -ENOMEM. FREE is never refused.
 */
int nt_link_queue_push(struct nt_link_queue *queue, enum nt_link_job job, uint64_t owner,
		       struct nt_link_entry *entry);
/* NULL: the queue is empty, and owns no memory. */
struct nt_link_entry *nt_link_queue_pop(struct nt_link_queue *queue);

#endif
