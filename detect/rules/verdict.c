/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Verdicts: whether a high sum is a finding, and its class. */
#include "detect/rules/verdict.h"

#include <math.h>

#include "common/base/sort.h"
#include "detect/baseline/fleet_spread.h"
#include "detect/baseline/peer_deviation.h"
#include "detect/baseline/peer_group.h"
#include "detect/baseline/peer_pair.h"
#include "detect/baseline/step_evidence.h"
#include "detect/incidents/gpu_cause.h"
#include "detect/incidents/host_cause.h"
#include "detect/incidents/incident_raise.h"
#include "detect/incidents/node.h"
#include "detect/math/stats.h"
#include "detect/rules/whole_role.h"
#include "detect/thresholds/thresholds.h"

/*
 * Lower bound of the cost since the onset: the mean of a few noisy windows minus its standard
 * error. `was_peer_deviation` is the permanent part.
 */
static double sure_cost(const struct nt_cusum *sum, double width, double was_peer_deviation)
{
	const double cost = nt_cusum_cost(sum), peer_deviation = nt_cusum_peer_deviation(sum);

	if (peer_deviation <= 0.0)
		return 0.0;
	return cost / peer_deviation *
	       (peer_deviation - was_peer_deviation - width / sqrt(sum->windows));
}

static bool is_high(const struct nt_cusum *sum, double threshold)
{
	return sum->sum >= threshold && nt_cusum_lasts(sum);
}

/*
 * Whether this growth of a rank's work explains the job's longer step. Peers that wait inside
 * collectives beside their own work seem to work less, so that it explains only a part of the
 * rank's deviation from them.
 */
static bool explains_step(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			  double growth_ns)
{
	const double step = rank->step_metric[NT_STEP_METRIC_STEP];
	const double longer = step - detect->step.past.value_centre;

	return detect->step.past.ready && longer >= detect->rules.size_floor * step &&
	       growth_ns >= NT_EXPLAINS * longer;
}

/*
 * What all ranks work less than before, part of their work. Where work overlaps with collectives, and the
 * step is longer, they do not: they wait.
 */
static double common_drop(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			  enum nt_series series)
{
	const double step = rank->step_metric[NT_STEP_METRIC_STEP];

	if (rank->step_metric[NT_STEP_METRIC_OWN_LONGEST] > 0.0 && detect->step.past.ready &&
	    step - detect->step.past.value_centre >= detect->rules.size_floor * step)
		return 0.0;
	return detect->step.job_wide[series].drop;
}

/*
 * Whether the rank itself became slower, not only its peers faster: at least half of its deviation
 * is its own growth, or the growth explains the longer step. A decrease common to all ranks counts
 * as growth. A single window in which all ranks grew, half as much or more, shows no growth of its own.
 */
static bool grew(const struct nt_detect *detect, const struct nt_detect_rank *rank,
		 enum nt_series series, const struct nt_cusum *sum, double was_value)
{
	const struct nt_track *track = &rank->track[series];
	const double base = nt_peer_deviation_base(&detect->rules, was_value,
						   rank->step_metric[NT_STEP_METRIC_STEP]);
	const struct nt_job_wide *wide = &detect->step.job_wide[series];
	const double more = (track->value - was_value) / base;
	const double growth = more - common_drop(detect, rank, series);

	if (track->mode == NT_MODE_PAST)
		return true;
	/* A single good window does not end the fault. */
	if (rank->in_incident)
		return true;
	if (wide->growth > NT_EXPLAINS * more && wide->level.sum < detect->threshold)
		return false;
	return growth >= NT_EXPLAINS * nt_cusum_peer_deviation(sum) ||
	       explains_step(detect, rank, growth * base);
}

/*
 * Increase in cost that three of four ranks exceed, by their slow means, as single windows do not
 * show pauses at different times. Unlike wide->slow_cost it includes ranks still learning their
 * past, to prevent accusations meanwhile.
 */
static double common_cost(struct nt_detect *detect, enum nt_series series)
{
	struct nt_common_cost *all = &detect->scratch.common_cost[series];
	double *cost = detect->scratch.a;
	uint32_t n = 0, at;

	if (all->frame == detect->frames)
		return all->cost;
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (rank->observed && !rank->ended && rank->track[series].frame)
			cost[n++] = rank->track[series].slow_cost;
	}
	all->frame = detect->frames;
	at = (uint32_t)(NT_WIDE_SHARE * n);
	if (n)
		nt_sort_select(cost, n, at, at);
	all->cost = n ? cost[at] : 0.0;
	return all->cost;
}

/* The largest share of windows in which a rank is far behind. */
static double most_marked(struct nt_detect *detect, enum nt_series series)
{
	struct nt_most_marked *most = &detect->scratch.most_marked[series];

	if (most->frame == detect->frames)
		return most->share;
	*most = (struct nt_most_marked){.frame = detect->frames};
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (rank->observed && !rank->ended)
			most->share = fmax(most->share, rank->track[series].marked);
	}
	return most->share;
}

/*
 * The sum of a fault in some steps only: the rank is far more often than healthy ones, or NULL. Of
 * three ranks that all pause, two may do so in the same windows, so that only the third is far. A
 * slow stage makes others' windows end within steps: they are far less often than its own.
 */
static const struct nt_cusum *find_intermittent(struct nt_detect *detect,
						const struct nt_detect_rank *rank,
						enum nt_series series)
{
	const struct nt_track *track = &rank->track[series];
	const struct nt_cusum *wide = &detect->step.job_wide[series].level;
	/* A larger role of which two ranks are left keeps an old rate. */
	const bool is_pair =
		track->peers_seen == 1 && detect->roles.group[rank->group].members == 2;

	/* The sum of a fault that ended decays slowly. */
	if (!track->far_fresh || track->frame != detect->frames ||
	    (track->mode != NT_MODE_PEERS && !is_pair) ||
	    nt_track_rate_sum(track, &detect->rules) < detect->threshold ||
	    !nt_far_own_suffices(&track->far_own) ||
	    (!rank->in_incident && track->marked < NT_EXPLAINS * most_marked(detect, series)) ||
	    nt_cusum_cost(&track->rate) < detect->rules.size_floor ||
	    (track->peers_seen < NT_FEW_PEERS && wide->sum >= detect->threshold &&
	     nt_cusum_cost(wide) >= NT_EXPLAINS * nt_cusum_cost(&track->rate)))
		return NULL;
	return &track->rate;
}

/*
 * The sum that makes this series of the rank abnormal in most windows, or NULL. *ret_always: the
 * level was present from the start.
 */
static const struct nt_cusum *find_lasting(struct nt_detect *detect,
					   const struct nt_detect_rank *rank, enum nt_series series,
					   bool *ret_always)
{
	const double floor_cost = detect->rules.size_floor;
	const struct nt_track *track = &rank->track[series];
	const struct nt_cusum *level = &track->level, *shift = &track->shift;
	const struct nt_job_wide *wide = &detect->step.job_wide[series];
	const struct nt_lesson *lesson = nt_detect_rank_lesson(detect, rank, series);
	const double step = rank->step_metric[NT_STEP_METRIC_STEP];
	double was_peer_deviation, was_value = 0.0, threshold, now, settled_cost;

	if (track->frame != detect->frames || fmax(level->sum, shift->sum) < detect->threshold)
		return NULL;
	threshold = nt_detect_rank_threshold(detect, rank, series);
	/* Nobody waits for a rank that works less than its peers. */
	if (track->mode == NT_MODE_PAST && track->peers - track->value > floor_cost * step)
		return NULL;
	settled_cost = track->settled *
		       nt_peer_deviation_base(&detect->rules, track->past.value_centre, step) /
		       fmax(1.0, step);
	/* No rank is accused by its past alone of a change common to all, unless that has settled. */
	if (track->mode == NT_MODE_PAST &&
	    (wide->growth - track->settled >= NT_EXPLAINS * track->net ||
	     common_cost(detect, series) - settled_cost >=
		     NT_EXPLAINS * fmax(track->slow_cost - settled_cost, floor_cost)))
		return NULL;
	/* Nor of a fault that ended, or that was seen without peers: sums decay slowly. */
	now = track->mode == NT_MODE_PAST ? track->net : track->peer_deviation;
	if (!rank->in_incident && now < NT_EXPLAINS * fmax(nt_cusum_peer_deviation(level),
							   nt_cusum_peer_deviation(shift)))
		return NULL;
	if (is_high(shift, threshold) && sure_cost(shift, track->shift_width, 0.0) >= floor_cost &&
	    (track->mode == NT_MODE_PAST || nt_past_before(&track->past, lesson, shift->onset_frame,
							   &was_peer_deviation, &was_value)) &&
	    grew(detect, rank, series, shift, was_value))
		return shift;
	/* The level includes windows judged by peers, which its past does not contradict. */
	if (track->mode == NT_MODE_PAST || !is_high(level, threshold) ||
	    nt_cusum_cost(level) < floor_cost)
		return NULL;
	if (nt_past_before(&track->past, lesson, level->onset_frame, &was_peer_deviation,
			   &was_value)) {
		if (track->past.ready)
			was_peer_deviation = nt_past_floor(&track->past, NT_PAST_MOST * floor_cost);
		if (sure_cost(level, track->width, was_peer_deviation) >= floor_cost &&
		    grew(detect, rank, series, level, was_value))
			return level;
	}
	if (!nt_fleet_spread_is_exceeded(detect, rank, series, level))
		return NULL;
	*ret_always = true;
	return level;
}

static const struct nt_cusum *find_abnormal(struct nt_detect *detect,
					    const struct nt_detect_rank *rank,
					    enum nt_series series, bool *ret_always)
{
	const struct nt_group_past *past = detect->roles.group[rank->group].past;
	const struct nt_cusum *sum;

	*ret_always = false;
	/* Work of random length makes the one wait for the other, and then the other for the one. */
	if (rank->track[series].peers_seen == 1 && past &&
	    nt_peer_pair_takes_turns(past, series, &detect->rules))
		return NULL;
	sum = find_lasting(detect, rank, series, ret_always);
	return sum ? sum : find_intermittent(detect, rank, series);
}

static double excess_of(const struct nt_rank_evidence *evidence, enum nt_step_metric item)
{
	return evidence->value[item] - evidence->peers[item];
}

/*
 * No call to a GPU is known: only CPU time is computation, or the time of a GPU whose driver names the
 * process. Its runtime has no probes then, as AMD's, and the host's time contains the GPU's.
 */
static enum nt_class name_cpu_class(const struct nt_rank_evidence *evidence, double excess,
				    enum nt_evidence_text *ret_cause)
{
	const double *value = evidence->value, *peers = evidence->peers;
	const double own = value[NT_STEP_METRIC_OWN], on_cpu = value[NT_STEP_METRIC_ON_CPU];
	/* A library that spins uses CPU time in its calls; the rest is work. */
	const double least = on_cpu - value[NT_STEP_METRIC_COMM], most = fmin(on_cpu, own);
	const enum nt_class host = nt_host_cause(evidence, excess, ret_cause);

	if (*ret_cause != NT_EVIDENCE_TEXT_NONE || host == NT_CLASS_STORAGE)
		return host;
	if (nt_gpu_cause(evidence) != NT_EVIDENCE_TEXT_NONE)
		return NT_CLASS_COMPUTE;
	if (on_cpu + value[NT_STEP_METRIC_RUN_QUEUE] + value[NT_STEP_METRIC_IO] <= 0.0)
		return NT_CLASS_UNKNOWN;
	if (excess_of(evidence, NT_STEP_METRIC_ON_CPU) >= NT_EXPLAINS * excess ||
	    least >= peers[NT_STEP_METRIC_OWN] + NT_EXPLAINS * excess)
		return NT_CLASS_COMPUTE;
	return own - most >= NT_EXPLAINS * excess ? NT_CLASS_HOST : NT_CLASS_UNKNOWN;
}

/* Excess run queue time, outside calls that may spin. */
static double starved_excess(const struct nt_rank_evidence *evidence)
{
	const double outside = 1.0 - evidence->value[NT_STEP_METRIC_COMM] /
					     fmax(1.0, evidence->value[NT_STEP_METRIC_STEP]);

	return excess_of(evidence, NT_STEP_METRIC_RUN_QUEUE) * fmax(0.0, outside);
}

/*
 * Whether host work explains what the rank's longest piece costs. Less of the peers' device work shows while
 * they wait, which is no excess of this rank's device: nor is what exceeds its own growth.
 */
static bool is_host_in_longest(const struct nt_detect_rank *rank)
{
	const struct nt_rank_evidence *evidence = &rank->evidence;
	const double own = evidence->value[NT_STEP_METRIC_OWN];
	const double grown =
		rank->has_metric_mean ? own - rank->metric_mean[NT_STEP_METRIC_OWN] : 0.0;
	double cost = own - nt_step_evidence_peers_work(evidence);

	if (grown > 0.0)
		cost = fmin(cost, grown);
	return evidence->value[NT_STEP_METRIC_OWN_LONGEST] > 0.0 && cost > 0.0 &&
	       excess_of(evidence, NT_STEP_METRIC_HOST) >= NT_HOST_OVERLAPPED * cost;
}

/* Class of a rank with too much own work. */
static enum nt_class name_own_class(const struct nt_detect_rank *rank,
				    enum nt_evidence_text *ret_cause)
{
	const struct nt_rank_evidence *evidence = &rank->evidence;
	const double excess = excess_of(evidence, NT_STEP_METRIC_OWN);

	*ret_cause = NT_EVIDENCE_TEXT_NONE;
	if (excess <= 0.0)
		return NT_CLASS_UNKNOWN;
	if (rank->tier == NT_FRAME_T3)
		return NT_CLASS_COMPUTE;
	/* Device time is measured by the waiting thread, which may then wait for a CPU. */
	if (excess_of(evidence, NT_STEP_METRIC_OWN_BLOCKED) >= NT_EXPLAINS * excess &&
	    starved_excess(evidence) < NT_EXPLAINS * excess && !is_host_in_longest(rank))
		return NT_CLASS_COMPUTE;
	if (rank->uses_gpu)
		return nt_host_cause(evidence, excess, ret_cause);
	return name_cpu_class(evidence, excess, ret_cause);
}

/*
 * Whether long host work delays the job: only if the device was idle meanwhile. Then the thread
 * hardly waits for the device, or the job's step grew as much as the host work.
 */
static bool is_late_host(const struct nt_detect *detect, const struct nt_detect_rank *rank)
{
	const struct nt_rank_evidence *evidence = &rank->evidence;
	const double excess = excess_of(evidence, NT_STEP_METRIC_HOST);
	const double step = evidence->value[NT_STEP_METRIC_STEP];
	const double *value = evidence->value, *peers = evidence->peers;
	const struct nt_past *own = &rank->track[NT_SERIES_OWN].past;
	double was_blocked, grown = 0.0;

	if (excess <= 0.0)
		return false;
	if (value[NT_STEP_METRIC_BLOCKED] <= NT_IDLE_PART * step &&
	    peers[NT_STEP_METRIC_BLOCKED] + peers[NT_STEP_METRIC_COMM] >=
		    value[NT_STEP_METRIC_BLOCKED] + value[NT_STEP_METRIC_COMM] +
			    NT_EXPLAINS * excess)
		return true;
	if (!detect->step.past.ready || !rank->has_metric_mean)
		return false;
	/* Scaled to the normal step, as the slow mean also includes steps misdetected at first. */
	was_blocked = rank->metric_mean[NT_STEP_METRIC_BLOCKED] /
		      fmax(1.0, rank->metric_mean[NT_STEP_METRIC_STEP]) *
		      detect->step.past.value_centre;
	/* More device work also lengthens the step, and the thread waits for it. */
	if (rank->tier == NT_FRAME_T3 && own->ready && evidence->own_weight > 0.0)
		grown = fmax(0.0, value[NT_STEP_METRIC_OWN] - own->value_centre);
	return step - detect->step.past.value_centre - grown >= NT_EXPLAINS * excess &&
	       value[NT_STEP_METRIC_BLOCKED] - was_blocked - grown <= (1.0 - NT_EXPLAINS) * excess;
}

static enum nt_step_metric metric_of(enum nt_series series)
{
	return series == NT_SERIES_OWN ? NT_STEP_METRIC_OWN : NT_STEP_METRIC_HOST;
}

static void add_row(struct nt_proposal *proposal, enum nt_evidence_text what,
		    enum nt_evidence_text unit, enum nt_evidence_text method, double value,
		    double peers, double width, uint32_t windows)
{
	if (proposal->evidences == NT_FINDING_MAX_EVIDENCE)
		return;
	proposal->evidence[proposal->evidences++] =
		(struct nt_detect_evidence){.what = (uint8_t)what,
					    .unit = (uint8_t)unit,
					    .method = (uint8_t)method,
					    .value = value,
					    .peers = peers,
					    .width = width,
					    .windows = windows};
}

static void add_evidence(struct nt_proposal *proposal, const struct nt_detect_rank *rank,
			 const struct nt_track *track, enum nt_series series, double peers,
			 uint32_t windows)
{
	static const struct {
		enum nt_step_metric item;
		enum nt_evidence_text what;
	} row[] = {
		{NT_STEP_METRIC_OWN_BLOCKED, NT_EVIDENCE_TEXT_DEVICE_TIME},
		{NT_STEP_METRIC_BLOCKED, NT_EVIDENCE_TEXT_BLOCKED},
		{NT_STEP_METRIC_ON_CPU, NT_EVIDENCE_TEXT_ON_CPU},
		{NT_STEP_METRIC_RUN_QUEUE, NT_EVIDENCE_TEXT_RUN_QUEUE},
		{NT_STEP_METRIC_IO, NT_EVIDENCE_TEXT_IO_WAIT},
		{NT_STEP_METRIC_GC, NT_EVIDENCE_TEXT_GC_TIME},
	};
	const struct nt_rank_evidence *evidence = &rank->evidence;
	const enum nt_evidence_text method =
		track->mode == NT_MODE_PEERS ? NT_EVIDENCE_TEXT_RATIO : NT_EVIDENCE_TEXT_OWN_PAST;

	add_row(proposal,
		series == NT_SERIES_OWN ? NT_EVIDENCE_TEXT_OWN_WORK : NT_EVIDENCE_TEXT_HOST_WORK,
		NT_EVIDENCE_TEXT_MS, method, evidence->value[metric_of(series)] / 1e6, peers / 1e6,
		track->width * peers / 1e6, windows);
	if (proposal->class == NT_CLASS_COMPUTE)
		nt_gpu_cause_add_evidence(evidence, method, windows, proposal);
	if (series == NT_SERIES_OWN && rank->tier == NT_FRAME_T2)
		add_row(proposal, NT_EVIDENCE_TEXT_HOST_WORK, NT_EVIDENCE_TEXT_MS, method,
			evidence->value[NT_STEP_METRIC_HOST] / 1e6,
			evidence->peers[NT_STEP_METRIC_HOST] / 1e6, 0.0, windows);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (evidence->value[row[i].item] > 0.0 || evidence->peers[row[i].item] > 0.0)
			add_row(proposal, row[i].what, NT_EVIDENCE_TEXT_MS, method,
				evidence->value[row[i].item] / 1e6,
				evidence->peers[row[i].item] / 1e6, 0.0, windows);
	nt_host_cause_add_evidence(evidence, method, windows, proposal);
}

static bool was_slow_itself(const struct nt_detect *detect, const struct nt_track *own)
{
	return own->frame != detect->frames && own->frame + NT_PAST_WINDOWS > detect->frames &&
	       nt_track_sum(own, &detect->rules) >= detect->threshold;
}

/*
 * More work of a whole group is not a fault of its GPUs, unless their node became slow. If it grew
 * at once, the group counts its ranks: see whole_role.h.
 */
static bool is_of_role(struct nt_detect *detect, const struct nt_detect_rank *rank,
		       const struct nt_track *track, struct nt_proposal *proposal)
{
	struct nt_group *group = &detect->roles.group[rank->group];

	if (!nt_whole_role_explains(detect, rank, track))
		return false;
	proposal->of_node = nt_node_jumped(detect, rank->node);
	if (proposal->of_node)
		return false;
	if (proposal->class != NT_CLASS_COMPUTE &&
	    (proposal->class != NT_CLASS_UNKNOWN || !group->jumped))
		return false;
	group->together++;
	group->computing += proposal->class == NT_CLASS_COMPUTE;
	return true;
}

/*
 * At T2 own work contains host work: normal own work means that no rank was delayed. Where work overlaps, it
 * is known less precisely than host work, and need not be abnormal by itself. Two populations of which none
 * has a past say nothing: a late host is then beyond the slower one.
 */
static bool may_be_late_host(const struct nt_detect *detect, const struct nt_detect_rank *rank)
{
	const struct nt_track *own = &rank->track[NT_SERIES_OWN];
	const struct nt_group_past *past = detect->roles.group[rank->group].past;
	const double least = NT_EXPLAINS * excess_of(&rank->evidence, NT_STEP_METRIC_HOST);

	if (rank->tier != NT_FRAME_T2)
		return true;
	if (own->mode == NT_MODE_PEERS)
		return excess_of(&rank->evidence, NT_STEP_METRIC_OWN) >= least;
	return past && past->apart_high > 0.0 && !nt_track_is_judged(own) &&
	       own->value - past->apart_high >= least;
}

static int judge(struct nt_detect *detect, struct nt_detect_rank *rank)
{
	const struct nt_track *track = &rank->track[NT_SERIES_OWN];
	enum nt_series series = NT_SERIES_OWN;
	bool always;
	double peers, next;
	const struct nt_cusum *sum = find_abnormal(detect, rank, series, &always);
	struct nt_proposal proposal = {.family = NT_FAMILY_SLOW, .kind = NT_CULPRIT_RANK};

	if (sum) {
		proposal.class = name_own_class(rank, &proposal.cause);
		if (proposal.class == NT_CLASS_COMPUTE)
			proposal.cause = nt_gpu_cause(&rank->evidence);
	} else {
		/* A window without the effect does not contradict recent ones. */
		if (!may_be_late_host(detect, rank) || was_slow_itself(detect, track))
			return 0;
		series = NT_SERIES_HOST;
		track = &rank->track[series];
		sum = find_abnormal(detect, rank, series, &always);
		if (!sum || !is_late_host(detect, rank))
			return 0;
		if (rank->tier == NT_FRAME_T2 &&
		    name_own_class(rank, &proposal.cause) == NT_CLASS_COMPUTE)
			return 0;
		proposal.class = nt_host_cause(&rank->evidence,
					       excess_of(&rank->evidence, NT_STEP_METRIC_HOST),
					       &proposal.cause);
	}
	/* Against its own mean a pair's rank that is far now and then may show nothing. */
	if (sum == &track->rate && track->mode == NT_MODE_PAST &&
	    proposal.class == NT_CLASS_UNKNOWN)
		return 0;
	/* What happens every so many steps, the program does; a cause says more. */
	if (sum == &track->rate && proposal.cause == NT_EVIDENCE_TEXT_NONE && !rank->in_incident &&
	    nt_far_rhythm_is_regular(&track->rhythm, nt_history_mean_steps(&detect->step.history)))
		return 0;
	if (is_of_role(detect, rank, track, &proposal))
		return 0;
	proposal.series = (uint8_t)series;
	/* For a permanently slower rank the level includes that; the shift began with the fault. */
	if (sum != &track->rate && !always && track->past.ready && track->shift.windows) {
		proposal.onset_ns = track->shift.onset_ns;
		proposal.onset_frame = track->shift.onset_frame;
	} else {
		proposal.onset_ns = sum->onset_ns;
		proposal.onset_frame = sum->onset_frame;
	}
	peers = proposal.class == NT_CLASS_COMPUTE ? nt_step_evidence_peers_work(&rank->evidence)
						   : rank->evidence.peers[metric_of(series)];
	/* Of two hosts the job waits for what the slower one exceeds all others by. */
	next = series == NT_SERIES_HOST && track->mode == NT_MODE_PEERS && track->peers_seen == 1
		       ? fmax(peers, track->peers)
		       : peers;
	proposal.cost = fmax(0.0, rank->evidence.value[metric_of(series)] - next) /
			fmax(1.0, rank->evidence.value[NT_STEP_METRIC_STEP]);
	proposal.tier = rank->tier;
	proposal.chance = sum == &track->rate
				  ? nt_cusum_chance(nt_track_rate_sum(track, &detect->rules),
						    &detect->rules, detect->ranks, 1.0)
				  : nt_cusum_chance(sum->sum, &detect->rules, detect->ranks,
						    nt_detect_rank_factor(detect, rank, series));
	add_evidence(&proposal, rank, track, series, peers, sum->windows);
	rank->track[series].always |= always;
	return nt_incidents_blame(detect, rank, &proposal);
}

int nt_verdict_slow(struct nt_detect *detect, const struct nt_frame *frame)
{
	(void)frame;
	for (uint32_t i = 0; i < detect->ranks; i++) {
		struct nt_detect_rank *rank = &detect->rank[i];
		int r;

		/* Most are below the threshold and are skipped. */
		if (detect->scratch.sum[i] < detect->threshold ||
		    rank->round_frame != detect->frames || !rank->known || rank->ended)
			continue;
		r = judge(detect, rank);
		if (r < 0)
			return r;
	}
	return 0;
}
