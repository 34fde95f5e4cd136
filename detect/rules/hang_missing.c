/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Missing ranks. */
#include "detect/rules/hang_missing.h"

#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/model/detector_state.h"
#include "detect/rules/first_death.h"
#include "detect/rules/hang.h"
#include "detect/rules/hang_impl.h"
#include "detect/thresholds/thresholds.h"

/* Whether the job stands still and a rank waits for unknown members. */
static bool is_waited_for(const struct nt_detect *detect)
{
	const uint64_t need_ns = at_least(detect->rules.hang_min_ns,
					  usual_periods(detect, detect->rules.hang_periods));

	if (is_recent(detect, detect->step.moved_ns, need_ns))
		return false;
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (is_live(rank) && is_fresh(detect, rank) && is_in_unbound(rank) &&
		    nt_hang_waited(detect, rank) >= need_ns)
			return true;
	}
	return false;
}

/* Time after its end during which the job may still seem to make progress. */
static uint64_t last_ns(const struct nt_detect *detect)
{
	return at_least(detect->rules.hang_min_ns, usual_periods(detect, NT_MISSING_STEPS));
}

/* Whether progress stopped with its end: what continued for longer does not wait for it. */
static bool stopped_with(const struct nt_detect *detect, const struct nt_detect_rank *gone)
{
	return nt_stats_add(gone->ended_ns, last_ns(detect)) >= detect->step.moved_ns;
}

static bool is_reported(const struct nt_detect *detect, const struct nt_detect_rank *gone)
{
	const struct nt_detect_incident *open = nt_incidents_find(detect, NT_FAMILY_MISSING, 0);

	for (uint32_t i = 0; open && i < open->listed; i++)
		if (open->list[i] == gone->rank)
			return true;
	return false;
}

/*
 * Whether the rank waits for its device, which may wait for the ended rank: since its end, or for
 * longer than a step. A job that continues with fewer ranks waits for its devices in each step.
 */
static bool awaits(const struct nt_detect *detect, const struct nt_detect_rank *rank,
		   const struct nt_detect_rank *gone)
{
	const uint64_t least_ns = detect->rules.missing_after_ns,
		       wait_ns = nt_hang_waited(detect, rank);

	if (!rank->inside.synchronising || !stopped_with(detect, gone))
		return false;
	if (is_reported(detect, gone))
		return true;
	return wait_ns >= least_ns &&
	       (rank->inside.since_ns <= nt_stats_add(gone->ended_ns, least_ns) ||
		wait_ns >= usual_periods(detect, NT_MISSING_WAIT));
}

/* Whether the member still makes calls there. A window reports calls made before its end. */
static bool goes_on(const struct nt_detect *detect, const struct nt_detect_link *link,
		    const struct nt_detect_rank *gone)
{
	const uint64_t least_ns = nt_stats_add(detect->rules.missing_after_ns,
					       usual_periods(detect, NT_MISSING_STEPS));

	return link->progress_ns >= nt_stats_add(gone->ended_ns, least_ns) &&
	       is_recent(detect, link->progress_ns, last_ns(detect));
}

/* Whether a member of one of its communicators waits for it, or continues its calls without it. */
static bool is_missed(const struct nt_detect *detect, const struct nt_detect_rank *gone)
{
	for (uint32_t i = 0; i < gone->links; i++) {
		const struct nt_detect_comm *comm = gone->link[i].comm;

		for (uint32_t j = 0; j < comm->members; j++) {
			const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[j]);
			const struct nt_detect_link *link;

			if (!rank || rank == gone || !is_live(rank) || !is_fresh(detect, rank))
				continue;
			if ((rank->inside.in_call && rank->inside.comm == comm->id) ||
			    awaits(detect, rank, gone))
				return true;
			link = find_link(rank, comm);
			if (link && goes_on(detect, link, gone))
				return true;
		}
	}
	return false;
}

/* How the rank ended, if it is known. */
static void add_end(struct nt_proposal *proposal, const struct nt_detect_rank *rank)
{
	if (!rank->exit_signal && !rank->exit_status)
		return;
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = rank->exit_signal ? NT_EVIDENCE_TEXT_SIGNAL : NT_EVIDENCE_TEXT_STATUS,
		.unit = NT_EVIDENCE_TEXT_NUMBER,
		.method = NT_EVIDENCE_TEXT_EXIT,
		.value = rank->exit_signal ? rank->exit_signal : rank->exit_status,
		.windows = 1,
	};
}

/* Adds how it ended, and an error of its GPU that preceded it. */
static void explain(struct nt_proposal *proposal, const struct nt_detect_rank *rank)
{
	add_end(proposal, rank);
	if (!nt_first_death_had_xid(rank))
		return;
	proposal->cause = NT_EVIDENCE_TEXT_GPU_ERROR;
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_XID,
		.unit = NT_EVIDENCE_TEXT_NUMBER,
		.method = NT_EVIDENCE_TEXT_DRIVER,
		.value = rank->xid,
		.windows = 1,
	};
}

/* All ranks have ended, and with them all incidents but that of the one that ended first. */
static int end_all(struct nt_detect *detect)
{
	const struct nt_detect_rank *first = nt_first_death(detect);
	uint64_t last_ns = 0;
	uint32_t rank;
	struct nt_proposal proposal = {
		.family = NT_FAMILY_MISSING,
		.class = NT_CLASS_MISSING,
		.kind = NT_CULPRIT_RANK,
		.rank = &rank,
		.ranks = 1,
		.cost = -1.0,
		.tier = NT_FRAME_T1,
		.final = true,
	};
	int r = 0;

	for (int family = 0; family < NT_FAMILY_END && r == 0; family++)
		if (!first || family != NT_FAMILY_MISSING)
			r = nt_incidents_close(detect, (enum nt_family)family);
	if (!first || r < 0)
		return r;
	for (uint32_t i = 0; i < detect->ranks; i++)
		if (detect->rank[i].ended_ns > last_ns)
			last_ns = detect->rank[i].ended_ns;
	rank = first->rank;
	proposal.onset_ns = first->ended_ns;
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_FIRST,
		.unit = NT_EVIDENCE_TEXT_S,
		.method = NT_EVIDENCE_TEXT_EXIT,
		.value = (double)(last_ns - first->ended_ns) / 1e9,
		.windows = 1,
	};
	explain(&proposal, first);
	return nt_incidents_raise(detect, &proposal);
}

int nt_hang_missing(struct nt_detect *detect, const struct nt_frame *frame)
{
	uint32_t *missing = detect->scratch.index, n = 0;
	const struct nt_detect_rank *first = NULL;
	bool unbound;
	struct nt_proposal proposal = {
		.family = NT_FAMILY_MISSING,
		.class = NT_CLASS_MISSING,
		.kind = NT_CULPRIT_RANK,
		.cost = -1.0,
		.tier = NT_FRAME_T1,
	};

	(void)frame;
	if (detect->ranks && !detect->census.here)
		return end_all(detect);
	if (!detect->census.gone)
		return 0;
	unbound = is_waited_for(detect);
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (!rank->ended || rank->finalized || !rank->known ||
		    detect->end_ns < nt_stats_add(rank->ended_ns, detect->rules.missing_after_ns) ||
		    !(is_missed(detect, rank) || (unbound && stopped_with(detect, rank))))
			continue;
		missing[n++] = rank->rank;
		if (!first || rank->ended_ns < first->ended_ns)
			first = rank;
	}
	if (!n)
		return 0;
	proposal.rank = missing;
	proposal.ranks = n;
	proposal.onset_ns = first->ended_ns;
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_GONE,
		.unit = NT_EVIDENCE_TEXT_S,
		.method = NT_EVIDENCE_TEXT_EXIT,
		.value = (double)(detect->end_ns - first->ended_ns) / 1e9,
		.windows = 1,
	};
	explain(&proposal, first);
	return nt_incidents_raise(detect, &proposal);
}
