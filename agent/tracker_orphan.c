/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A process may call what it maps before discovery has told of it: its events wait here. A look for
 * processes finds those that were there when it began, no more: what comes while it runs is for the
 * next to judge.
 */
#include <string.h>

#include "agent/tracker_impl.h"
#include "common/clock.h"
#include "common/hash.h"

#define STRANGER_NS NT_SECOND /* how long a pid is believed to be a stranger's */

static struct nt_tracker_stranger *stranger_place(struct nt_tracker_orphans *orphans, uint32_t pid)
{
	return &orphans->stranger[nt_hash_mix(pid) % NT_TRACKER_STRANGERS];
}

void nt_tracker_keep(struct nt_tracker *tracker, const struct nt_event_call *call,
		     const uint8_t *id)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	const struct nt_tracker_stranger *stranger = stranger_place(orphans, call->h.pid);
	struct nt_tracker_orphan *orphan;

	if (stranger->pid == call->h.pid && call->h.entry_ns < stranger->until_ns) {
		tracker->stats.foreign_events++;
		return;
	}
	if (orphans->count == NT_TRACKER_ORPHANS) {
		orphans->over_cap++;
		return;
	}
	orphan = &orphans->orphan[orphans->count++];
	orphan->call = *call;
	orphan->has_id = id != NULL;
	if (id)
		memcpy(orphan->id, id, NT_ID_BYTES);
}

bool nt_tracker_keeps(const struct nt_tracker *tracker, uint32_t pid)
{
	for (uint32_t i = 0; i < tracker->orphans.count; i++)
		if (tracker->orphans.orphan[i].call.h.pid == pid)
			return true;
	return false;
}

/* Leaves those of others, in order. */
void nt_tracker_claim(struct nt_tracker *tracker, struct nt_process *process)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	uint32_t kept = 0, judged = 0;

	process->is_awaited = false;
	for (uint32_t i = 0; i < orphans->count; i++) {
		struct nt_tracker_orphan *orphan = &orphans->orphan[i];

		if (orphan->call.h.pid == process->pid) {
			nt_tracker_give(tracker, process, &orphan->call,
					orphan->has_id ? orphan->id : NULL);
			continue;
		}
		judged += i < orphans->judged;
		if (kept != i)
			orphans->orphan[kept] = *orphan;
		kept++;
	}
	orphans->count = kept;
	orphans->judged = judged;
}

void nt_tracker_discovering(struct nt_tracker *tracker)
{
	tracker->orphans.judged = tracker->orphans.count;
}

static void judge(struct nt_tracker *tracker)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;

	for (uint32_t i = 0; i < orphans->judged; i++) {
		const struct nt_event_header *h = &orphans->orphan[i].call.h;

		*stranger_place(orphans, h->pid) = (struct nt_tracker_stranger){
			.pid = h->pid,
			.until_ns = h->entry_ns + STRANGER_NS,
		};
	}
	tracker->stats.foreign_events += orphans->judged;
	orphans->count -= orphans->judged;
	memmove(orphans->orphan, orphans->orphan + orphans->judged,
		orphans->count * sizeof(*orphans->orphan));
}

void nt_tracker_discovered(struct nt_tracker *tracker, bool complete)
{
	struct nt_tracker_orphans *orphans = &tracker->orphans;
	uint64_t over_cap = orphans->over_cap;

	for (struct nt_process *p = tracker->processes; p && orphans->count; p = p->hh.next)
		if (p->is_awaited)
			nt_tracker_claim(tracker, p);
	if (complete)
		judge(tracker);
	orphans->judged = 0;
	if (!over_cap)
		return;
	/* Whose they were nobody knows: the numbers of all ranks are in doubt. */
	orphans->over_cap = 0;
	tracker->stats.orphans_over_cap += over_cap;
	nt_tracker_lost(tracker, over_cap);
}
