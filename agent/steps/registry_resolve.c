/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Communicators of NCCL that could not be read before the layout of their library was learned. */
#include "agent/steps/registry.h"

bool nt_registry_is_unresolved(const struct nt_communicator *comm)
{
	return (comm->key.library == NT_LIBRARY_NCCL || comm->key.library == NT_LIBRARY_RCCL) &&
	       comm->id_is_local && !comm->size;
}

/* Ranks in one process, which could not be told apart before. */
static bool is_other_rank(const struct nt_process *process, const struct nt_communicator *comm)
{
	for (const struct nt_communicator *other = process->comms; other; other = other->hh.next) {
		if (other != comm && other->id == comm->id && other->rank != comm->rank)
			return true;
	}
	return false;
}

/* Captured graphs and steps know a communicator by its ordinal, which stays. */
static bool resolve_one(struct nt_registry *registry, struct nt_process *process,
			const struct nt_communicator *old)
{
	const struct nt_communicator_key key = old->key;
	const uint64_t ordinal = old->ordinal, last_call_ns = old->last_call_ns;
	struct nt_rank *rank_of = old->rank_of;
	struct nt_comm_layout_comm found;
	struct nt_communicator *comm;

	if (nt_comm_layout_nccl(&registry->memory, process->pid, key.handle, process->nccl_file,
				nt_process_owner_id(process), &registry->learned, &found) < 0)
		return false;
	comm = nt_registry_add(registry, process, key.library, key.handle);
	if (!comm)
		return false;
	comm->ordinal = ordinal;
	comm->last_call_ns = last_call_ns;
	comm->epoch = nt_registry_epoch(registry);
	comm->id = found.hash;
	comm->rank = found.rank;
	comm->size = found.size;
	comm->from_unique_id = true;
	comm->rank_of = is_other_rank(process, comm) ? NULL : rank_of;
	return true;
}

uint32_t nt_registry_resolve(struct nt_registry *registry, struct nt_process *process)
{
	struct nt_communicator *comm, *next;
	uint32_t resolved = 0;

	HASH_ITER(hh, process->comms, comm, next)
	{
		if (nt_registry_is_unresolved(comm))
			resolved += resolve_one(registry, process, comm);
	}
	return resolved;
}
