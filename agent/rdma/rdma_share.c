/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the table of queue pairs is divided among owners. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)

#include <stdlib.h>

#include "agent/rdma/rdma_impl.h"

enum {
	LEAST = 16, /* queue pairs of one process, however many there are */
};

/* One part is left for an owner that comes later. */
static size_t share_of_owner(const struct nt_rdma *rdma)
{
	return NT_RDMA_QPS / (HASH_COUNT(rdma->owner) + 1);
}

bool nt_rdma_share_join(struct nt_rdma *rdma, struct nt_rdma_process *process)
{
	const uint64_t id = rdma->hooks.owner(rdma->hooks.data, process->pid);
	struct nt_rdma_owner *owner = NULL;

	if (!id && !rdma->hooks.exists(rdma->hooks.data, process->pid))
		return false;
	HASH_FIND(hh, rdma->owner, &id, sizeof(id), owner);
	if (!owner) {
		owner = calloc(1, sizeof(*owner));
		if (!owner)
			return false;
		owner->id = id;
		HASH_ADD(hh, rdma->owner, id, sizeof(owner->id), owner);
		if (owner->is_lost) {
			free(owner);
			return false;
		}
	}
	owner->processes++;
	process->owner = owner;
	return true;
}

void nt_rdma_share_leave(struct nt_rdma *rdma, struct nt_rdma_process *process)
{
	struct nt_rdma_owner *owner = process->owner;

	process->owner = NULL;
	if (--owner->processes)
		return;
	HASH_DEL(rdma->owner, owner);
	free(owner);
}

static struct nt_rdma_process *most_of(const struct nt_rdma *rdma,
				       const struct nt_rdma_owner *owner)
{
	struct nt_rdma_process *most = NULL;

	for (struct nt_rdma_process *p = rdma->process; p; p = p->hh.next)
		if (p->owner == owner &&
		    (!most || HASH_COUNT(p->pairs.table) > HASH_COUNT(most->pairs.table)))
			most = p;
	return most;
}

/* The newest one of the process with most, of the owner with most. */
static bool evict(struct nt_rdma *rdma)
{
	const struct nt_rdma_owner *owner = rdma->owner;
	struct nt_queue_pair *pair;
	struct nt_rdma_process *process;

	for (const struct nt_rdma_owner *o = rdma->owner; o; o = o->hh.next)
		if (o->pairs > owner->pairs)
			owner = o;
	if (!owner || owner->pairs <= share_of_owner(rdma))
		return false;
	process = most_of(rdma, owner);
	if (!process || !process->pairs.table)
		return false;
	pair = ELMT_FROM_HH(process->pairs.table->hh.tbl, process->pairs.table->hh.tbl->tail);
	process->pairs.over_cap++;
	nt_rdma_forget_pair(rdma, process, pair);
	return true;
}

bool nt_rdma_share_admit(struct nt_rdma *rdma, const struct nt_rdma_process *process)
{
	if (rdma->pairs < NT_RDMA_QPS / 2)
		return true;
	if (process->owner->pairs >= share_of_owner(rdma))
		return false;
	return rdma->pairs < NT_RDMA_QPS || evict(rdma);
}

uint32_t nt_rdma_share_of(const struct nt_rdma *rdma, const struct nt_rdma_process *process)
{
	const size_t share = share_of_owner(rdma) / process->owner->processes;

	if (share < LEAST)
		return LEAST;
	return share < NT_QUEUE_PAIRS ? (uint32_t)share : NT_QUEUE_PAIRS;
}

void nt_rdma_watch_process(struct nt_rdma *rdma, struct nt_rdma_process *process)
{
	process->is_watched = true;
	process->watch.pairs_max = nt_rdma_share_of(rdma, process);
	rdma->hooks.watch(rdma->hooks.data, process->pid, &process->watch);
}
