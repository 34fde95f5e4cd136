/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pauses: no rank makes progress. */
#include "detect/rules/pause.h"

#include "detect/incidents/incident_raise.h"
#include "detect/model/detector_state.h"
#include "detect/rules/hang_impl.h"
#include "detect/thresholds/thresholds.h"

uint64_t nt_pause_patience(const struct nt_detect *detect, uint64_t hang_ns)
{
	const struct nt_detect_step *step = &detect->step;
	const uint64_t twice_ns = step->longest_pause_ns < UINT64_MAX / NT_YOUNG_TIMES
					  ? NT_YOUNG_TIMES * step->longest_pause_ns
					  : UINT64_MAX;
	bool young;

	if (!detect->rules.young_ns)
		return hang_ns;
	young = (double)detect->frames * detect->window_ns < (double)detect->rules.young_ns;
	if (step->step_ns <= 0.0 || (young && !step->past.ready && step->past.count < NT_PAST_FEW))
		return at_least(hang_ns, detect->rules.young_ns);
	if (!step->past.ready)
		hang_ns = at_least(hang_ns, NT_LEARNING_TIMES * detect->rules.hang_min_ns);
	return young ? at_least(hang_ns, twice_ns) : hang_ns;
}

bool nt_pause_is_over(const struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (!is_live(rank) || !is_fresh(detect, rank))
			continue;
		if (rank->steps || rank->round_frame == detect->frames)
			return true;
		for (uint32_t j = 0; j < rank->links; j++)
			if (rank->link[j].progress_ns == detect->end_ns)
				return true;
	}
	return false;
}

void nt_pause_add_lost_sight(struct nt_proposal *proposal, uint32_t lost_sight, uint32_t ranks)
{
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_LOST_SIGHT,
		.unit = NT_EVIDENCE_TEXT_NUMBER,
		.method = NT_EVIDENCE_TEXT_SAMPLES,
		.value = lost_sight,
		.peers = ranks,
		.windows = 1,
	};
}

/*
 * Returns the number of unobserved ranks if all live ranks are unobserved or wait. This looks like
 * a pause and cannot be distinguished from one. Ranks that read or write are busy, for example with
 * a checkpoint.
 */
static uint32_t count_lost_sight(const struct nt_detect *detect)
{
	uint32_t lost_sight = 0;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (!is_live(rank))
			continue;
		if (is_recent(detect, rank->stored_ns, NT_FRESH_SAMPLED_NS))
			return 0;
		if (rank->lost_sight || (rank->sampled && !is_fresh(detect, rank)))
			lost_sight++;
		else if (!is_fresh(detect, rank) ||
			 (!rank->inside.in_call && !rank->inside.synchronising))
			return 0;
	}
	return lost_sight;
}

int nt_pause_check(struct nt_detect *detect, bool moved, bool inside)
{
	const struct nt_rules *rules = &detect->rules;
	struct nt_detect_step *step = &detect->step;
	uint64_t patience_ns, paused_ns;
	uint32_t lost_sight = 0;
	struct nt_proposal proposal = {
		.family = NT_FAMILY_PAUSE,
		.class = NT_CLASS_HANG,
		.onset_ns = step->moved_ns,
		.cost = -1.0,
		.tier = NT_FRAME_T1,
	};

	if (step->moved_ns && !nt_detect_is_observed(detect)) {
		/* Progress is unknown: unobserved time does not count as a pause. */
		step->moved_ns += detect->end_ns - detect->start_ns;
		return 0;
	}
	if (!step->moved_ns || moved) {
		paused_ns = step->moved_ns ? detect->end_ns - step->moved_ns : 0;
		if (paused_ns > step->longest_pause_ns)
			step->longest_pause_ns = paused_ns;
		step->moved_ns = detect->end_ns;
		return 0;
	}
	patience_ns = step->longest_pause_ns > UINT64_MAX / NT_PAUSE_TIMES
			      ? UINT64_MAX
			      : NT_PAUSE_TIMES * step->longest_pause_ns;
	paused_ns = detect->end_ns - step->moved_ns;
	if (paused_ns >= rules->lost_sight_ns)
		lost_sight = count_lost_sight(detect);
	if (lost_sight)
		patience_ns =
			nt_pause_patience(detect, at_least(patience_ns, rules->lost_sight_ns));
	else
		patience_ns = at_least(patience_ns, rules->silence_floor_ns);
	/* If ranks are seen waiting, the hang rules apply. */
	if ((inside && !lost_sight) || paused_ns < patience_ns ||
	    nt_incidents_find(detect, NT_FAMILY_STALL, 0))
		return 0;
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_STEP,
		.unit = NT_EVIDENCE_TEXT_S,
		.method = NT_EVIDENCE_TEXT_OWN_PAST,
		.value = (double)paused_ns / 1e9,
		.peers = (double)step->longest_pause_ns / 1e9,
		.windows = 1,
	};
	if (lost_sight)
		nt_pause_add_lost_sight(&proposal, lost_sight, detect->census.here);
	return nt_incidents_raise(detect, &proposal);
}
