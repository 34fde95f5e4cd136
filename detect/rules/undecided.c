/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Notes on what deviates although no rank is accused, and why: silence would look like health. */
#include "detect/rules/undecided.h"

#include <math.h>

#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/network_loss.h"
#include "detect/thresholds/thresholds.h"

/* Any other incident says more, or will once it fires; uneven work says nothing of hosts. */
static bool is_said(const struct nt_detect *detect, bool or_pending, bool of_hosts)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->family != NT_FAMILY_UNDECIDED &&
		    (incident->family != NT_FAMILY_IMBALANCE || !of_hosts) &&
		    (or_pending || incident->state == NT_INCIDENT_FIRING))
			return true;
	}
	return false;
}

/*
 * The share of its last windows in which it was far behind its peers. A recording may have less than
 * NT_MARKED_WINDOWS, and no more will follow: those that it has are all.
 */
static double marked_share(const struct nt_detect_rank *rank, bool at_end)
{
	const double marked = rank->track[NT_SERIES_OWN].marked;

	if (!at_end || !rank->rounds)
		return marked;
	return fmin(1.0, marked / (1.0 - pow(1.0 - 1.0 / NT_MARKED_WINDOWS, rank->rounds)));
}

/* The mean of the other ranks of its role: where all have hiccups, one of many has most of them. */
static double others_share(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			   bool at_end)
{
	const struct nt_group *group;
	double sum = 0.0;

	if (rank->group >= detect->roles.groups)
		return 0.0;
	group = &detect->roles.group[rank->group];
	for (uint32_t i = 0; i < group->members; i++)
		sum += marked_share(&detect->rank[detect->roles.member[group->first + i]], at_end);
	return (sum - marked_share(rank, at_end)) / fmax(1.0, group->members - 1.0);
}

/* The rank that is far behind its peers in the largest share of its last windows, or NULL. */
static const struct nt_detect_rank *find_marked(const struct nt_detect *detect, double share,
						bool at_end)
{
	const uint32_t least = at_end ? NT_MARKED_LEAST : NT_UNDECIDED_ROUNDS;
	const struct nt_detect_rank *marked = NULL;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (rank->track[NT_SERIES_OWN].frame != detect->frames || !rank->known ||
		    rank->ended || rank->rounds < least || marked_share(rank, at_end) < share)
			continue;
		if (!marked || marked_share(rank, at_end) > marked_share(marked, at_end))
			marked = rank;
	}
	return marked && marked_share(marked, at_end) >=
				       NT_FAR_RATE_TIMES * others_share(detect, marked, at_end)
		       ? marked
		       : NULL;
}

static enum nt_evidence_text name_reason(const struct nt_detect *detect,
					 const struct nt_track *track)
{
	if (track->growth < NT_EXPLAINS * track->peer_deviation)
		return NT_EVIDENCE_TEXT_NOT_GROWN;
	if (fmax(nt_cusum_cost(&track->level), nt_cusum_cost(&track->rate)) <
	    detect->rules.size_floor)
		return NT_EVIDENCE_TEXT_SMALL;
	return NT_EVIDENCE_TEXT_WEAK;
}

static int raise_rank(struct nt_detect *detect, const struct nt_detect_rank *rank, bool at_end)
{
	const struct nt_track *own = &rank->track[NT_SERIES_OWN];
	const double share = marked_share(rank, at_end);
	struct nt_proposal proposal = {
		.family = NT_FAMILY_UNDECIDED,
		.class = NT_CLASS_UNKNOWN,
		.cause = name_reason(detect, own),
		.note = true,
		.unsure = true,
		.kind = NT_CULPRIT_RANK,
		.rank = &rank->rank,
		.ranks = 1,
		.onset_ns = own->rate.windows ? own->rate.onset_ns : detect->start_ns,
		.cost = fmax(0.0, share * own->residual),
		.tier = rank->tier,
	};

	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_MARKED,
		.unit = NT_EVIDENCE_TEXT_PERCENT,
		.method = NT_EVIDENCE_TEXT_RATIO,
		.value = 100.0 * share,
		.windows = rank->rounds < NT_MARKED_WINDOWS ? rank->rounds : NT_MARKED_WINDOWS,
	};
	return nt_incidents_raise(detect, &proposal);
}

/*
 * The other rank of a role of two, or NULL if their pasts are not known. *ret_excess: how much longer
 * this rank's host works, ns, since the start and on average of late.
 */
static const struct nt_detect_rank *find_peer(const struct nt_detect *detect,
					      const struct nt_detect_rank *rank, double *ret_excess)
{
	const struct nt_track *host = &rank->track[NT_SERIES_HOST];
	const struct nt_group *group =
		rank->group < detect->roles.groups ? &detect->roles.group[rank->group] : NULL;

	for (uint32_t i = 0; group && group->members == 2 && i < 2; i++) {
		const struct nt_detect_rank *peer =
			&detect->rank[detect->roles.member[group->first + i]];
		const struct nt_track *other = &peer->track[NT_SERIES_HOST];

		if (peer == rank || !host->past.ready || !other->past.ready ||
		    host->frame != detect->frames || other->frame != detect->frames)
			continue;
		*ret_excess = fmin(host->past.value_centre - other->past.value_centre,
				   rank->metric_mean[NT_STEP_METRIC_HOST] -
					   peer->metric_mean[NT_STEP_METRIC_HOST]);
		return peer;
	}
	return NULL;
}

/* True if the peer waits that long for this rank, and not for its device. */
static bool is_awaited(const struct nt_detect_rank *rank, const struct nt_detect_rank *peer,
		       double excess)
{
	const double *value = rank->metric_mean, *others = peer->metric_mean;

	return rank->has_metric_mean && peer->has_metric_mean &&
	       others[NT_STEP_METRIC_BLOCKED] + others[NT_STEP_METRIC_COMM] -
			       value[NT_STEP_METRIC_BLOCKED] - value[NT_STEP_METRIC_COMM] >=
		       NT_EXPLAINS * excess &&
	       value[NT_STEP_METRIC_OWN] - others[NT_STEP_METRIC_OWN] < NT_EXPLAINS * excess;
}

/*
 * The rank of a role of two whose host has worked longer than the other's since the start, by the
 * largest part of the step: *ret_part. Their devices' work is judged by nt_two_populations_check().
 */
static const struct nt_detect_rank *find_late_host(const struct nt_detect *detect, double *ret_part)
{
	const struct nt_detect_rank *late = NULL;

	*ret_part = 0.0;
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];
		const double step = rank->step_metric[NT_STEP_METRIC_STEP];
		double excess = 0.0;
		const struct nt_detect_rank *peer = find_peer(detect, rank, &excess);

		if (!peer || rank->ended || peer->ended || step <= 0.0 ||
		    excess <= *ret_part * step || !is_awaited(rank, peer, excess))
			continue;
		*ret_part = excess / step;
		late = rank;
	}
	return late;
}

static int raise_late_host(struct nt_detect *detect, const struct nt_detect_rank *rank, double part)
{
	const struct nt_track *host = &rank->track[NT_SERIES_HOST];
	struct nt_proposal proposal = {
		.family = NT_FAMILY_UNDECIDED,
		.class = NT_CLASS_HOST,
		.cause = NT_EVIDENCE_TEXT_WHICH_OF_TWO,
		.note = true,
		.unsure = true,
		.kind = NT_CULPRIT_RANK,
		.rank = &rank->rank,
		.ranks = 1,
		.onset_ns = nt_history_start(&detect->step.history, NT_HISTORY_ROUNDS),
		.cost = part,
		.tier = rank->tier,
	};

	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_HOST_WORK,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = NT_EVIDENCE_TEXT_RATIO,
		.value = host->value / 1e6,
		.peers = host->peers / 1e6,
		.windows = (uint32_t)fmin(rank->rounds, NT_PAST_WINDOWS),
	};
	return nt_incidents_raise(detect, &proposal);
}

/* A round counts as up to two, so that a stall does not make up for many. */
static struct nt_history_mean mean_of(const struct nt_detect_step *step, uint32_t later,
				      uint32_t rounds)
{
	return nt_history_mean(&step->history, later, rounds,
			       NT_UNDECIDED_MOST * step->past.value_centre);
}

/* The last rounds, no longer than since an incident explained them; 0: too few, or too short. */
static uint32_t count_rounds(const struct nt_detect *detect)
{
	const struct nt_detect_step *step = &detect->step;
	const uint32_t all = step->history.count;
	uint32_t n = all > NT_PAST_WINDOWS ? all - NT_PAST_WINDOWS : 0;

	while (n && nt_history_start(&step->history, n - 1) < step->said_ns)
		n--;
	return n >= NT_UNDECIDED_ROUNDS &&
			       detect->end_ns - nt_history_start(&step->history, n - 1) >=
				       detect->rules.resolve_min_ns
		       ? n
		       : 0;
}

/* The part of the time of these rounds beyond the first ones, 0 if it is within the error of both. */
static double lost_part(struct nt_detect_step *step, uint32_t rounds)
{
	struct nt_history_mean now, half[2];
	double error;

	if (!step->past.ready) {
		step->first = (struct nt_history_mean){0};
		return 0.0;
	}
	if (step->first.step_ns <= 0.0)
		step->first = mean_of(step, 0, NT_PAST_WINDOWS);
	if (step->first.step_ns <= 0.0 || !rounds)
		return 0.0;
	now = mean_of(step, 0, rounds);
	half[0] = mean_of(step, rounds / 2, rounds - rounds / 2);
	half[1] = mean_of(step, 0, rounds / 2);
	error = nt_history_error(&now, rounds, &step->first, NT_PAST_WINDOWS);
	/* In both halves: it lasts, and other rules had the time to find a culprit. */
	if (now.step_ns - step->first.step_ns <= NT_LOST_ERRORS * error ||
	    fmin(half[0].step_ns, half[1].step_ns) - step->first.step_ns <
		    NT_EXPLAINS * (now.step_ns - step->first.step_ns))
		return 0.0;
	return 1.0 - step->first.step_ns / now.step_ns;
}

/* What a job loses, part of the time. */
struct loss {
	uint64_t onset_ns;
	uint32_t windows; /* since then */
	double usual_ns; /* the step before */
	double part;
	bool at_end; /* of a recording */
};

static int raise_job(struct nt_detect *detect, const struct loss *loss)
{
	struct nt_proposal proposal = {
		.family = NT_FAMILY_UNDECIDED,
		.class = NT_CLASS_JOB_WIDE,
		.cause = NT_EVIDENCE_TEXT_NO_CULPRIT,
		.note = true,
		.unsure = true,
		.final = loss->at_end,
		.kind = NT_CULPRIT_STAGE,
		.onset_ns = loss->onset_ns,
		.cost = loss->part,
		.tier = NT_FRAME_T1,
	};

	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_LOST,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = NT_EVIDENCE_TEXT_OWN_PAST,
		.value = loss->usual_ns / (1.0 - loss->part) / 1e6,
		.peers = loss->usual_ns / 1e6,
		.windows = loss->windows,
	};
	nt_network_loss_blame(detect, &proposal);
	return nt_incidents_raise(detect, &proposal);
}

int nt_undecided_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	const struct nt_detect_incident *open = nt_incidents_find(detect, NT_FAMILY_UNDECIDED, 0);
	const struct nt_detect_rank *rank;
	const double least = (open ? NT_EXPLAINS : 1.0) * NT_LOST_SHARE;
	const bool loses = open && open->state == NT_INCIDENT_FIRING &&
			   nt_network_loss_is_named(detect, NT_FAMILY_UNDECIDED);
	const bool said = is_said(detect, !open, false);
	uint32_t rounds;
	double lost;

	(void)frame;
	if (is_said(detect, false, false))
		detect->step.said_ns = detect->end_ns;
	if (is_said(detect, !open, true))
		return open ? nt_incidents_close(detect, NT_FAMILY_UNDECIDED) : 0;
	if (detect->step.round_steps <= 0.0)
		return 0;
	/* Once noted, a rank or job is noted until it deviates half as much. */
	rank = loses || said
		       ? NULL
		       : find_marked(detect, (open ? NT_EXPLAINS : 1.0) * NT_MARKED_SHARE, false);
	rounds = count_rounds(detect);
	lost = lost_part(&detect->step, rounds);
	if (rank)
		return raise_rank(detect, rank, false);
	if (lost >= least && !said)
		return raise_job(detect, &(struct loss){
						 .onset_ns = nt_history_start(&detect->step.history,
									      rounds - 1),
						 .windows = rounds,
						 .usual_ns = detect->step.first.step_ns,
						 .part = lost,
					 });
	/* The steps of a while may be as before: packets are lost at random. */
	if (loses)
		return 0;
	rank = find_late_host(detect, &lost);
	if (rank && lost >= least)
		return raise_late_host(detect, rank, lost);
	return open ? nt_incidents_close(detect, NT_FAMILY_UNDECIDED) : 0;
}

/*
 * A recording may be too short for a past of its own, and hold what is over: finds the stretch of rounds
 * that are longer than those around it. False: there is none, or too little is lost.
 */
static bool find_stretch(const struct nt_detect *detect, struct loss *ret_loss)
{
	const struct nt_history *history = &detect->step.history;
	struct nt_history_stretch stretch;

	if (!nt_history_find_stretch(history, NT_LOST_SHARE, &stretch) ||
	    stretch.rounds < NT_STRETCH_LEAST || stretch.lost < NT_LOST_SHARE)
		return false;
	*ret_loss = (struct loss){
		.onset_ns = stretch.onset_ns,
		.windows = stretch.rounds,
		.usual_ns = stretch.usual_ns,
		.part = 1.0 - stretch.usual_ns / stretch.step_ns,
		.at_end = true,
	};
	return true;
}

int nt_undecided_remark(struct nt_detect *detect)
{
	const struct nt_detect_rank *rank = find_marked(detect, NT_FAR_RATE_FAULTY, true);
	const struct nt_detect_step *step = &detect->step;
	const double lost = nt_cusum_cost(&step->level);
	struct loss loss;

	if (detect->incidents.opens || step->said_ns)
		return 0;
	if (rank && nt_cusum_cost(&rank->track[NT_SERIES_OWN].rate) >= NT_LOST_SHARE)
		return raise_rank(detect, rank, true);
	/* It is too short for the note of a job that runs. */
	if (lost >= NT_LOST_SHARE && step->level.sum >= NT_WIDE_TIMES * detect->threshold &&
	    nt_cusum_lasts(&step->level))
		return raise_job(detect, &(struct loss){
						 .onset_ns = step->level.onset_ns,
						 .windows = step->level.windows,
						 .usual_ns = step->past.value_centre,
						 .part = lost,
						 .at_end = true,
					 });
	return find_stretch(detect, &loss) ? raise_job(detect, &loss) : 0;
}
