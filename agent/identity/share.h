/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Shares the slots of one table among owners (agent/identity/owner.h). While slots are free, every
 * entry is admitted, so that one owner alone can fill the table. When it is full:
 *
 * - An entry that has called replaces the oldest of the owner with the most that have not called.
 *   If all have called, it replaces the least recently called one of the owner with the most
 *   entries. That owner must have at least two more than its own. So each of k owners can have
 *   cap/k slots for entries that call, whatever the others do.
 * - An entry that has not called replaces another such entry, if its owner has fewer of them. It
 *   replaces one that has called only for the first few of an owner (cap/64). The other's owner
 *   must then have at least two more entries.
 *
 * An entry that loses its slot, or gets none, is left out and counted until it leaves or is
 * admitted. Single-threaded. An owner is kept as long as it has entries or losses.
 */
#ifndef NT_AGENT_IDENTITY_SHARE_H
#define NT_AGENT_IDENTITY_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/identity/owner.h"
#include "common/base/cleanup.h"

struct nt_share_owner;

enum nt_share_state {
	NT_SHARE_AWAY, /* zeroed: not in the share */
	NT_SHARE_LEFT_OUT,
	NT_SHARE_IDLE, /* has a slot, and has not called */
	NT_SHARE_CALLED,
};

/* Embedded in what needs a slot; borrowed by the share until nt_share_leave(). */
struct nt_share_entry {
	enum nt_share_state state;
	struct nt_share_owner *owner;
	struct nt_share_entry *prev, *next; /* of the owner and state, oldest first */
};

struct nt_share {
	uint32_t cap, count; /* entries with a slot */
	struct nt_share_owner *owners; /* uthash, owned */
	uint64_t losses; /* total: refused, evicted, missed */
};

void nt_share_init(struct nt_share *share, uint32_t cap);
/* Removes all entries. */
void nt_share_release(struct nt_share *share);

/*
 * Requests a slot for an entry that has none. *ret_victim is the entry evicted for it, or NULL.
 * -ENOSPC: the entry is left out. -ENOMEM: it is away. owner NULL: unknown.
 */
NT_MUST_CHECK int nt_share_enter(struct nt_share *share, const struct nt_owner *owner, bool called,
				 struct nt_share_entry *entry, struct nt_share_entry **ret_victim);
/*
 * The same for an entry that is never evicted. Half of the slots are open to all. One of the third
 * quarter needs an owner with fewer than cap/8, one of the last fewer than cap/32. A few owners
 * thus cannot exhaust the table. -ENOSPC: the entry is away, and is counted.
 */
NT_MUST_CHECK int nt_share_enter_for_good(struct nt_share *share, const struct nt_owner *owner,
					  struct nt_share_entry *entry);
/* The entry, which has a slot, has called (again). */
void nt_share_call(struct nt_share_entry *entry);
/* Evicts the entry, which has a slot. */
void nt_share_evict(struct nt_share *share, struct nt_share_entry *entry);
/* The entry makes no more calls: it is evicted first. */
void nt_share_rest(struct nt_share_entry *entry);
/* Removes the entry, in any state. */
void nt_share_leave(struct nt_share *share, struct nt_share_entry *entry);
static inline bool nt_share_has_place(const struct nt_share_entry *entry)
{
	return entry->state >= NT_SHARE_IDLE;
}

/* Counts losses of things without an entry, kept until nt_share_forgive(). */
void nt_share_miss(struct nt_share *share, const struct nt_owner *owner, uint64_t count);
void nt_share_forgive(struct nt_share *share);

/* True if at least an eighth of the slots is free. */
bool nt_share_has_room(const struct nt_share *share);

struct nt_share_report {
	uint64_t left_out; /* now, of all owners; 0: the cap is not reached */
	uint64_t left_out_most; /* of the owner with the most */
	char owner[NT_OWNER_NAME];
	uint32_t cap;
};

void nt_share_read(const struct nt_share *share, struct nt_share_report *ret_report);

#endif
