/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/link_queue.h"

#include <errno.h>
#include <stdlib.h>

/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>
#include <utlist.h>

struct nt_link_owner {
	uint64_t id;
	struct nt_link_list list[NT_LINK_JOBS];
	bool is_lost;
	struct nt_link_owner *prev, *next;
	UT_hash_handle hh;
};

void nt_link_list_push(struct nt_link_list *list, struct nt_link_entry *entry)
{
	if (!list->first)
		list->last = &list->first;
	entry->next = NULL;
	*list->last = entry;
	list->last = &entry->next;
	list->count++;
}

struct nt_link_entry *nt_link_list_pop(struct nt_link_list *list)
{
	struct nt_link_entry *entry = list->first;

	if (!entry)
		return NULL;
	list->first = entry->next;
	list->count--;
	return entry;
}

static struct nt_link_owner *find_owner(const struct nt_link_turns *turns, uint64_t id)
{
	struct nt_link_owner *owner = NULL;

	HASH_FIND(hh, turns->table, &id, sizeof(id), owner);
	return owner;
}

static struct nt_link_owner *add_owner(struct nt_link_turns *turns, uint64_t id)
{
	struct nt_link_owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return NULL;
	owner->id = id;
	HASH_ADD(hh, turns->table, id, sizeof(owner->id), owner);
	if (owner->is_lost) {
		free(owner);
		return NULL;
	}
	DL_APPEND(turns->first, owner);
	return owner;
}

/* Of the owner whose turn it is; what is to be freed comes first. */
static struct nt_link_entry *pop_turn(struct nt_link_queue *queue, struct nt_link_turns *turns)
{
	struct nt_link_owner *owner = turns->first;
	struct nt_link_entry *entry = NULL;
	size_t left = 0;

	if (!owner)
		return NULL;
	for (int job = 0; job < NT_LINK_JOBS; job++) {
		if (!entry) {
			entry = nt_link_list_pop(&owner->list[job]);
			queue->count[job] -= entry != NULL;
		}
		left += owner->list[job].count;
	}
	DL_DELETE(turns->first, owner);
	if (left) {
		DL_APPEND(turns->first, owner);
		return entry;
	}
	HASH_DEL(turns->table, owner);
	free(owner);
	return entry;
}

static const struct nt_link_turns *turns_of(const struct nt_link_queue *queue, enum nt_link_job job)
{
	return job == NT_LINK_LOOK ? &queue->looks : &queue->work;
}

bool nt_link_queue_has_room(const struct nt_link_queue *queue, enum nt_link_job job, uint64_t owner)
{
	const struct nt_link_owner *known = find_owner(turns_of(queue, job), owner);

	return job == NT_LINK_FREE || (queue->count[job] < NT_LINK_QUEUE_MAX &&
				       (!known || known->list[job].count < NT_LINK_QUEUE_OF_OWNER));
}

int nt_link_queue_push(struct nt_link_queue *queue, enum nt_link_job job, uint64_t owner,
		       struct nt_link_entry *entry)
{
	struct nt_link_turns *turns = job == NT_LINK_LOOK ? &queue->looks : &queue->work;
	struct nt_link_owner *known;

	if (!nt_link_queue_has_room(queue, job, owner))
		return -EAGAIN;
	known = find_owner(turns, owner);
	if (!known)
		known = add_owner(turns, owner);
	if (!known && job == NT_LINK_FREE) {
		nt_link_list_push(&queue->unowned, entry);
		return 0;
	}
	if (!known)
		return -ENOMEM;
	nt_link_list_push(&known->list[job], entry);
	queue->count[job]++;
	return 0;
}

struct nt_link_entry *nt_link_queue_pop(struct nt_link_queue *queue)
{
	if (queue->unowned.first)
		return nt_link_list_pop(&queue->unowned);
	if (queue->work.first && (!queue->looks.first || queue->since_look < NT_LINK_QUEUE_LOOK)) {
		queue->since_look++;
		return pop_turn(queue, &queue->work);
	}
	queue->since_look = 0;
	return pop_turn(queue, &queue->looks);
}
