/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Imbalance: uneven work. */
#include "detect/rules/imbalance.h"

#include <math.h>

#include "detect/baseline/peer_deviation.h"
#include "detect/baseline/peer_group.h"
#include "detect/incidents/incident_raise.h"
#include "detect/incidents/straggler_floor.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

/* Whether the group's role is known: not for a rank without known communicators. */
static bool has_role(const struct nt_detect *detect, const struct nt_group *group)
{
	return group->kind != NT_GROUP_ALONE ||
	       detect->rank[detect->roles.member[group->first]].links > 0;
}

static bool is_current(const struct nt_detect *detect, const struct nt_group *group)
{
	return has_role(detect, group) && group->round_frame == detect->frames &&
	       group->median[NT_SERIES_OWN] >= 0.0;
}

/* Its work; before it grew, if it did: see whole_role.h. */
static double work_of(const struct nt_group *group)
{
	return group->jumped ? group->median[NT_SERIES_OWN] / (1.0 + group->shared_growth)
			     : group->median[NT_SERIES_OWN];
}

/* Compares each group with the median of the others of its tier. */
static void compare_roles(struct nt_detect *detect)
{
	double *sorted = detect->scratch.a;
	uint8_t tier = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		const struct nt_group *group = &detect->roles.group[i];

		if (is_current(detect, group) && group->tier[NT_SERIES_OWN] > tier)
			tier = group->tier[NT_SERIES_OWN];
	}
	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		const struct nt_group *group = &detect->roles.group[i];

		if (is_current(detect, group) && group->tier[NT_SERIES_OWN] == tier)
			sorted[n++] = work_of(group);
	}
	nt_stats_sort(sorted, n);
	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		struct nt_group *group = &detect->roles.group[i];
		double others, base;

		if (n < 2 || !is_current(detect, group) || group->tier[NT_SERIES_OWN] != tier)
			continue;
		others = nt_stats_median_without(sorted, n, work_of(group));
		base = nt_peer_deviation_base(&detect->rules, others, group->step_ns);
		group->excess = (work_of(group) - others) / base;
		group->cost = (work_of(group) - others) / group->step_ns;
		if (group->excess <= NT_UNEVEN_PART || group->cost <= detect->rules.size_floor) {
			group->long_rounds -= group->long_rounds > 0;
			continue;
		}
		if (!group->long_rounds)
			group->long_since_ns = group->wait_start_ns;
		group->long_rounds += group->long_rounds < 2 * NT_LONG_ROUNDS;
	}
}

/* Lists the ranks of all groups with more work in scratch, ascending. */
static uint32_t list_ranks(struct nt_detect *detect)
{
	uint32_t *list = detect->scratch.index, n = 0;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (rank->group < detect->roles.groups &&
		    detect->roles.group[rank->group].long_rounds >= NT_LONG_ROUNDS)
			list[n++] = rank->rank;
	}
	return n;
}

/* Large groups always have a slow rank if outliers are common. */
static bool may_take_turns(const struct nt_group *group)
{
	const struct nt_adaptation *tail = &group->tail[NT_SERIES_OWN];

	return group->members <= NT_TURNS_FEW_RANKS ||
	       tail->entries * group->members <= NT_TURNS_FAR * tail->windows;
}

/* Whether a rank is far behind in nearly every round. */
static bool is_costly(const struct nt_ring *worst)
{
	uint32_t costly = 0;

	for (uint32_t i = 0; i < NT_TURNS; i++)
		costly += worst->value[i] >= NT_UNEVEN_PART;
	return worst->count == NT_TURNS && costly >= NT_TURNS_COSTLY;
}

/*
 * A window may hold turns of several ranks, none of them far behind. Their total cost is then equal
 * in nearly every round, whereas the cost of outliers varies.
 */
static bool is_even(const struct nt_ring *turn)
{
	const double middle = nt_ring_median(turn);
	uint32_t alike = 0;

	for (uint32_t i = 0; i < NT_TURNS; i++)
		alike += fabs(turn->value[i] - middle) <= NT_TURNS_ALIKE * middle;
	return turn->count == NT_TURNS && middle >= NT_UNEVEN_PART && alike >= NT_TURNS_COSTLY;
}

/* Some rank is behind in nearly every round, never the same one: the costs, or NULL. */
static const struct nt_ring *find_turns(const struct nt_group *group)
{
	const struct nt_group_past *past = group->past;
	const struct nt_ring *ring;
	uint32_t most = 0;

	if (!past || !may_take_turns(group) || past->worst.count < NT_TURNS)
		return NULL;
	ring = is_costly(&past->worst) ? &past->worst : is_even(&past->turn) ? &past->turn : NULL;
	for (uint32_t i = 0; i < NT_TURNS && ring; i++) {
		uint32_t same = 0;

		for (uint32_t j = 0; j < NT_TURNS; j++)
			same += past->slowest[j] == past->slowest[i];
		if (same > most)
			most = same;
	}
	return most <= NT_TURNS_OF_ONE ? ring : NULL;
}

static double turn(const struct nt_ring *ring, uint32_t oldest)
{
	return ring->value[(ring->next + oldest) % NT_TURNS];
}

/*
 * The onset is the first round that was far behind. If the oldest rounds are far behind as often as
 * all, it began earlier: then the oldest known round.
 */
static uint64_t turns_since(const struct nt_detect *detect, const struct nt_ring *ring)
{
	uint32_t first = 0, early = 0;

	for (uint32_t i = 0; i < NT_TURNS - NT_TURNS_COSTLY; i++)
		early += turn(ring, i) >= NT_UNEVEN_PART;
	if (2 * early >= NT_TURNS - NT_TURNS_COSTLY)
		return nt_history_start(&detect->step.history, NT_HISTORY_ROUNDS);
	while (first + 1 < NT_TURNS && turn(ring, first) < NT_UNEVEN_PART)
		first++;
	return nt_history_start(&detect->step.history, NT_TURNS - 1 - first);
}

/*
 * Mean cost of the turns in the last rounds. False: unknown. Several ranks are slow in one step, or
 * wait for each other in a pipeline, which delays it by more than each rank's own excess.
 */
static bool price_turns(const struct nt_detect *detect, const struct nt_group *group,
			double *ret_cost)
{
	const struct nt_ring *turn = &group->past->turn;
	double sum = 0.0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < turn->count; i++) {
		if (turn->value[i] < 0.0)
			continue;
		sum += turn->value[i];
		n++;
	}
	if (2 * n < NT_TURNS)
		return false;
	*ret_cost = sum / n;
	if (!nt_straggler_floor_take_off(detect, group, NT_SERIES_OWN, 1, *ret_cost, ret_cost))
		return false;
	for (uint32_t i = 0; i < detect->comm_count; i++)
		if (nt_detect_comm_use(detect->comm[i]) == NT_DETECT_COMM_PIPELINE)
			return false;
	return true;
}

/* The group whose turns cost the most, or NULL. */
static const struct nt_group *find_turning(const struct nt_detect *detect)
{
	const struct nt_group *worst = NULL;
	double most = 0.0;

	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		const struct nt_group *group = &detect->roles.group[i];
		const struct nt_ring *ring = is_current(detect, group) ? find_turns(group) : NULL;

		if (ring && nt_ring_median(ring) > most) {
			most = nt_ring_median(ring);
			worst = group;
		}
	}
	return worst;
}

static void add_turns(const struct nt_group *group, struct nt_proposal *proposal)
{
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_SLOWEST,
		.unit = NT_EVIDENCE_TEXT_PERCENT,
		.method = NT_EVIDENCE_TEXT_RATIO,
		.value = 100.0 * nt_ring_median(find_turns(group)),
		.windows = NT_TURNS,
	};
}

static int raise_roles(struct nt_detect *detect)
{
	const struct nt_group *longest = NULL, *turning = find_turning(detect);
	struct nt_proposal proposal = {
		.family = NT_FAMILY_IMBALANCE,
		.class = NT_CLASS_IMBALANCE,
		.kind = NT_CULPRIT_STAGE,
	};

	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		const struct nt_group *group = &detect->roles.group[i];

		if (group->long_rounds >= NT_LONG_ROUNDS && is_current(detect, group) &&
		    !nt_peer_group_is_blamed(detect, group) &&
		    (!longest || group->cost > longest->cost))
			longest = group;
	}
	if (!longest)
		return 0;
	proposal.onset_ns = longest->long_since_ns;
	proposal.rank = detect->scratch.index;
	proposal.ranks = list_ranks(detect);
	proposal.cost = fmax(0.0, longest->cost);
	proposal.tier = longest->tier[NT_SERIES_OWN];
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_ROLE_WORK,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = NT_EVIDENCE_TEXT_ROLES,
		.value = work_of(longest) / 1e6,
		.peers = (work_of(longest) - longest->cost * longest->step_ns) / 1e6,
		.windows = longest->long_rounds,
	};
	if (turning)
		add_turns(turning, &proposal);
	return nt_incidents_raise(detect, &proposal);
}

static int raise_turns(struct nt_detect *detect)
{
	const struct nt_group *group = find_turning(detect);
	struct nt_proposal proposal = {
		.family = NT_FAMILY_IMBALANCE,
		.class = NT_CLASS_IMBALANCE,
		.kind = NT_CULPRIT_STAGE,
	};
	double priced;

	if (!group)
		return 0;
	priced = proposal.cost = nt_ring_median(find_turns(group));
	/* In a wide spread of all ranks the slowest is no outlier, and has no price as such. */
	proposal.unsure = !price_turns(detect, group, &priced) || priced <= 0.0;
	if (priced > 0.0)
		proposal.cost = priced;
	proposal.onset_ns = turns_since(detect, find_turns(group));
	proposal.tier = group->tier[NT_SERIES_OWN];
	add_turns(group, &proposal);
	return nt_incidents_raise(detect, &proposal);
}

int nt_imbalance_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	const struct nt_ring *ring;
	double residual = 0.0;
	bool judged = false;
	int r;

	(void)frame;
	compare_roles(detect);
	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		const struct nt_group *group = &detect->roles.group[i];

		if (!is_current(detect, group))
			continue;
		judged = true;
		if (group->excess > NT_UNEVEN_PART)
			residual = fmax(residual, group->cost);
		ring = find_turns(group);
		if (ring)
			residual = fmax(residual, nt_ring_median(ring));
	}
	if (!judged)
		return 0;
	r = raise_roles(detect);
	if (r < 0)
		return r;
	if (!nt_incidents_find(detect, NT_FAMILY_IMBALANCE, 0) ||
	    !nt_incidents_find(detect, NT_FAMILY_IMBALANCE, 0)->listed) {
		r = raise_turns(detect);
		if (r < 0)
			return r;
	}
	nt_incidents_judge(detect, NT_FAMILY_IMBALANCE, 0, residual);
	return 0;
}
