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
	WAITS = 2048, /* processes with held or dropped events */
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

static void free_events(struct nt_tracker_orphans *orphans, struct nt_tracker_wait *wait)
{
	if (!wait->count)
		return;
	orphans->orphan[wait->last].next = orphans->free;
	orphans->free = wait->first;
	orphans->count -= wait->count;
	wait->group->count -= wait->count;
	wait->count = 0;
}

static void leave_group(struct nt_tracker_orphans *orphans, struct nt_tracker_wait *wait)
{
	struct nt_tracker_group *group = wait->group;

	group->count -= wait->count;
	if (--group->waits > 0)
		return;
	HASH_DEL(orphans->groups, group);
	free(group);
}

static void free_wait(struct nt_tracker_orphans *orphans, struct nt_tracker_wait *wait)
{
	free_events(orphans, wait);
	leave_group(orphans, wait);
	HASH_DEL(orphans->waits, wait);
	free(wait);
}

void nt_tracker_free_orphans(struct nt_tracker_orphans *orphans)
{
	struct nt_tracker_wait *wait, *next;

	HASH_ITER(hh, orphans->waits, wait, next)
	free_wait(orphans, wait);
	nt_share_release(&orphans->share);
	free(orphans->orphan);
}

static struct nt_tracker_stranger *stranger_place(struct nt_tracker_orphans *orphans, uint32_t pid)
{
	return &orphans->stranger[nt_hash_mix(pid) % NT_TRACKER_STRANGERS];
}

/* ---- held processes ------------------------------------------------------------------------- */

static struct nt_tracker_wait *find_wait(const struct nt_tracker_orphans *orphans, uint32_t pid)
{
	struct nt_tracker_wait *wait = NULL;

	HASH_FIND(hh, orphans->waits, &pid, sizeof(pid), wait);
	return wait;
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
static void find_owner(struct nt_tracker *tracker, struct nt_tracker_wait *wait)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	struct nt_owner owner = {.id = nt_hash_mix(wait->pid) | 1, .name = "unknown"};
	struct nt_tracker_group *group;

	wait->has_owner = true;
	/* The owner of a process that is gone cannot be determined. */
	if (source->owner && source->owner(source->data, wait->pid, &owner) < 0)
		owner = (struct nt_owner){.id = GONE, .name = "unknown"};
	group = take_group(&tracker->orphans, &owner);
	if (!group || group == wait->group)
		return; /* it stays in the group without an owner */
	leave_group(&tracker->orphans, wait);
	wait->group = group;
	group->waits++;
	group->count += wait->count;
}

static struct nt_tracker_wait *take_wait(struct nt_tracker *tracker, uint32_t pid)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	struct nt_tracker_wait *wait = find_wait(orphans, pid);
	static const struct nt_owner anybody = {.id = ANYBODY, .name = "unknown"};
	struct nt_tracker_group *group;

	if (wait || HASH_COUNT(orphans->waits) >= WAITS)
		return wait;
	wait = calloc(1, sizeof(*wait));
	group = wait ? take_group(orphans, &anybody) : NULL;
	if (!group) {
		tracker->stats.no_memory++;
		free(wait);
		return NULL;
	}
	wait->pid = pid;
	wait->group = group;
	group->waits++;
	HASH_ADD(hh, orphans->waits, pid, sizeof(wait->pid), wait);
	return wait;
}

static bool has_room(const struct nt_tracker_orphans *orphans, const struct nt_tracker_group *group)
{
	uint32_t part = FREELY / HASH_COUNT(orphans->groups);

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
	struct nt_tracker_wait *wait;
	uint32_t at;

	if (stranger->pid == call->h.pid && call->h.entry_ns < stranger->until_ns) {
		tracker->stats.foreign_events++;
		return;
	}
	wait = take_wait(tracker, call->h.pid);
	if (wait && !wait->has_owner && orphans->count >= FREELY)
		find_owner(tracker, wait);
	if (!wait || !has_room(orphans, wait->group)) {
		tracker->stats.orphans_over_cap++;
		nt_share_miss(&orphans->share, wait ? &wait->group->owner : NULL, 1);
		if (wait)
			wait->over_cap++;
		return;
	}
	/* Unused slots take no memory. */
	at = orphans->free != NONE ? orphans->free : orphans->used++;
	orphan = &orphans->orphan[at];
	if (at == orphans->free)
		orphans->free = orphan->next;
	orphans->count++;
	wait->group->count++;
	if (wait->count++)
		orphans->orphan[wait->last].next = at;
	else
		wait->first = at;
	wait->last = at;
	orphan->next = NONE;
	orphan->call = *call;
	orphan->has_id = id != NULL;
	if (id)
		memcpy(orphan->id, id, NT_ID_BYTES);
}

bool nt_tracker_keeps(const struct nt_tracker *tracker, uint32_t pid)
{
	return find_wait(&tracker->orphans, pid) != NULL;
}

void nt_tracker_claim(struct nt_tracker *tracker, struct nt_process *process)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	struct nt_tracker_wait *wait = find_wait(orphans, process->pid);

	process->is_awaited = false;
	if (!wait)
		return;
	nt_tracker_called(tracker, process);
	for (uint32_t i = 0, at = wait->first; i < wait->count; i++) {
		const struct nt_tracker_orphan *orphan = &orphans->orphan[at];

		nt_tracker_give(tracker, process, &orphan->call,
				orphan->has_id ? orphan->id : NULL);
		at = orphan->next;
	}
	if (wait->over_cap)
		nt_tracker_lose(tracker, process, wait->over_cap);
	free_wait(orphans, wait);
}

/* ---- scans ---------------------------------------------------------------------------------- */

void nt_tracker_discovering(struct nt_tracker *tracker)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;

	for (struct nt_tracker_wait *wait = orphans->waits; wait; wait = wait->hh.next) {
		wait->judged = wait->count;
		wait->is_judged = true;
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

	for (const struct nt_tracker_wait *wait = tracker->orphans.waits; wait && n < max;
	     wait = wait->hh.next) {
		struct nt_tracker_candidate *candidate = NULL;

		HASH_FIND(hh, tracker->candidates, &wait->pid, sizeof(wait->pid), candidate);
		if (wait->is_judged && !candidate && !is_awaited(tracker, wait->pid))
			ret_pid[n++] = wait->pid;
	}
	return n;
}

/* Its first events are foreign. Later ones may be another process's. */
static void judge_wait(struct nt_tracker *tracker, struct nt_tracker_wait *wait)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	uint32_t last = wait->first;

	tracker->stats.foreign_events += wait->judged;
	for (uint32_t i = 1; i < wait->judged; i++)
		last = orphans->orphan[last].next;
	if (wait->judged)
		*stranger_place(orphans, wait->pid) = (struct nt_tracker_stranger){
			.pid = wait->pid,
			.until_ns = orphans->orphan[last].call.h.entry_ns + STRANGER_NS,
		};
	if (wait->judged == wait->count) {
		free_wait(orphans, wait);
		return;
	}
	if (wait->judged) {
		uint32_t rest = orphans->orphan[last].next;

		orphans->orphan[last].next = orphans->free;
		orphans->free = wait->first;
		wait->first = rest;
		wait->count -= wait->judged;
		orphans->count -= wait->judged;
		wait->group->count -= wait->judged;
	}
	wait->judged = 0;
}

void nt_tracker_discovered(struct nt_tracker *tracker, bool complete)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	struct nt_tracker_wait *wait, *next;

	HASH_ITER(hh, orphans->waits, wait, next)
	{
		struct nt_process *process = nt_tracker_process(tracker, wait->pid);

		if (process) {
			nt_tracker_claim(tracker, process);
			if (tracker->options.sink.claimed)
				tracker->options.sink.claimed(tracker->options.sink.data);
		} else if (complete && wait->is_judged && !is_awaited(tracker, wait->pid)) {
			judge_wait(tracker, wait);
		}
	}
}
