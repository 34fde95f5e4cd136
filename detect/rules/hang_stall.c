/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stalls: finds the ranks that the others wait for. */
#include "detect/rules/hang_stall.h"

#include "detect/incidents/incident_raise.h"
#include "detect/rules/hang.h"
#include "detect/rules/hang_impl.h"
#include "detect/thresholds/thresholds.h"

static bool has_worked(const struct nt_detect *detect, const struct nt_detect_rank *rank)
{
	return rank->worked_ns && detect->end_ns - rank->worked_ns <= NT_WORKING_LASTS_NS;
}

void nt_stall_accuse(const struct nt_detect *detect, struct nt_stall *stall,
		     const struct nt_stall_member *member)
{
	for (uint32_t i = 0; i < stall->culprits; i++)
		if (stall->culprit[i] == member->rank->rank)
			return;
	stall->working = (!stall->culprits || stall->working) && has_worked(detect, member->rank);
	stall->culprit[stall->culprits++] = member->rank->rank;
}

void nt_stall_look_around(const struct nt_detect *detect, struct nt_stall *stall)
{
	for (uint32_t i = 0; i < detect->comm_count && !stall->going; i++)
		stall->going = is_recent(detect, detect->comm[i]->moved_ns, NT_LEAVING_NS);
	for (uint32_t i = 0; i < detect->ranks && !stall->gone; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		/* A job that continued without it for long does not wait for it now. */
		stall->gone =
			rank->ended && !rank->finalized &&
			nt_stats_add(rank->ended_ns, detect->rules.hang_min_ns) >= stall->since_ns;
	}
}

void nt_stall_acquit_waiting(const struct nt_detect *detect, struct nt_stall *stall)
{
	uint32_t kept = 0;
	bool working = true, idle = stall->gone || stall->moving;

	for (uint32_t i = 0; i < stall->culprits && !idle; i++)
		idle = !nt_detect_find(detect, stall->culprit[i])->inside.synchronising;
	if (!idle)
		return;
	for (uint32_t i = 0; i < stall->culprits; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, stall->culprit[i]);

		if (rank->inside.synchronising)
			continue;
		working = working && has_worked(detect, rank);
		stall->culprit[kept++] = rank->rank;
	}
	stall->waiting |= kept < stall->culprits;
	stall->culprits = kept;
	stall->working = working;
}

void nt_stall_witness(struct nt_stall *stall, const struct nt_stall_member *member)
{
	const uint64_t since = member->rank->inside.since_ns;

	if (!stall->found || since < stall->since_ns)
		stall->since_ns = since;
	if (member->waited_ns > stall->longest_ns)
		stall->longest_ns = member->waited_ns;
	stall->found = true;
	stall->tier = member->rank->tier;
}

bool nt_stall_has_moved(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			uint64_t need_ns)
{
	if (!rank->inside.in_call && !rank->inside.synchronising &&
	    is_recent(detect, rank->inside_ns, need_ns))
		return true;
	for (uint32_t i = 0; i < rank->links; i++)
		if (is_recent(detect, rank->link[i].progress_ns, need_ns) ||
		    (rank->inside.synchronising &&
		     is_recent(detect, rank->link[i].comm->moved_ns, NT_LEAVING_NS)))
			return true;
	return false;
}

bool nt_stall_is_unbound(const struct nt_detect *detect, uint64_t need_ns, struct nt_stall *stall)
{
	uint32_t n = 0;

	if (is_recent(detect, detect->step.moved_ns, need_ns))
		return false;
	for (uint32_t i = 0; i < detect->ranks; i++) {
		struct nt_stall_member at = {.rank = &detect->rank[i]};

		if (at.rank->ended || at.rank->finalized)
			return false; /* reported elsewhere */
		if (at.rank->silent || !is_fresh(detect, at.rank))
			continue;
		n++;
		if (at.rank->lost_sight) {
			if (nt_stall_has_moved(detect, at.rank, need_ns))
				return false;
			stall->lost_sight++;
			continue;
		}
		if (!at.rank->inside.in_call && !at.rank->inside.synchronising) {
			if (nt_stall_has_moved(detect, at.rank, need_ns))
				return false;
			nt_stall_accuse(detect, stall, &at);
			continue;
		}
		at.waited_ns = nt_hang_waited(detect, at.rank);
		if (at.waited_ns < need_ns)
			return false;
		if (is_in_unbound(at.rank) || is_in_peer_call(at.rank))
			nt_stall_witness(stall, &at);
		stall->by_peer |= is_in_peer_call(at.rank);
	}
	/* The culprit may be one of those. */
	if (stall->lost_sight)
		stall->culprits = 0;
	stall->inside_all = !stall->culprits;
	stall->cause = stall->culprits ? NT_EVIDENCE_TEXT_LAGGARD : NT_EVIDENCE_TEXT_NONE;
	/* Most ranks outside calls: a pause. */
	return stall->found && stall->culprits <= n / 2;
}

void nt_stall_accuse_stopped(const struct nt_detect *detect, struct nt_stall *stall)
{
	uint32_t live = 0, stopped = 0;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		struct nt_stall_member at = {.rank = &detect->rank[i]};

		if (!is_live(at.rank) || !is_fresh(detect, at.rank))
			continue;
		live++;
		if (!is_stopped(at.rank))
			continue;
		if (!stopped++)
			stall->culprits = 0;
		nt_stall_accuse(detect, stall, &at);
	}
	if (!stopped)
		return;
	/* A job that is suspended as a whole waits for nobody. */
	stall->found = stopped <= live / 2;
	stall->working = stall->inside_all = false;
	stall->comm = 0;
	stall->cause = NT_EVIDENCE_TEXT_LAGGARD;
}

static enum nt_evidence_text text_of(char state)
{
	switch (state) {
	case 'R':
		return NT_EVIDENCE_TEXT_RUNNING;
	case 'S':
		return NT_EVIDENCE_TEXT_SLEEPING;
	case 'D':
		return NT_EVIDENCE_TEXT_UNINTERRUPTIBLE;
	case 'T':
		return NT_EVIDENCE_TEXT_STOPPED;
	case 't':
		return NT_EVIDENCE_TEXT_TRACED;
	case 'Z':
		return NT_EVIDENCE_TEXT_ZOMBIE;
	default:
		return NT_EVIDENCE_TEXT_NONE;
	}
}

void nt_stall_add_state(const struct nt_detect *detect, const struct nt_stall *stall,
			struct nt_proposal *proposal)
{
	enum nt_evidence_text text = NT_EVIDENCE_TEXT_NONE;

	for (uint32_t i = 0; i < stall->culprits; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, stall->culprit[i]);

		if (i && text_of(rank->state) != text)
			return;
		text = text_of(rank->state);
	}
	if (text == NT_EVIDENCE_TEXT_NONE)
		return;
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = text,
		.unit = NT_EVIDENCE_TEXT_NUMBER,
		.method = NT_EVIDENCE_TEXT_SCHEDULER,
		.value = stall->culprits,
		.windows = 1,
	};
}
