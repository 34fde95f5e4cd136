/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Out of memory is handled here; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>
#include <utlist.h>

enum {
	FLOOR_PART = 64, /* of the cap: entries of an owner before they call */
	ROOM_PART = 8,
	OWNERS_EXTRA = 64, /* with losses and without entries */
};

struct nt_share_owner {
	uint64_t id;
	char name[NT_OWNER_NAME];
	struct nt_share_entry *list[NT_SHARE_CALLED + 1];
	uint32_t count[NT_SHARE_CALLED + 1];
	uint64_t missed;
	bool is_lost;
	UT_hash_handle hh;
};

static const struct nt_owner unknown_owner = {.id = 1, .name = "unknown"};

void nt_share_init(struct nt_share *share, uint32_t cap)
{
	*share = (struct nt_share){.cap = cap};
}

void nt_share_release(struct nt_share *share)
{
	struct nt_share_owner *owner, *next;

	HASH_ITER(hh, share->owners, owner, next)
	{
		HASH_DEL(share->owners, owner);
		free(owner);
	}
	share->count = 0;
}

/* ---- owners --------------------------------------------------------------------------------- */

static struct nt_share_owner *find_owner(struct nt_share *share, const struct nt_owner *who)
{
	struct nt_share_owner *owner = NULL;

	HASH_FIND(hh, share->owners, &who->id, sizeof(who->id), owner);
	if (owner)
		return owner;
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	owner->id = who->id;
	memcpy(owner->name, who->name, sizeof(owner->name));
	HASH_ADD(hh, share->owners, id, sizeof(owner->id), owner);
	if (owner->is_lost) {
		free(owner);
		return NULL;
	}
	return owner;
}

static uint32_t places(const struct nt_share_owner *owner)
{
	return owner->count[NT_SHARE_IDLE] + owner->count[NT_SHARE_CALLED];
}

static void forget_unused(struct nt_share *share, struct nt_share_owner *owner)
{
	if (places(owner) || owner->count[NT_SHARE_LEFT_OUT] || owner->missed)
		return;
	HASH_DEL(share->owners, owner);
	free(owner);
}

/* The owner with the most entries in that state; on a tie, the larger id. */
static struct nt_share_owner *most_of(const struct nt_share *share, enum nt_share_state state)
{
	struct nt_share_owner *most = NULL;

	for (struct nt_share_owner *owner = share->owners; owner; owner = owner->hh.next) {
		if (!owner->count[state])
			continue;
		if (!most || owner->count[state] > most->count[state] ||
		    (owner->count[state] == most->count[state] && owner->id > most->id))
			most = owner;
	}
	return most;
}

/* ---- entries -------------------------------------------------------------------------------- */

static void unlink_entry(struct nt_share *share, struct nt_share_entry *entry)
{
	if (entry->state == NT_SHARE_AWAY)
		return;
	DL_DELETE(entry->owner->list[entry->state], entry);
	entry->owner->count[entry->state]--;
	share->count -= nt_share_has_place(entry);
	entry->state = NT_SHARE_AWAY;
}

static void link_entry(struct nt_share *share, struct nt_share_owner *owner,
		       enum nt_share_state state, struct nt_share_entry *entry)
{
	entry->owner = owner;
	entry->state = state;
	DL_APPEND(owner->list[state], entry);
	owner->count[state]++;
	share->count += nt_share_has_place(entry);
}

static struct nt_share_entry *victim_for_call(const struct nt_share *share,
					      const struct nt_share_owner *owner)
{
	const struct nt_share_owner *most = most_of(share, NT_SHARE_IDLE);

	if (most)
		return most->list[NT_SHARE_IDLE];
	most = most_of(share, NT_SHARE_CALLED);
	if (!most || most->count[NT_SHARE_CALLED] < owner->count[NT_SHARE_CALLED] + 2)
		return NULL;
	return most->list[NT_SHARE_CALLED];
}

static struct nt_share_entry *victim_for_idle(const struct nt_share *share,
					      const struct nt_share_owner *owner)
{
	const struct nt_share_owner *most = most_of(share, NT_SHARE_IDLE);

	if (most && most->count[NT_SHARE_IDLE] > owner->count[NT_SHARE_IDLE])
		return most->list[NT_SHARE_IDLE];
	most = most_of(share, NT_SHARE_CALLED);
	if (!most || owner->count[NT_SHARE_IDLE] > share->cap / FLOOR_PART ||
	    most->count[NT_SHARE_CALLED] < places(owner) + 2)
		return NULL;
	return most->list[NT_SHARE_CALLED];
}

int nt_share_enter(struct nt_share *share, const struct nt_owner *who, bool called,
		   struct nt_share_entry *entry, struct nt_share_entry **ret_victim)
{
	struct nt_share_owner *owner = find_owner(share, who && who->id ? who : &unknown_owner);
	struct nt_share_entry *victim = NULL;
	bool was_left_out = entry->state == NT_SHARE_LEFT_OUT;
	struct nt_share_owner *before = was_left_out ? entry->owner : NULL;

	*ret_victim = NULL;
	unlink_entry(share, entry);
	if (before && before != owner)
		forget_unused(share, before);
	if (!owner)
		return -ENOMEM;
	if (share->count >= share->cap) {
		victim = called ? victim_for_call(share, owner) : victim_for_idle(share, owner);
		share->losses += victim || !was_left_out;
		if (!victim) {
			link_entry(share, owner, NT_SHARE_LEFT_OUT, entry);
			return -ENOSPC;
		}
		unlink_entry(share, victim);
		link_entry(share, victim->owner, NT_SHARE_LEFT_OUT, victim);
	}
	link_entry(share, owner, called ? NT_SHARE_CALLED : NT_SHARE_IDLE, entry);
	*ret_victim = victim;
	return 0;
}

/* The number of slots for an owner that requests one more. */
static uint32_t part_of(const struct nt_share *share)
{
	if (share->count < share->cap / 2)
		return share->cap;
	return share->count < share->cap - share->cap / 4 ? share->cap / 8 : share->cap / 32;
}

int nt_share_enter_for_good(struct nt_share *share, const struct nt_owner *who,
			    struct nt_share_entry *entry)
{
	struct nt_share_owner *owner = find_owner(share, who && who->id ? who : &unknown_owner);

	if (!owner)
		return -ENOMEM;
	if (share->count >= share->cap || places(owner) >= part_of(share)) {
		forget_unused(share, owner);
		nt_share_miss(share, who, 1);
		return -ENOSPC;
	}
	link_entry(share, owner, NT_SHARE_CALLED, entry);
	return 0;
}

static void move_entry(struct nt_share_entry *entry, enum nt_share_state state)
{
	struct nt_share_owner *owner = entry->owner;

	DL_DELETE(owner->list[entry->state], entry);
	owner->count[entry->state]--;
	entry->state = state;
	DL_APPEND(owner->list[state], entry);
	owner->count[state]++;
}

void nt_share_call(struct nt_share_entry *entry)
{
	/* Most calls come from the most recent caller. */
	if (nt_share_has_place(entry) && (entry->state == NT_SHARE_IDLE || entry->next))
		move_entry(entry, NT_SHARE_CALLED);
}

void nt_share_rest(struct nt_share_entry *entry)
{
	if (entry->state == NT_SHARE_CALLED)
		move_entry(entry, NT_SHARE_IDLE);
}

void nt_share_evict(struct nt_share *share, struct nt_share_entry *entry)
{
	struct nt_share_owner *owner = entry->owner;

	unlink_entry(share, entry);
	link_entry(share, owner, NT_SHARE_LEFT_OUT, entry);
	share->losses++;
}

void nt_share_leave(struct nt_share *share, struct nt_share_entry *entry)
{
	struct nt_share_owner *owner = entry->owner;

	if (entry->state == NT_SHARE_AWAY)
		return;
	unlink_entry(share, entry);
	entry->owner = NULL;
	forget_unused(share, owner);
}

/* ---- losses --------------------------------------------------------------------------------- */

void nt_share_miss(struct nt_share *share, const struct nt_owner *who, uint64_t count)
{
	struct nt_share_owner *owner = NULL;

	share->losses += count;
	/* Owners with losses only are not limited otherwise. */
	if (HASH_COUNT(share->owners) >= share->cap + OWNERS_EXTRA)
		who = &unknown_owner;
	owner = find_owner(share, who && who->id ? who : &unknown_owner);
	if (owner)
		owner->missed += count;
}

void nt_share_forgive(struct nt_share *share)
{
	struct nt_share_owner *owner, *next;

	HASH_ITER(hh, share->owners, owner, next)
	{
		owner->missed = 0;
		forget_unused(share, owner);
	}
}

bool nt_share_has_room(const struct nt_share *share)
{
	return share->count <= share->cap - share->cap / ROOM_PART;
}

void nt_share_read(const struct nt_share *share, struct nt_share_report *ret_report)
{
	struct nt_share_report report = {.cap = share->cap};
	uint64_t most_id = 0;

	for (const struct nt_share_owner *owner = share->owners; owner; owner = owner->hh.next) {
		uint64_t left_out = owner->count[NT_SHARE_LEFT_OUT] + owner->missed;

		report.left_out += left_out;
		if (left_out < report.left_out_most || !left_out ||
		    (left_out == report.left_out_most && owner->id < most_id))
			continue;
		report.left_out_most = left_out;
		most_id = owner->id;
		memcpy(report.owner, owner->name, sizeof(report.owner));
	}
	*ret_report = report;
}
