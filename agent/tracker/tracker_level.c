/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests of operators and aggregators for the ranks of this node. */
#include "agent/tracker/tracker_impl.h"

#include "control/level_table.h"

/* A rank without a key has sent no window yet: it can only be reached by its node. */
static uint32_t level_wanted(const struct nt_tracker *tracker, const struct nt_process *process,
			     const struct nt_level_table *table, uint64_t real_ns, uint32_t least)
{
	uint32_t highest = least;

	for (uint32_t i = 0; i < process->ranks; i++) {
		const struct nt_rank *rank = process->rank[i];
		const uint32_t level = nt_level_table_of(table, tracker->options.node, rank->key,
							 rank->rank, rank->known, real_ns);

		if (level > highest)
			highest = level;
	}
	return highest;
}

static void take_stacks(struct nt_process *process, const struct nt_level_table *table,
			uint64_t real_ns, const struct nt_tracker_requests *requests)
{
	for (uint32_t i = 0; i < process->ranks; i++) {
		struct nt_rank *rank = process->rank[i];
		const uint64_t id =
			rank->known ? nt_level_table_stack(table, rank->key, rank->rank, real_ns)
				    : 0;

		if (!id || id == rank->stack_id)
			continue;
		if (requests->stack(requests->data, process->pid, process->start_ns, id))
			rank->stack_id = id;
	}
}

static void take_profiles(struct nt_process *process, const struct nt_level_table *table,
			  uint64_t real_ns, const struct nt_tracker_requests *requests)
{
	for (uint32_t i = 0; i < process->ranks; i++) {
		struct nt_rank *rank = process->rank[i];
		const struct nt_level_entry *entry =
			rank->known ? nt_level_table_profile(table, rank->key, rank->rank, real_ns)
				    : NULL;

		if (!entry || entry->id == rank->profile_id)
			continue;
		rank->profile_id = entry->id;
		requests->profile(requests->data, process->pid, process->start_ns, entry->id,
				  &entry->profile);
	}
}

void nt_tracker_take_requests(struct nt_tracker *tracker, const struct nt_level_table *table,
			      uint64_t real_ns, const struct nt_tracker_requests *requests)
{
	struct nt_process *process, *next;

	HASH_ITER(hh, tracker->processes, process, next)
	{
		/* Those that only map a library may be a thousand, and make no calls. */
		const uint32_t level = process->ranks ? level_wanted(tracker, process, table,
								     real_ns, requests->least)
						      : 0;

		if (level != process->level)
			requests->changed(requests->data, process->pid, process->start_ns, level);
		if (requests->stack)
			take_stacks(process, table, real_ns, requests);
		if (requests->profile)
			take_profiles(process, table, real_ns, requests);
	}
}
