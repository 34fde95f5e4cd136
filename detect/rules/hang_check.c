/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hang detection. */
#include "detect/rules/hang_check.h"

#include <errno.h>
#include <stdlib.h>

#include "detect/incidents/incident_raise.h"
#include "detect/model/detector_state.h"
#include "detect/rules/hang.h"
#include "detect/rules/hang_impl.h"
#include "detect/rules/hang_stall_comm.h"
#include "detect/rules/pause.h"
#include "detect/thresholds/thresholds.h"

static int compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * Whether a named rank has no data now, as in a recording's last window. It stays accused, and
 * ranks that only wait for it are not accused instead.
 */
static bool is_out_of_sight(const struct nt_detect *detect, const struct nt_detect_incident *open)
{
	if (open->kind != NT_CULPRIT_RANK)
		return false;
	for (uint32_t i = 0; i < open->listed; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, open->list[i]);

		if (rank && !rank->ended &&
		    (rank->silent || rank->lost_sight || !is_fresh(detect, rank)))
			return true;
	}
	return false;
}

/* No rank is named, and the culprit may be a different one. */
static bool may_be_another(const struct nt_stall *stall)
{
	if (stall->moving || stall->gone)
		return true; /* ended ranks are reported elsewhere */
	if (stall->comm && !stall->waiting)
		return false;
	/* An unobserved rank may be the culprit. */
	return stall->going || (!stall->inside_all && !stall->waiting);
}

/* Of ranks without a file it is not known whether they entered: they are named for lack of it. */
static void add_unrecorded(const struct nt_detect *detect, const struct nt_stall *stall,
			   struct nt_proposal *proposal)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < stall->culprits; i++)
		n += nt_detect_find(detect, stall->culprit[i])->unrecorded;
	if (!n)
		return;
	if (n == stall->culprits)
		proposal->cause = NT_EVIDENCE_TEXT_NO_DUMP;
	proposal->chance = NT_UNRECORDED_CHANCE;
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_UNRECORDED,
		.unit = NT_EVIDENCE_TEXT_NUMBER,
		.method = NT_EVIDENCE_TEXT_WITNESS,
		.value = n,
		.windows = 1,
	};
}

static int raise_stall(struct nt_detect *detect, struct nt_stall *stall, uint64_t hang_ns)
{
	struct nt_proposal proposal = {
		.family = NT_FAMILY_STALL,
		.class = NT_CLASS_HANG,
		.cause = stall->cause,
		.kind = NT_CULPRIT_RANK,
		.rank = stall->culprit,
		.ranks = stall->culprits,
		.onset_ns = stall->since_ns,
		.cost = -1.0,
		.tier = stall->tier,
	};
	struct nt_detect_incident *open = nt_incidents_find(detect, NT_FAMILY_STALL, 0);

	/* A mismatch is more specific than a hang. */
	if (open && open->class == NT_CLASS_MISMATCH && open->stands)
		return 0;
	if (open && is_out_of_sight(detect, open)) {
		open->stands = true;
		return 0;
	}
	if (stall->culprits) {
		qsort(stall->culprit, stall->culprits, sizeof(*stall->culprit), compare_u32);
		if (stall->working && stall->longest_ns < detect->rules.slow_host_ns) {
			proposal.class = NT_CLASS_HOST;
			proposal.cause = NT_EVIDENCE_TEXT_SLOW_HOST;
			proposal.note = true;
		} else if (stall->working) {
			proposal.cause = NT_EVIDENCE_TEXT_SLOW_HOST;
		}
	} else if (may_be_another(stall)) {
		return 0;
	} else if (stall->comm && !stall->waiting) {
		/* A device that has not begun holds up the others as a broken link does. */
		proposal.cause = stall->queued ? NT_EVIDENCE_TEXT_NONE : NT_EVIDENCE_TEXT_NETWORK;
		proposal.kind = NT_CULPRIT_COMMUNICATOR;
		proposal.comm = stall->comm;
		proposal.rank = stall->members;
		proposal.ranks = stall->listed;
	}
	if (!stall->culprits)
		hang_ns = nt_pause_patience(detect, hang_ns);
	if (!proposal.note && stall->longest_ns < hang_ns)
		return 0;
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = stall->by_peer ? NT_EVIDENCE_TEXT_WAITING_PEER : NT_EVIDENCE_TEXT_WAITING,
		.unit = NT_EVIDENCE_TEXT_S,
		.method = NT_EVIDENCE_TEXT_WITNESS,
		.value = (double)stall->longest_ns / 1e9,
		.peers = (double)hang_ns / 1e9,
		.windows = 1,
	};
	add_unrecorded(detect, stall, &proposal);
	nt_stall_add_state(detect, stall, &proposal);
	if (!stall->culprits && stall->lost_sight)
		nt_pause_add_lost_sight(&proposal, stall->lost_sight, detect->census.here);
	return nt_incidents_raise(detect, &proposal);
}

int nt_hang_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	const uint64_t period_ns = usual_periods(detect, detect->rules.hang_periods);
	const uint64_t hang_ns = at_least(detect->rules.hang_min_ns, period_ns);
	const uint64_t note_ns = at_least(detect->rules.checkpoint_note_ns, period_ns);
	const uint64_t need_ns = note_ns < hang_ns ? note_ns : hang_ns;
	struct nt_stall stall = {.culprit = detect->scratch.index};
	const bool moved = nt_pause_is_over(detect);
	const uint64_t longest_ns = detect->census.longest_wait_ns;
	const bool is_long = longest_ns >= need_ns || longest_ns >= NT_MISMATCH_AFTER_NS;
	struct nt_stall_member *member = NULL;
	uint64_t *epoch = NULL;
	int r = 0;

	/* Without ranks there is no scratch. */
	if (!detect->ranks)
		return 0;
	stall.members = &detect->scratch.index[detect->scratch.cap];

	for (uint32_t i = 0; i < detect->ranks && is_long && r == 0; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];
		const uint64_t wait_ns = nt_hang_waited(detect, rank);

		if (!is_live(rank) || !is_fresh(detect, rank) ||
		    (wait_ns < need_ns && wait_ns < NT_MISMATCH_AFTER_NS))
			continue;
		for (uint32_t j = 0; j < rank->links && r == 0; j++) {
			struct nt_detect_comm *comm = rank->link[j].comm;

			if (comm->checked_frame == detect->frames || comm->members < 2 ||
			    (rank->inside.in_call && (rank->inside.comm != comm->id ||
						      !is_collective(rank->inside.kind))) ||
			    (!rank->inside.in_call &&
			     nt_detect_comm_use(comm) != NT_DETECT_COMM_REDUCING &&
			     nt_detect_comm_use(comm) != NT_DETECT_COMM_EXPERT))
				continue;
			comm->checked_frame = detect->frames;
			if (!member)
				member = calloc(detect->ranks, sizeof(*member));
			if (!epoch)
				epoch = calloc(detect->ranks, sizeof(*epoch));
			r = member && epoch ? nt_stall_check_comm(detect, frame, comm, need_ns,
								  member, epoch, &stall)
					    : -ENOMEM;
		}
	}
	free(member);
	free(epoch);
	if (r == 0 && !stall.found) {
		struct nt_stall unbound = {.culprit = stall.culprit, .members = stall.members};

		if (nt_stall_is_unbound(detect, need_ns, &unbound))
			stall = unbound;
	}
	if (r == 0 && stall.found) {
		nt_stall_look_around(detect, &stall);
		nt_stall_acquit_waiting(detect, &stall);
		nt_stall_accuse_stopped(detect, &stall);
	}
	if (r == 0 && stall.found)
		r = raise_stall(detect, &stall, hang_ns);
	if (r == 0)
		r = nt_pause_check(detect, moved, longest_ns > 0);
	return r;
}
