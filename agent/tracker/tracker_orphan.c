/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Holds events of processes that discovery has not reported yet. A scan decides on the events held
 * when it began; later ones are left to the next scan. Half of the slots are open to all; of the
 * rest each owner has its part.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tracker/tracker_impl.h"
#include "common/base/hash.h"
#include "common/system/clock.h"

#define STRANGER_NS NT_SECOND /* how long a pid is treated as foreign */

enum {
	NONE = NT_TRACKER_ORPHANS,
	FREELY = NT_TRACKER_ORPHANS / 2, /* slots without shares */
	FLOOR = 16, /* slots guaranteed to an owner while there are some */
	ANYBODY = 2, /* owner of processes whose owner was not read */
	GONE = 3,
	MAX_PROCESSES = 2048, /* processes with held or dropped events */
};

int nt_tracker_open_orphans(struct nt_tracker_orphans *orphans)
{
	orphans->orphan = calloc(NT_TRACKER_ORPHANS, sizeof(*orphans->orphan));
	if (!orphans->orphan)
		return -ENOMEM;
	orphans->free = NONE;
	nt_share_init(&orphans->share, NT_TRACKER_ORPHANS);
	return 0;
}

static void free_events(struct nt_tracker_orphans *orphans, struct nt_tracker_held *held)
{
	if (!held->count)
		return;
	orphans->orphan[held->last].next = orphans->free;
	orphans->free = held->first;
	orphans->count -= held->count;
	held->group->count -= held->count;
	held->count = 0;
}

static void leave_group(struct nt_tracker_orphans *orphans, struct nt_tracker_held *held)
{
	struct nt_tracker_group *group = held->group;

	group->count -= held->count;
	if (--group->processes > 0)
		return;
	HASH_DEL(orphans->groups, group);
	free(group);
}

static void free_held(struct nt_tracker_orphans *orphans, struct nt_tracker_held *held)
{
	free_events(orphans, held);
	leave_group(orphans, held);
	HASH_DEL(orphans->processes, held);
	free(held);
}

void nt_tracker_free_orphans(struct nt_tracker_orphans *orphans)
{
	struct nt_tracker_held *held, *next;

	HASH_ITER(hh, orphans->processes, held, next)
	free_held(orphans, held);
	nt_share_release(&orphans->share);
	free(orphans->orphan);
}

static struct nt_tracker_stranger *stranger_place(struct nt_tracker_orphans *orphans, uint32_t pid)
{
	return &orphans->stranger[nt_hash_mix(pid) % NT_TRACKER_STRANGERS];
}

/* ---- held processes ------------------------------------------------------------------------- */

static struct nt_tracker_held *find_held(const struct nt_tracker_orphans *orphans, uint32_t pid)
{
	struct nt_tracker_held *held = NULL;

	HASH_FIND(hh, orphans->processes, &pid, sizeof(pid), held);
	return held;
}

static struct nt_tracker_group *take_group(struct nt_tracker_orphans *orphans,
					   const struct nt_owner *owner)
{
	struct nt_tracker_group *group = NULL;

	HASH_FIND(hh, orphans->groups, &owner->id, sizeof(owner->id), group);
	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	group->owner = *owner;
	HASH_ADD(hh, orphans->groups, owner.id, sizeof(group->owner.id), group);
	return group;
}

/* Reads the owner of the process, which is worth the cost when slots are short. */
static void find_owner(struct nt_tracker *tracker, struct nt_tracker_held *held)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	struct nt_owner owner = {.id = nt_hash_mix(held->pid) | 1, .name = "unknown"};
	struct nt_tracker_group *group;

	held->has_owner = true;
	/* The owner of a process that is gone cannot be determined. */
	if (source->owner && source->owner(source->data, held->pid, &owner) < 0)
		owner = (struct nt_owner){.id = GONE, .name = "unknown"};
	group = take_group(&tracker->orphans, &owner);
	if (!group || group == held->group)
		return; /* it stays in the group without an owner */
	leave_group(&tracker->orphans, held);
	held->group = group;
	group->processes++;
	group->count += held->count;
}

static struct nt_tracker_held *take_held(struct nt_tracker *tracker, uint32_t pid)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	struct nt_tracker_held *held = find_held(orphans, pid);
	static const struct nt_owner anybody = {.id = ANYBODY, .name = "unknown"};
	struct nt_tracker_group *group;

	if (held || HASH_COUNT(orphans->processes) >= MAX_PROCESSES)
		return held;
	held = calloc(1, sizeof(*held));
	group = held ? take_group(orphans, &anybody) : NULL;
	if (!group) {
		tracker->stats.no_memory++;
		free(held);
		return NULL;
	}
	held->pid = pid;
	held->group = group;
	group->processes++;
	HASH_ADD(hh, orphans->processes, pid, sizeof(held->pid), held);
	return held;
}

static bool has_room(const struct nt_tracker_orphans *orphans, const struct nt_tracker_group *group)
{
	const uint32_t groups = HASH_COUNT(orphans->groups);
	const uint32_t part = groups ? FREELY / groups : FREELY;

	if (orphans->count < FREELY)
		return true;
	return orphans->count < NT_TRACKER_ORPHANS && group->count < (part > FLOOR ? part : FLOOR);
}

void nt_tracker_keep(struct nt_tracker *tracker, const struct nt_event_call *call,
		     const uint8_t *id)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	const struct nt_tracker_stranger *stranger = stranger_place(orphans, call->h.pid);
	struct nt_tracker_orphan *orphan;
	struct nt_tracker_held *held;
	uint32_t at;

	if (stranger->pid == call->h.pid && call->h.entry_ns < stranger->until_ns) {
		tracker->stats.foreign_events++;
		return;
	}
	held = take_held(tracker, call->h.pid);
	if (held && !held->has_owner && orphans->count >= FREELY)
		find_owner(tracker, held);
	if (!held || !has_room(orphans, held->group)) {
		tracker->stats.orphans_over_cap++;
		nt_share_miss(&orphans->share, held ? &held->group->owner : NULL, 1);
		if (held)
			held->over_cap++;
		return;
	}
	/* Unused slots take no memory. */
	at = orphans->free != NONE ? orphans->free : orphans->used++;
	orphan = &orphans->orphan[at];
	if (at == orphans->free)
		orphans->free = orphan->next;
	orphans->count++;
	held->group->count++;
	if (held->count++)
		orphans->orphan[held->last].next = at;
	else
		held->first = at;
	held->last = at;
	orphan->next = NONE;
	orphan->call = *call;
	orphan->has_id = id != NULL;
	if (id)
		memcpy(orphan->id, id, NT_ID_BYTES);
}

bool nt_tracker_keeps(const struct nt_tracker *tracker, uint32_t pid)
{
	return find_held(&tracker->orphans, pid) != NULL;
}

void nt_tracker_claim(struct nt_tracker *tracker, struct nt_process *process)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	struct nt_tracker_held *held = find_held(orphans, process->pid);

	process->is_awaited = false;
	if (!held)
		return;
	nt_tracker_called(tracker, process);
	for (uint32_t i = 0, at = held->first; i < held->count; i++) {
		const struct nt_tracker_orphan *orphan = &orphans->orphan[at];

		nt_tracker_give(tracker, process, &orphan->call,
				orphan->has_id ? orphan->id : NULL);
		at = orphan->next;
	}
	if (held->over_cap)
		nt_tracker_lose(tracker, process, held->over_cap);
	free_held(orphans, held);
}

/* ---- scans ---------------------------------------------------------------------------------- */

void nt_tracker_discovering(struct nt_tracker *tracker)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;

	for (struct nt_tracker_held *held = orphans->processes; held; held = held->hh.next) {
		held->judged = held->count;
		held->is_judged = true;
	}
}

static bool is_awaited(const struct nt_tracker *tracker, uint32_t pid)
{
	const struct nt_tracker_source *source = &tracker->options.source;

	return source->awaited && source->awaited(source->data, pid);
}

size_t nt_tracker_unknown(const struct nt_tracker *tracker, uint32_t *ret_pid, size_t max)
{
	size_t n = 0;

	for (const struct nt_tracker_held *held = tracker->orphans.processes; held && n < max;
	     held = held->hh.next) {
		struct nt_tracker_candidate *candidate = NULL;

		HASH_FIND(hh, tracker->candidates, &held->pid, sizeof(held->pid), candidate);
		if (held->is_judged && !candidate && !is_awaited(tracker, held->pid))
			ret_pid[n++] = held->pid;
	}
	return n;
}

/* Its first events are foreign. Later ones may be another process's. */
static void judge_held(struct nt_tracker *tracker, struct nt_tracker_held *held)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	uint32_t last = held->first;

	tracker->stats.foreign_events += held->judged;
	for (uint32_t i = 1; i < held->judged; i++)
		last = orphans->orphan[last].next;
	if (held->judged)
		*stranger_place(orphans, held->pid) = (struct nt_tracker_stranger){
			.pid = held->pid,
			.until_ns = orphans->orphan[last].call.h.entry_ns + STRANGER_NS,
		};
	if (held->judged == held->count) {
		free_held(orphans, held);
		return;
	}
	if (held->judged) {
		uint32_t rest = orphans->orphan[last].next;

		orphans->orphan[last].next = orphans->free;
		orphans->free = held->first;
		held->first = rest;
		held->count -= held->judged;
		orphans->count -= held->judged;
		held->group->count -= held->judged;
	}
	held->judged = 0;
}

void nt_tracker_discovered(struct nt_tracker *tracker, bool complete)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	struct nt_tracker_held *held, *next;

	HASH_ITER(hh, orphans->processes, held, next)
	{
		struct nt_process *process = nt_tracker_process(tracker, held->pid);

		if (process) {
			nt_tracker_claim(tracker, process);
			if (tracker->options.sink.claimed)
				tracker->options.sink.claimed(tracker->options.sink.data);
		} else if (complete && held->is_judged && !is_awaited(tracker, held->pid)) {
			judge_held(tracker, held);
		}
	}
}
