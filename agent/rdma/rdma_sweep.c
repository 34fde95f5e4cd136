/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What goes without being asked for: processes that have ended, of which discovery reports only those that
 * it had found, and their keys in the kernel's tables, whose events were lost.
 */
#include "agent/rdma/rdma_impl.h"

enum {
	PROCESSES_SWEPT = 32, /* a turn */
	KEYS_SWEPT = 64, /* of each table, a turn */
	LOOKS = 16, /* for one that has ended, when room is needed */
};

static bool is_idle(const struct nt_rdma_process *process)
{
	return !process->is_rank && !process->level;
}

static bool has_ended(const struct nt_rdma *rdma, uint32_t pid)
{
	return !rdma->hooks.exists(rdma->hooks.data, pid);
}

/* NULL: there is no idle process. */
static const struct nt_rdma_owner *owner_of_most(struct nt_rdma *rdma)
{
	const struct nt_rdma_owner *most = NULL;

	for (struct nt_rdma_owner *o = rdma->owner; o; o = o->hh.next)
		o->idle = 0;
	for (const struct nt_rdma_process *p = rdma->process; p; p = p->hh.next)
		p->owner->idle += is_idle(p);
	for (const struct nt_rdma_owner *o = rdma->owner; o; o = o->hh.next)
		if (o->idle > (most ? most->idle : 0))
			most = o;
	return most;
}

bool nt_rdma_make_room(struct nt_rdma *rdma)
{
	const struct nt_rdma_owner *owner = owner_of_most(rdma);
	struct nt_rdma_process *oldest = NULL;
	int looks = 0;

	for (struct nt_rdma_process *p = rdma->process; p && looks < LOOKS; p = p->hh.next) {
		if (p->owner != owner || !is_idle(p))
			continue;
		looks++;
		if (!oldest)
			oldest = p;
		if (has_ended(rdma, p->pid)) {
			oldest = p;
			break;
		}
	}
	if (oldest)
		nt_rdma_free_process(rdma, oldest);
	return oldest != NULL;
}

static void sweep_processes(struct nt_rdma *rdma)
{
	struct nt_rdma_process *p = rdma->swept ? rdma->swept : rdma->process, *next;

	for (int i = 0; p && i < PROCESSES_SWEPT; i++, p = next) {
		next = p->hh.next;
		if (is_idle(p) && has_ended(rdma, p->pid))
			nt_rdma_free_process(rdma, p);
	}
	rdma->swept = p;
}

/* Those of a process that is not known and runs are kept: its event may not be read yet. */
static void sweep_keys(struct nt_rdma *rdma, enum nt_rdma_table table)
{
	struct nt_rdma_key at, next = rdma->walk[table].key;
	bool has_next =
		rdma->walk[table].has_key || rdma->hooks.next(rdma->hooks.data, table, NULL, &next);

	for (int i = 0; has_next && i < KEYS_SWEPT; i++) {
		at = next;
		has_next = rdma->hooks.next(rdma->hooks.data, table, &at, &next);
		if (!nt_rdma_find_process(rdma, at.pid) && has_ended(rdma, at.pid))
			(void)rdma->hooks.forget(rdma->hooks.data, &at, false);
	}
	rdma->walk[table].has_key = has_next;
	rdma->walk[table].key = next;
}

void nt_rdma_sweep(struct nt_rdma *rdma)
{
	sweep_processes(rdma);
	for (enum nt_rdma_table table = 0; table < NT_RDMA_TABLES; table++)
		sweep_keys(rdma, table);
}
