/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Watched processes: which have a slot, what is known of them, and their losses. */
#include "agent/tracker/tracker_impl.h"

#include <errno.h>
#include <stddef.h>

#include "agent/profile/window_profile.h"
#include "common/system/clock.h"

#define REFUSED_NS  (100 * NT_MILLISECOND) /* between two requests of a process for a slot */
#define GIVEN_UP_NS (30 * NT_SECOND) /* the same after it was dropped for its memory */

struct nt_process *nt_tracker_process(const struct nt_tracker *tracker, uint32_t pid)
{
	struct nt_process *process = NULL;

	HASH_FIND(hh, tracker->processes, &pid, sizeof(pid), process);
	return process;
}

struct nt_tracker_candidate *nt_tracker_find_candidate(const struct nt_tracker *tracker,
						       uint32_t pid)
{
	struct nt_tracker_candidate *candidate = NULL;

	HASH_FIND(hh, tracker->candidates, &pid, sizeof(pid), candidate);
	return candidate;
}

void nt_tracker_free_process(struct nt_tracker *tracker, struct nt_process *process)
{
	nt_tracker_discard(tracker, process);
	nt_tracker_drop_details(tracker, process);
	for (uint32_t i = 0; i < process->ranks; i++) {
		nt_tracker_leave_key(tracker, process->rank[i], tracker->now_ns);
		nt_tracker_add_completion(&tracker->stats, process->rank[i]);
		nt_rank_free(process->rank[i]);
	}
	process->candidate->process = NULL;
	HASH_DEL(tracker->processes, process);
	if (process->gpu_records)
		nt_tracker_add_gpu_records(&tracker->stats, process->gpu_records);
	if (process->heap)
		nt_tracker_add_heap(&tracker->stats, process->heap);
	for (uint32_t i = 0; i < process->profiles; i++)
		tracker->stats.profiles_left += !process->profile[i]->wire.is_running;
	nt_process_free(process);
}

void nt_tracker_send_rest(struct nt_tracker *tracker, struct nt_process *process, uint64_t boot_ns,
			  bool ended)
{
	nt_tracker_end_details(tracker, process, boot_ns);
	for (uint32_t i = 0; i < process->ranks; i++) {
		struct nt_rank *rank = process->rank[i];

		if (!rank->window_ns && !rank->key[0])
			continue;
		nt_tracker_release_one(tracker, process); /* it has ended: no more waiting */
		(void)nt_rank_settle(rank, UINT64_MAX);
		nt_tracker_send(tracker, rank,
				boot_ns > rank->window_ns ? boot_ns : rank->window_ns, ended);
	}
}

static void describe(struct nt_tracker *tracker, struct nt_process *process)
{
	const struct nt_tracker_source *source = &tracker->options.source;

	if (source->describe(source->data, process->pid, &process->facts) < 0)
		tracker->stats.undescribed++;
	nt_placement_read_own(&process->facts.cgroup, &process->facts.env, &process->placement);
}

/* ---- slots ---------------------------------------------------------------------------------- */

static struct nt_tracker_candidate *candidate_of(struct nt_share_entry *place)
{
	char *start = (char *)place - offsetof(struct nt_tracker_candidate, place);

	return (struct nt_tracker_candidate *)(void *)start;
}

/* Evicts it: not watched until it calls and there is a free slot. */
static void give_up(struct nt_tracker *tracker, struct nt_tracker_candidate *candidate)
{
	const struct nt_tracker_sink *sink = &tracker->options.sink;

	tracker->stats.processes_over_cap++;
	if (!candidate->process)
		return;
	candidate->late |= candidate->process->has_called;
	/* The last known position must not be reported from here on. */
	candidate->process->resumed_ns = UINT64_MAX;
	nt_tracker_send_rest(tracker, candidate->process, tracker->now_ns, false);
	nt_tracker_free_process(tracker, candidate->process);
	if (sink->dropped)
		sink->dropped(sink->data, candidate->pid, candidate->start_ns);
}

void nt_tracker_give_up(struct nt_tracker *tracker, struct nt_process *process)
{
	struct nt_tracker_candidate *candidate = process->candidate;

	nt_share_evict(&tracker->share, &candidate->place);
	give_up(tracker, candidate);
	candidate->refused_ns = tracker->now_ns;
	candidate->refused_for_ns = GIVEN_UP_NS;
}

void nt_tracker_set_libraries(const struct nt_tracker_candidate *candidate)
{
	struct nt_process *process = candidate->process;

	process->libraries = candidate->libraries;
	process->nccl_file = candidate->nccl_file;
	process->mpich = candidate->mpich;
}

/* Begins to watch it, if there is a slot for its owner. */
void nt_tracker_watch(struct nt_tracker *tracker, struct nt_tracker_candidate *candidate,
		      bool called)
{
	bool was_left_out = candidate->place.state == NT_SHARE_LEFT_OUT;
	struct nt_share_entry *victim;
	struct nt_process *process;
	int r;

	r = nt_share_enter(&tracker->share, &candidate->owner, called, &candidate->place, &victim);
	if (r < 0) {
		candidate->late |= called; /* it is not observed from now on */
		tracker->stats.processes_over_cap += r == -ENOSPC && !was_left_out;
		tracker->stats.no_memory += r == -ENOMEM;
		return;
	}
	if (victim)
		give_up(tracker, candidate_of(victim));
	process = nt_process_new(candidate->pid, candidate->start_ns);
	if (!process) {
		tracker->stats.no_memory++;
		nt_share_leave(&tracker->share, &candidate->place);
		return;
	}
	process->candidate = candidate;
	process->owner = &candidate->owner;
	candidate->process = process;
	describe(tracker, process);
	process->late = candidate->late;
	nt_tracker_set_libraries(candidate);
	HASH_ADD(hh, tracker->processes, pid, sizeof(process->pid), process);
}

void nt_tracker_called(struct nt_tracker *tracker, struct nt_process *process)
{
	const struct nt_tracker_sink *sink = &tracker->options.sink;

	nt_share_call(&process->candidate->place);
	if (process->has_called)
		return;
	process->has_called = true;
	if (sink->called)
		sink->called(sink->data, process->pid, process->start_ns);
}

struct nt_process *nt_tracker_caller(struct nt_tracker *tracker, uint32_t pid, uint64_t now_ns,
				     bool *ret_is_known)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);
	struct nt_tracker_candidate *candidate =
		process ? process->candidate : nt_tracker_find_candidate(tracker, pid);

	*ret_is_known = candidate != NULL;
	if (!candidate)
		return NULL;
	if (!process) {
		if (now_ns < candidate->refused_ns + candidate->refused_for_ns &&
		    now_ns >= candidate->refused_ns)
			return NULL;
		nt_tracker_watch(tracker, candidate, true);
		process = candidate->process;
		if (!process) {
			candidate->refused_ns = now_ns;
			candidate->refused_for_ns = REFUSED_NS;
			return NULL;
		}
	}
	nt_tracker_called(tracker, process);
	return process;
}

/* ---- losses --------------------------------------------------------------------------------- */

/* Earlier counts do not continue from here. */
void nt_tracker_lose_numbers(struct nt_tracker *tracker, struct nt_process *process)
{
	for (struct nt_communicator *comm = process->comms; comm; comm = comm->hh.next)
		nt_communicator_set_epoch(comm, nt_registry_epoch(&tracker->registry));
	if (process->graph)
		nt_graph_lose(process->graph);
	for (uint32_t i = 0; i < process->threads; i++)
		process->thread[i].group_depth = 0;
	nt_tracker_lose_heap(tracker, process);
}

void nt_tracker_lose(struct nt_tracker *tracker, struct nt_process *process, uint64_t events)
{
	tracker->stats.lost_events += events;
	process->lost_events += events;
	nt_tracker_lose_numbers(tracker, process);
}
