/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What waits for the thread that makes and frees links (agent/probes/linker.h), in the order of service: what
 * is to be freed first, as it relieves a process; then what is to be made, in turns of the owners of the
 * processes, so that nobody waits for all that another asks for; then looks, but one in NT_LINK_QUEUE_LOOK.
 *
 * One thread at a time.
 */
#ifndef NT_AGENT_PROBES_LINK_QUEUE_H
#define NT_AGENT_PROBES_LINK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_LINK_QUEUE_MAX = 4096, /* to be made, and as many looks */
	NT_LINK_QUEUE_OF_OWNER = NT_LINK_QUEUE_MAX / 8,
	NT_LINK_QUEUE_LOOK = 32, /* after so many others a look has its turn */
};

enum nt_link_job {
	NT_LINK_FREE, /* without a cap: there are no more than were made */
	NT_LINK_MAKE,
	NT_LINK_LOOK,
	NT_LINK_JOBS,
};

/* Part of what waits; borrowed until it is popped. */
struct nt_link_entry {
	struct nt_link_entry *next;
};

struct nt_link_list {
	struct nt_link_entry *first, **last;
	size_t count;
};

struct nt_link_owner;

/* The owners that wait for something. */
struct nt_link_turns {
	struct nt_link_owner *table; /* uthash, owned */
	struct nt_link_owner *first; /* in the order of their turns */
	size_t count; /* entries of all */
};

/* Zeroed: empty. */
struct nt_link_queue {
	struct nt_link_list free;
	struct nt_link_turns turns[NT_LINK_JOBS]; /* of what is made, and looks */
	unsigned int since_look;
};

void nt_link_list_push(struct nt_link_list *list, struct nt_link_entry *entry);
struct nt_link_entry *nt_link_list_pop(struct nt_link_list *list);

bool nt_link_queue_has_room(const struct nt_link_queue *queue, enum nt_link_job job,
			    uint64_t owner);
/* -EAGAIN: there is no room for this owner; -ENOMEM. What is to be freed always finds room. */
int nt_link_queue_push(struct nt_link_queue *queue, enum nt_link_job job, uint64_t owner,
		       struct nt_link_entry *entry);
/* NULL: nothing waits, and nothing is left to be released. */
struct nt_link_entry *nt_link_queue_pop(struct nt_link_queue *queue);

#endif
