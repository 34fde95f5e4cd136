/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Selects the processes to drop when the agent's memory is short. */
#include <stdlib.h>

#include "agent/tracker/tracker_impl.h"

enum {
	OWNERS_LEAST = 4, /* an owner's share is at most a quarter */
};

struct load {
	struct nt_process *process;
	uint64_t owner;
	size_t bytes;
};

static size_t bytes_of(const struct nt_process *process)
{
	size_t bytes = sizeof(*process) + process->held_bytes;

	for (const struct nt_communicator *comm = process->comms; comm; comm = comm->hh.next)
		bytes += nt_communicator_bytes(comm);
	for (const struct nt_communicator *comm = process->ended; comm; comm = comm->next_ended)
		bytes += nt_communicator_bytes(comm);
	for (uint32_t i = 0; i < process->ranks; i++)
		bytes += nt_rank_bytes(process->rank[i]);
	if (process->gpu_records)
		bytes += nt_gpu_records_bytes();
	if (process->gemm_spans)
		bytes += nt_gemm_spans_bytes(process->gemm_spans);
	if (process->heap)
		bytes += nt_gpu_heap_bytes(process->heap);
	return bytes + (process->graph ? nt_graph_bytes(process->graph) : 0);
}

/* By owner, and within an owner the largest first. */
static int in_order(const void *a, const void *b)
{
	const struct load *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static size_t count_owners(const struct load *load, size_t count)
{
	size_t owners = 0;

	for (size_t i = 0; i < count; i++)
		owners += !i || load[i].owner != load[i - 1].owner;
	return owners;
}

/*
 * The largest process of the owner whose processes take the most; dropped ones have no bytes. NULL:
 * no owner exceeds its share.
 */
static struct load *largest(struct load *load, size_t count, size_t share)
{
	struct load *found = NULL;
	size_t most = share;

	for (size_t begin = 0, end; begin < count; begin = end) {
		struct load *first = NULL;
		size_t sum = 0;

		for (end = begin; end < count && load[end].owner == load[begin].owner; end++) {
			sum += load[end].bytes;
			if (!first && load[end].bytes)
				first = &load[end];
		}
		if (sum > most) {
			most = sum;
			found = first;
		}
	}
	return found;
}

uint32_t nt_tracker_give_back(struct nt_tracker *tracker, size_t bytes, size_t limit)
{
	static struct load load[NT_TRACKER_PROCESSES]; /* no memory can be allocated */
	size_t count = 0, freed = 0, owners;
	uint32_t given_up = 0;

	for (struct nt_process *p = tracker->processes; p && count < NT_TRACKER_PROCESSES;
	     p = p->hh.next)
		load[count++] = (struct load){
			.process = p,
			.owner = p->owner ? p->owner->id : 0,
			.bytes = bytes_of(p),
		};
	qsort(load, count, sizeof(load[0]), in_order);
	owners = count_owners(load, count);
	if (owners < OWNERS_LEAST)
		owners = OWNERS_LEAST;
	while (freed < bytes) {
		struct load *next = largest(load, count, limit / owners);

		if (!next)
			break;
		freed += next->bytes;
		next->bytes = 0;
		nt_tracker_give_up(tracker, next->process);
		given_up++;
	}
	tracker->stats.memory_given_up += given_up;
	return given_up;
}
