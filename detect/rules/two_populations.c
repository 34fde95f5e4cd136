/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two populations since the start. */
#include "detect/rules/two_populations.h"

#include <math.h>

#include "detect/incidents/incident_raise.h"
#include "detect/thresholds/thresholds.h"

/* In a pipeline a slow population costs the job more than its own excess. */
static bool is_in_pipeline(const struct nt_detect_rank *rank)
{
	for (uint32_t i = 0; i < rank->links; i++)
		if (nt_detect_comm_use(rank->link[i].comm) == NT_DETECT_COMM_PIPELINE)
			return true;
	return false;
}

int nt_two_populations_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	const struct nt_group *worst = NULL;
	struct nt_proposal proposal = {
		.family = NT_FAMILY_APART,
		.class = NT_CLASS_UNKNOWN,
		.cause = NT_EVIDENCE_TEXT_TWO_POPULATIONS,
		.kind = NT_CULPRIT_STAGE,
	};
	double residual = 0.0;
	bool judged = false;

	(void)frame;
	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		const struct nt_group *group = &detect->roles.group[i];

		if (!group->past || group->round_frame != detect->frames)
			continue;
		judged = true;
		residual = fmax(residual, group->past->apart_cost);
		if (group->past->apart >= NT_APART_ROUNDS &&
		    group->past->apart_gap > NT_FLEET_SPREAD &&
		    (!worst || group->past->apart_cost > worst->past->apart_cost))
			worst = group;
	}
	if (judged)
		nt_incidents_judge(detect, NT_FAMILY_APART, 0, residual);
	if (!worst)
		return 0;
	proposal.onset_ns = worst->past->apart_since_ns;
	proposal.cost = worst->past->apart_cost;
	proposal.unsure = is_in_pipeline(&detect->rank[detect->roles.member[worst->first]]);
	proposal.tier = worst->tier[NT_SERIES_OWN];
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_GAP,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = NT_EVIDENCE_TEXT_RATIO,
		.value = worst->past->apart_high / 1e6,
		.peers = worst->past->apart_low / 1e6,
		.windows = worst->past->apart,
	};
	return nt_incidents_raise(detect, &proposal);
}
