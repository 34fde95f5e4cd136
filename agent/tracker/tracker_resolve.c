/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Communicators of NCCL from before the agent whose layout is not known: read by what RAS states. */
#include "agent/tracker/tracker_impl.h"

enum {
	HANDLES = 8, /* searched in one process; each may take some milliseconds */
};

static bool has_unresolved(const struct nt_process *process)
{
	for (const struct nt_communicator *comm = process->comms; comm; comm = comm->hh.next) {
		if (nt_registry_is_unresolved(comm))
			return true;
	}
	return false;
}

/* The number of this node in the job. False: the environment does not state it. */
static bool node_of(const struct nt_environ *env, uint32_t rank, uint32_t *ret_node)
{
	if (env->local_size > 0)
		*ret_node = rank / (uint32_t)env->local_size;
	else if (env->slurm_nodeid >= 0)
		*ret_node = (uint32_t)env->slurm_nodeid;
	else
		return false;
	return true;
}

/* One with a known node is preferred, then the lower node. */
static bool is_before(const struct nt_ras_want *a, const struct nt_ras_want *b)
{
	if (a->has_node != b->has_node)
		return a->has_node;
	return a->node < b->node;
}

static size_t add_want(struct nt_ras_want *want, size_t wants, size_t max,
		       const struct nt_ras_want *more)
{
	for (size_t i = 0; i < wants; i++) {
		if (want[i].file != more->file || want[i].owner != more->owner)
			continue;
		if (is_before(more, &want[i]))
			want[i] = *more;
		return wants;
	}
	if (wants == max)
		return wants;
	want[wants] = *more;
	return wants + 1;
}

size_t nt_tracker_unresolved(const struct nt_tracker *tracker, struct nt_ras_want *ret_want,
			     size_t max)
{
	size_t wants = 0;

	for (const struct nt_process *process = tracker->processes; process;
	     process = process->hh.next) {
		const struct nt_identity_rank stated = nt_identity_rank(&process->facts.env);
		struct nt_ras_want want = {.pid = process->pid,
					   .start_ns = process->start_ns,
					   .file = process->nccl_file,
					   .owner = nt_process_owner_id(process)};

		if (!process->nccl_file || process->ended_ns || !has_unresolved(process) ||
		    nt_comm_layout_is_learned(&tracker->registry.learned, process->nccl_file,
					      nt_process_owner_id(process)))
			continue;
		want.has_node =
			stated.known && node_of(&process->facts.env, stated.rank, &want.node);
		wants = add_want(ret_want, wants, max, &want);
	}
	return wants;
}

static bool learn(struct nt_tracker *tracker, const struct nt_process *process,
		  const struct nt_ras_comm *stated, size_t count)
{
	struct nt_registry *registry = &tracker->registry;
	uint32_t searched = 0;

	for (const struct nt_communicator *comm = process->comms; comm && searched < HANDLES;
	     comm = comm->hh.next) {
		if (!nt_registry_is_unresolved(comm))
			continue;
		searched++;
		if (nt_comm_layout_learn_stated(&registry->memory, process->pid, comm->key.handle,
						process->nccl_file, nt_process_owner_id(process),
						stated, count, &registry->learned))
			return true;
	}
	return false;
}

bool nt_tracker_stated(struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
		       const struct nt_ras_comm *stated, size_t count)
{
	const struct nt_process *process = nt_tracker_process(tracker, pid);
	bool all = true;

	if (!process || process->start_ns != start_ns)
		return true;
	if (!nt_comm_layout_is_learned(&tracker->registry.learned, process->nccl_file,
				       nt_process_owner_id(process))) {
		if (!learn(tracker, process, stated, count))
			return false;
		tracker->stats.stated_layouts++;
	}
	for (struct nt_process *other = tracker->processes; other; other = other->hh.next) {
		if (other->nccl_file != process->nccl_file ||
		    nt_process_owner_id(other) != nt_process_owner_id(process))
			continue;
		tracker->stats.resolved_comms += nt_registry_resolve(&tracker->registry, other);
		all = all && !has_unresolved(other);
	}
	return all;
}
