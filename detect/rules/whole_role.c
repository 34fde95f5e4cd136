/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The work of a whole role grew. */
#include "detect/rules/whole_role.h"

#include <math.h>

#include "detect/baseline/peer_group.h"
#include "detect/incidents/incident_raise.h"
#include "detect/math/stats.h"

static bool is_current(const struct nt_detect *detect, const struct nt_group *group)
{
	return group->jumped && group->round_frame == detect->frames &&
	       group->median[NT_SERIES_OWN] > 0.0;
}

/* What its ranks' work was before: the median of their pasts. */
static double work_before(struct nt_detect *detect, const struct nt_group *group)
{
	double *value = detect->scratch.a;
	uint32_t n = 0;

	for (uint32_t i = 0; i < group->members; i++) {
		const uint32_t index = detect->roles.member[group->first + i];
		const struct nt_past *past = &detect->rank[index].track[NT_SERIES_OWN].past;

		if (past->ready)
			value[n++] = past->value_centre;
	}
	return nt_stats_median_of(value, n);
}

static double cost_of(struct nt_detect *detect, const struct nt_group *group)
{
	return fmax(0.0, group->median[NT_SERIES_OWN] - work_before(detect, group)) /
	       group->step_ns;
}

/* How much more its median is than before; 0: not known. */
static double median_growth(struct nt_detect *detect, const struct nt_group *group)
{
	const double before = work_before(detect, group);

	return before > 0.0 ? group->median[NT_SERIES_OWN] / before - 1.0 : 0.0;
}

/* The mean over rounds: with sequences of random length a single round says little. */
static void add_growth(struct nt_detect *detect, struct nt_group *group)
{
	const double rounds = fmin(group->jump_rounds, 1.0 / NT_SHARED_PART);

	group->jump_growth +=
		(median_growth(detect, group) - group->jump_growth) / fmax(1.0, rounds);
}

bool nt_whole_role_explains(struct nt_detect *detect, const struct nt_detect_rank *rank,
			    const struct nt_track *track)
{
	const struct nt_group *group = &detect->roles.group[rank->group];
	double role = group->shared_growth, own = track->net;

	if (track->mode != NT_MODE_PAST)
		return false;
	if (is_current(detect, group)) {
		role = fmax(role, group->jump_rounds > 1 ? group->jump_growth
							 : median_growth(detect, group));
		own = fmin(own,
			   rank->evidence.value[NT_STEP_METRIC_OWN] /
					   fmax(1.0, rank->track[NT_SERIES_OWN].past.value_centre) -
				   1.0);
	}
	return role - track->settled >= NT_EXPLAINS * own;
}

/* Most of its ranks are abnormal, and none of them alone. */
static bool is_to_be_named(const struct nt_detect *detect, const struct nt_group *group)
{
	return is_current(detect, group) && 2 * group->together >= group->members &&
	       !nt_peer_group_is_blamed(detect, group);
}

/* Lists the ranks of all that are to be named in scratch, ascending. */
static uint32_t list_ranks(struct nt_detect *detect)
{
	uint32_t *list = detect->scratch.index, *named = detect->scratch.label, n = 0;

	for (uint32_t i = 0; i < detect->roles.groups; i++)
		named[i] = is_to_be_named(detect, &detect->roles.group[i]);
	for (uint32_t i = 0; i < detect->ranks; i++)
		if (detect->rank[i].group < detect->roles.groups && named[detect->rank[i].group])
			list[n++] = detect->rank[i].rank;
	return n;
}

/* Its next round will show whether the growth lasts; not if all its ranks ended. */
static bool is_awaited(const struct nt_detect *detect, const struct nt_group *group)
{
	if (!group->jumped || group->round_frame == detect->frames)
		return false;
	for (uint32_t i = 0; i < group->members; i++)
		if (!detect->rank[detect->roles.member[group->first + i]].ended)
			return true;
	return false;
}

static int raise_role(struct nt_detect *detect, const struct nt_group *group)
{
	struct nt_proposal proposal = {
		.family = NT_FAMILY_WHOLE_ROLE,
		.class = 2 * group->computing >= group->together ? NT_CLASS_COMPUTE
								 : NT_CLASS_UNKNOWN,
		.kind = NT_CULPRIT_STAGE,
		.onset_ns = group->jump_since_ns,
		.cost = cost_of(detect, group),
		.tier = group->tier[NT_SERIES_OWN],
	};

	proposal.rank = detect->scratch.index;
	proposal.ranks = list_ranks(detect);
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_ROLE_WORK,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = NT_EVIDENCE_TEXT_OWN_PAST,
		.value = group->median[NT_SERIES_OWN] / 1e6,
		.peers = work_before(detect, group) / 1e6,
		.windows = group->jump_rounds,
	};
	return nt_incidents_raise(detect, &proposal);
}

int nt_whole_role_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	const struct nt_group *worst = NULL;
	double residual = 0.0;
	bool judged = false, awaited = false;
	int r = 0;

	(void)frame;
	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		struct nt_group *group = &detect->roles.group[i];

		judged |= group->round_frame == detect->frames;
		awaited |= is_awaited(detect, group);
		if (is_current(detect, group)) {
			add_growth(detect, group);
			residual = fmax(residual, cost_of(detect, group));
		}
		if (is_to_be_named(detect, group) &&
		    (!worst || cost_of(detect, group) > cost_of(detect, worst)))
			worst = group;
	}
	if (worst)
		r = raise_role(detect, worst);
	if (r == 0 && judged && !awaited)
		nt_incidents_judge(detect, NT_FAMILY_WHOLE_ROLE, 0, residual);
	return r;
}
