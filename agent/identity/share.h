/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The places of one table, shared out among owners (agent/identity/owner.h). While there is room, everybody
 * gets in, so that one owner alone can have the whole table. When it is full:
 *
 * - An entry that has called takes the place of one that has not: the oldest of the owner with the
 *   most such entries. Where all have called, it takes the place of the one that has not called for
 *   longest, of the owner with the most, if that has at least two more than its own. So each of k
 *   owners can have cap/k places for entries that call, whatever the others do.
 * - An entry that has not called takes the place of another such entry, if its owner has fewer of
 *   them; and of one that has called only for the first few of an owner (cap/64), and only where the
 *   other has at least two more entries than its own owner has.
 *
 * Whoever loses its place, or finds none, is left out and counted until it leaves or is let in.
 * One thread. Memory: an owner is known as long as it has entries or losses.
 */
#ifndef NT_AGENT_IDENTITY_SHARE_H
#define NT_AGENT_IDENTITY_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/identity/owner.h"
#include "common/base/cleanup.h"

struct nt_share_owner;

enum nt_share_state {
	NT_SHARE_AWAY, /* zeroed: the share does not know it */
	NT_SHARE_LEFT_OUT,
	NT_SHARE_IDLE, /* it has a place, and has not called */
	NT_SHARE_CALLED,
};

/* Part of what wants a place; borrowed by the share until nt_share_leave(). */
struct nt_share_entry {
	enum nt_share_state state;
	struct nt_share_owner *owner;
	struct nt_share_entry *prev, *next; /* of the owner and state, oldest first */
};

struct nt_share {
	uint32_t cap, count; /* entries with a place */
	struct nt_share_owner *owners; /* uthash, owned */
	uint64_t losses; /* so far: refused, evicted, missed */
};

void nt_share_init(struct nt_share *share, uint32_t cap);
/* Forgets all entries. */
void nt_share_release(struct nt_share *share);

/*
 * Wants a place for an entry that has none. *ret_victim is the entry that has lost its own for it,
 * or NULL. -ENOSPC: the entry is left out. -ENOMEM: it is away. owner NULL: nobody that is known.
 */
NT_MUST_CHECK int nt_share_enter(struct nt_share *share, const struct nt_owner *owner, bool called,
				 struct nt_share_entry *entry, struct nt_share_entry **ret_victim);
/*
 * The same for an entry that cannot be taken away again. Half of the places are anybody's; of the
 * third quarter an owner may have what it has less than cap/8 with, of the last what it has less than
 * cap/32 with: others find room, whatever a few owners do. -ENOSPC: it is away, and is counted.
 */
NT_MUST_CHECK int nt_share_enter_for_good(struct nt_share *share, const struct nt_owner *owner,
					  struct nt_share_entry *entry);
/* The entry, which has a place, has called (again). */
void nt_share_call(struct nt_share_entry *entry);
/* The entry, which has a place, loses it, as if another had taken it. */
void nt_share_evict(struct nt_share *share, struct nt_share_entry *entry);
/* It makes no more calls, and is the first to go. */
void nt_share_rest(struct nt_share_entry *entry);
/* The entry goes away, from whatever state. */
void nt_share_leave(struct nt_share *share, struct nt_share_entry *entry);
static inline bool nt_share_has_place(const struct nt_share_entry *entry)
{
	return entry->state >= NT_SHARE_IDLE;
}

/* So many things without an entry were left out. They are remembered until nt_share_forgive(). */
void nt_share_miss(struct nt_share *share, const struct nt_owner *owner, uint64_t count);
void nt_share_forgive(struct nt_share *share);

/* At least an eighth of the places is free. */
bool nt_share_has_room(const struct nt_share *share);

struct nt_share_report {
	uint64_t left_out; /* now, of all owners; 0: the cap is not reached */
	uint64_t left_out_most; /* of the owner with the most */
	char owner[NT_OWNER_NAME];
	uint32_t cap;
};

void nt_share_read(const struct nt_share *share, struct nt_share_report *ret_report);

#endif
