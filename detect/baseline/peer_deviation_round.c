/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rounds of the groups of a job. */
#include "detect/baseline/peer_deviation_round.h"

#include <math.h>
#include <string.h>

#include "detect/baseline/peer_deviation.h"
#include "detect/baseline/peer_pair.h"
#include "detect/baseline/residual_width.h"
#include "detect/baseline/step_evidence.h"
#include "detect/baseline/step_metrics.h"
#include "detect/baseline/step_unit.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

static bool is_plausible(const struct nt_frame_rank *seen)
{
	const uint64_t step = seen->step_ns;

	if (!step || step > NT_LONGEST_NS || seen->window_ns > NT_LONGEST_NS)
		return false;
	/* Busy times of several streams may exceed the step, but only up to a limit. */
	return seen->own_ns / NT_PLAUSIBLE_TIMES <= step &&
	       seen->own_blocked_ns / NT_PLAUSIBLE_TIMES <= step &&
	       seen->host_ns / NT_PLAUSIBLE_TIMES <= step &&
	       seen->blocked_ns / NT_PLAUSIBLE_CALLS <= step &&
	       seen->comm_ns / NT_PLAUSIBLE_CALLS <= step;
}

/* Where not all calls are timed, the others take as long on average. */
static uint64_t sum_of(const struct nt_frame_op *op)
{
	double sum_ns;

	if (op->timed_calls == op->calls || !op->timed_calls)
		return op->sum_ns;
	sum_ns = (double)op->sum_ns * (double)op->calls / (double)op->timed_calls;
	return sum_ns < (double)NT_LONGEST_NS ? (uint64_t)sum_ns : NT_LONGEST_NS;
}

static uint64_t sum_sync(const struct nt_frame_rank *seen)
{
	uint64_t sum_ns = 0;

	if (seen->collective_ns)
		return seen->collective_ns;
	for (size_t i = 0; i < seen->comms; i++)
		for (size_t j = 0; j < seen->comm[i].ops; j++) {
			const struct nt_frame_op *op = &seen->comm[i].op[j];

			/* Most live calls have no duration. */
			if (op->sum_ns && op->kind == NT_FRAME_SYNCHRONISING)
				sum_ns = nt_stats_add(sum_ns, sum_of(op));
		}
	return sum_ns;
}

void nt_peer_deviation_sum(struct nt_detect *detect, struct nt_detect_rank *rank,
			   const struct nt_frame_rank *seen)
{
	const uint64_t value[NT_STEP_METRIC_END] = {
		[NT_STEP_METRIC_OWN] = seen->own_ns,
		[NT_STEP_METRIC_OWN_BLOCKED] = seen->own_blocked_ns,
		[NT_STEP_METRIC_OWN_LONGEST] = seen->own_longest_ns,
		[NT_STEP_METRIC_HOST] = seen->host_ns,
		[NT_STEP_METRIC_BLOCKED] = seen->blocked_ns,
		[NT_STEP_METRIC_COMM] = seen->comm_ns,
		[NT_STEP_METRIC_SYNC] = sum_sync(seen),
		[NT_STEP_METRIC_STEP] = seen->step_ns,
		[NT_STEP_METRIC_ON_CPU] = seen->on_cpu_ns,
		[NT_STEP_METRIC_RUN_QUEUE] = seen->run_queue_ns,
		[NT_STEP_METRIC_IO] = seen->io_ns,
		[NT_STEP_METRIC_GC] = seen->gc_ns,
		[NT_STEP_METRIC_READ] = seen->read_bytes,
		[NT_STEP_METRIC_WRITE] = seen->write_bytes,
		[NT_STEP_METRIC_FAULTS] = seen->major_faults,
		[NT_STEP_METRIC_GPU_THERMAL] = seen->gpu_thermal_ns,
		[NT_STEP_METRIC_GPU_POWER] = seen->gpu_power_ns,
		[NT_STEP_METRIC_GPU_HARDWARE] = seen->gpu_hardware_ns,
		[NT_STEP_METRIC_GPU_ERRORS] = seen->gpu_uncorrected,
		[NT_STEP_METRIC_SYSTEM] = seen->system_ns,
		[NT_STEP_METRIC_QUOTA] = seen->quota_ns,
		[NT_STEP_METRIC_FILE] = seen->file_ns,
		[NT_STEP_METRIC_FAULT_WAIT] = seen->fault_ns,
		[NT_STEP_METRIC_RECLAIM] = seen->reclaim_ns,
		[NT_STEP_METRIC_PROCESS_IO] = seen->process_io_ns,
		[NT_STEP_METRIC_RETRANSMITS] = seen->tcp_retransmits,
		[NT_STEP_METRIC_CALLS] = nt_step_unit_calls(seen),
	};

	if (seen->steps && !is_plausible(seen)) {
		detect->implausible++;
		return;
	}
	for (int i = 0; i < NT_STEP_METRIC_END; i++)
		if (seen->steps || i >= NT_STEP_METRIC_THREAD)
			rank->sum[i] = nt_stats_add(rank->sum[i], value[i]);
	rank->window_ns = nt_stats_add(rank->window_ns, seen->window_ns);
	rank->steps += seen->steps < UINT32_MAX - rank->steps ? seen->steps : 0;
}

static bool takes_part(const struct nt_detect_rank *rank)
{
	return !rank->ended && !rank->silent;
}

/* Own work is compared among ranks of the most common tier; the higher one on a tie. */
static uint8_t common_tier(const uint32_t *count)
{
	uint8_t best = 0;

	for (uint8_t tier = NT_FRAME_T2; tier <= NT_FRAME_T3; tier++)
		if (count[tier] && (!best || count[tier] >= count[best]))
			best = tier;
	return best;
}

static void line_up(const struct nt_detect *detect, const struct nt_step_metrics *step_metrics,
		    struct nt_contest *c)
{
	const double *value =
		step_metrics->column[c->series == NT_SERIES_OWN ? NT_STEP_METRIC_OWN
								: NT_STEP_METRIC_HOST];

	c->n = nt_contest_size(c, step_metrics);
	if (c->n == step_metrics->n) {
		memcpy(c->value, value, c->n * sizeof(*value));
		return;
	}
	for (uint32_t i = 0, n = 0; i < step_metrics->n && n < c->n; i++)
		if (nt_contest_holds(c, &detect->rank[step_metrics->index[i]]))
			c->value[n++] = value[i];
}

/* Median run queue time per step of the ranks of a contest. */
static double median_starved(const struct nt_detect *detect,
			     const struct nt_step_metrics *step_metrics, const struct nt_contest *c)
{
	double *const *column = step_metrics->column;
	double *starved = detect->scratch.d;
	uint32_t n = 0;

	for (uint32_t i = 0; i < step_metrics->n && n < c->n; i++)
		if (c->n == step_metrics->n ||
		    nt_contest_holds(c, &detect->rank[step_metrics->index[i]]))
			starved[n++] = nt_peer_starved(column[NT_STEP_METRIC_RUN_QUEUE][i],
						       column[NT_STEP_METRIC_COMM][i],
						       column[NT_STEP_METRIC_STEP][i]);
	return nt_stats_median_of(starved, n);
}

/*
 * What the work of all ranks of a role grew by is the program's: a new phase, a longer sequence,
 * another batch. It is the growth on which they agreed last, or the least since, if that is more by
 * a width. A rank that becomes faster alone makes no other slow. An incomplete past will do, as a
 * fault may have kept it short; unknown while a rank has none. Ranks of a role that jumped have a
 * fault in common.
 */
static double find_shared(const struct nt_contest *c, const struct nt_step_metrics *step_metrics)
{
	const struct nt_detect *detect = c->detect;
	double low = INFINITY, high = -INFINITY, width = 0.0, *shared;
	uint32_t n = 0;

	if (c->n < 2 || !c->group->past || c->group->jumped ||
	    (c->mode != NT_MODE_PAST && c->n > NT_ADAPTATION_FEW_RANKS))
		return NAN;
	shared = &c->group->past->shared[c->series];
	for (uint32_t i = 0; i < step_metrics->n && n < c->n; i++) {
		const struct nt_detect_rank *rank = &detect->rank[step_metrics->index[i]];
		const struct nt_past *past = &rank->track[c->series].past;
		struct nt_past so_far;
		double growth;

		if (!nt_contest_holds(c, rank))
			continue;
		if (!past->ready &&
		    nt_past_so_far(past, nt_detect_rank_lesson(detect, rank, c->series), &so_far))
			past = &so_far;
		else if (!past->ready)
			return NAN;
		if (rank->track[c->series].tier != c->tier)
			return NAN;
		growth = (c->value[n++] - past->value_centre) /
			 nt_peer_deviation_base(&detect->rules, past->value_centre, c->step);
		low = fmin(low, growth);
		high = fmax(high, growth);
		width = fmax(width, past->value_width);
	}
	if (high - low <= NT_COSTLY_PART * detect->rules.size_floor * (1.0 + high))
		*shared += NT_SHARED_PART * (low - *shared);
	return low - *shared > width ? low : *shared;
}

/* Judges each rank in all its contests, then its own state. */
static void judge_ranks(struct nt_detect *detect, const struct nt_step_metrics *step_metrics,
			struct nt_contest *contest)
{
	struct nt_scratch *scratch = &detect->scratch;
	struct nt_step_metric_middles middles = {.own_tier = contest[NT_SERIES_OWN].tier};
	uint32_t at[NT_SERIES_END] = {0};

	for (uint32_t i = 0; i < step_metrics->n; i++) {
		const uint32_t index = step_metrics->index[i];
		struct nt_detect_rank *rank = &detect->rank[index];

		if (i + NT_RANKS_AHEAD < step_metrics->n) {
			const struct nt_detect_rank *next =
				&detect->rank[step_metrics->index[i + NT_RANKS_AHEAD]];

			nt_detect_rank_expect(&next->window_ns,
					      offsetof(struct nt_detect_rank, evidence.value) -
						      offsetof(struct nt_detect_rank, window_ns));
		}
		for (int j = 0; j < NT_SERIES_END; j++) {
			struct nt_contest *c = &contest[j];
			struct nt_track *track = &rank->track[j];

			scratch->contribution[index].of[j].growth = NAN;
			if (!nt_contest_holds(c, rank))
				continue;
			if (track->tier != c->tier)
				*track = (struct nt_track){.tier = c->tier};
			nt_contest_judge(c, rank, c->value[at[j]++]);
			scratch->contribution[index].of[j] = nt_track_contribute(track);
			scratch->judged[j]++;
		}
		rank->rounds++;
		rank->round_frame = detect->frames;
		scratch->step_metric_step[index] = rank->step_metric[NT_STEP_METRIC_STEP];
		scratch->run_queue[index] = rank->step_metric[NT_STEP_METRIC_RUN_QUEUE];
		scratch->gc[index] = rank->step_metric[NT_STEP_METRIC_GC];
		scratch->sum[index] = nt_detect_rank_sum(rank, &detect->rules);
		nt_step_evidence_gather(detect, rank, scratch->sum[index], step_metrics, &middles);
	}
}

/* Totals of the ranks of a round. */
struct passed {
	double steps, step_ns, calls;
};

/*
 * Sums number and time of the steps. The sum is the job's time, as each rank's steps are
 * contiguous, regardless of window boundaries. A single outlier must not affect it. Returns the
 * mean number of steps.
 */
static double sum_steps(const struct nt_step_metrics *step_metrics, double middle,
			struct passed *passed)
{
	const double *took = step_metrics->took, *step = step_metrics->column[NT_STEP_METRIC_STEP];
	double sum = 0.0;

	for (uint32_t i = 0; i < step_metrics->n; i++) {
		/* In the aligned unit, rounded so that the sum does not depend on the order. */
		const double steps = step[i] > 0.0
					     ? rint(NT_DETECT_STEP_PARTS * took[i] / step[i]) /
						       NT_DETECT_STEP_PARTS
					     : 0.0;

		sum += steps;
		passed->step_ns +=
			rint(nt_stats_clip(took[i], steps * middle / NT_DETECT_STEP_TIMES,
					   steps * middle * NT_DETECT_STEP_TIMES));
	}
	passed->steps += sum;
	passed->calls += step_metrics->calls;
	return sum / step_metrics->n;
}

/* The growth of own work that all ranks have, of many three of four: one may have had little to do. */
static double shared_growth(const struct nt_detect *detect,
			    const struct nt_step_metrics *step_metrics)
{
	double *growth = detect->scratch.c;
	uint32_t n = 0;

	for (uint32_t i = 0; i < step_metrics->n; i++) {
		const struct nt_track *own =
			&detect->rank[step_metrics->index[i]].track[NT_SERIES_OWN];

		if (own->frame == detect->frames)
			growth[n++] = own->growth;
	}
	nt_stats_sort(growth, n);
	return n ? growth[n < NT_JUMP_RANKS ? 0 : (uint32_t)(n * NT_JUMP_WITHOUT)] : 0.0;
}

/*
 * All work of a group may grow, as its nodes became slow. Its ranks then have no healthy peer, and are
 * compared with their own pasts.
 */
static void find_jump(const struct nt_detect *detect, struct nt_group *group)
{
	const double growth = group->shared_growth;
	const struct nt_job_wide *wide = &detect->step.job_wide[NT_SERIES_OWN];

	/* What most ranks share is no jump of these. */
	if (group->members == detect->ranks || growth < NT_EXPLAINS * NT_UNEVEN_PART ||
	    (wide->known && wide->growth >= NT_EXPLAINS * growth))
		group->jumped = false;
	else if (!wide->known)
		return;
	else if (growth >= NT_UNEVEN_PART)
		group->jumped = true;
	if (group->jumped && !group->jump_rounds++)
		group->jump_since_ns = group->wait_start_ns;
	if (!group->jumped)
		group->jump_rounds = 0;
}

/*
 * The most that the slowest rank can exceed its peers by, part of the step: by as much as its longest
 * piece of work. Where collectives overlap with computing, the rank that comes last shows more work
 * than others, which is no more work.
 */
static double most_excess(const struct nt_detect *detect,
			  const struct nt_step_metrics *step_metrics, const struct nt_contest *own)
{
	const double *mine = own->slowest->step_metric;
	const double longest = mine[NT_STEP_METRIC_OWN_LONGEST];
	double mean = 0.0;

	for (uint32_t i = 0; i < step_metrics->n; i++)
		mean += detect->rank[step_metrics->index[i]]
				.step_metric[NT_STEP_METRIC_OWN_LONGEST] /
			step_metrics->n;
	if (mean <= 0.0)
		return INFINITY;
	return longest > mean ? mine[NT_STEP_METRIC_OWN] * (1.0 - mean / longest) / own->step : 0.0;
}

/* Ranks on a busy processor are no slower group: they wait for that processor. */
static bool is_starved(const struct nt_contest *c, double gap_ns)
{
	const double *value = c->slowest->step_metric;

	return nt_peer_starved(value[NT_STEP_METRIC_RUN_QUEUE], value[NT_STEP_METRIC_COMM],
			       value[NT_STEP_METRIC_STEP]) >= NT_EXPLAINS * gap_ns;
}

/* How much more the slower population has grown than the other, on average, ns. */
static double gap_growth(const struct nt_contest *c)
{
	return c->grown[0] && c->grown[1]
		       ? c->growth_ns[1] / c->grown[1] - c->growth_ns[0] / c->grown[0]
		       : 0.0;
}

/*
 * Populations that vary touch in some rounds. If its ranks still differ by half of what those did, they
 * are two yet.
 */
static bool may_touch(const struct nt_contest *c)
{
	const struct nt_group_past *past = c->group->past;
	double low = INFINITY, high = -INFINITY;

	for (uint32_t i = 0; i < c->n; i++) {
		low = fmin(low, c->value[i]);
		high = fmax(high, c->value[i]);
	}
	return past->apart && c->n == 2 && c->sample > 2 &&
	       high - low >= NT_EXPLAINS * (past->apart_high - past->apart_low);
}

/* Counts rounds with two populations that no rank's own past explains; reported when they last. */
static void count_apart(const struct nt_contest *c)
{
	const double base = nt_peer_deviation_base(&c->detect->rules, c->centre, c->step);
	const struct nt_peer_clusters *space = &c->space;
	struct nt_group_past *past = c->group->past;
	const bool touch = !c->apart && may_touch(c);
	double gap = touch ? past->apart_high - past->apart_low
			   : fabs(space->other - space->normal) * base;

	past->apart_cost = 0.0;
	if ((!c->apart && !touch) || c->slowest->in_incident || is_starved(c, gap) ||
	    gap_growth(c) > NT_EXPLAINS * gap) {
		past->apart -= past->apart > 0;
		past->apart_gap *= NT_APART_KEPT;
		return;
	}
	/* In a group of two the slower rank must stay the same. */
	if (c->sample == 2 && past->apart && past->apart_slower != c->slowest->rank)
		past->apart = 0;
	past->apart_slower = c->slowest->rank;
	if (!past->apart)
		past->apart_since_ns = c->group->wait_start_ns;
	past->apart += past->apart < 2 * NT_APART_ROUNDS;
	past->apart_cost = gap / c->step;
	if (touch)
		return;
	past->apart_low = c->centre + nt_stats_min(space->other, space->normal) * base;
	past->apart_high = past->apart_low + gap;
	gap /= nt_stats_max(1.0, past->apart_low);
	past->apart_gap += (past->apart == 1 ? 1.0 : NT_APART_PART) * (gap - past->apart_gap);
}

/*
 * Records the slowest rank and its excess, parts of a step: separates uneven work from one slow
 * rank, at most `most`. Skipped where an incident already explains it.
 */
static void note_slowest(const struct nt_contest *c, double steps, double most)
{
	struct nt_group_past *past = c->group->past;
	const bool explained = c->space.two || c->slowest->in_incident || c->group->jumped;

	if (past->worst.next == NT_RING_MAX)
		past->worst.next = 0;
	past->slowest[past->worst.next] = c->slowest->rank;
	nt_ring_add(&past->worst, NT_RING_MAX,
		    explained ? 0.0 : nt_stats_min(c->slowest->track[c->series].residual, most));
	/*
	 * A window holds several steps, each with its own slowest rank. The costs add up to the
	 * job's cost, unless two ranks are slow in one step.
	 */
	if (!explained)
		nt_ring_add(&past->turn, NT_RING_MAX,
			    c->fars <= steps + 1.0 ? nt_stats_min(c->far_cost, most)
						   : NT_TURN_CROWDED);
}

/*
 * `live`: its ranks that take part. What all of them grew by is not known in a round without some:
 * then it is as it was.
 */
static void judge_group(struct nt_detect *detect, struct nt_group *group, uint32_t live,
			const uint32_t *ready, uint32_t n, struct passed *passed)
{
	struct nt_scratch *scratch = &detect->scratch;
	struct nt_contest contest[NT_SERIES_END] = {{.value = scratch->a}, {.value = scratch->b}};
	const struct nt_contest *own = &contest[NT_SERIES_OWN];
	struct nt_step_metrics step_metrics = nt_step_metrics_take(detect, ready, n);
	double steps;

	group->step_ns = nt_stats_max(nt_step_unit_align(detect, group, &step_metrics), 1.0);
	steps = sum_steps(&step_metrics, group->step_ns, passed);
	group->window_ns = (double)(detect->end_ns - group->wait_start_ns);
	for (int i = 0; i < NT_SERIES_END; i++) {
		struct nt_contest *c = &contest[i];

		c->detect = detect;
		c->group = group;
		c->series = i;
		c->step = group->step_ns;
		c->tier = i == NT_SERIES_OWN ? common_tier(step_metrics.tiers) : NT_FRAME_T1;
		group->median[i] = -1.0;
		if (!c->tier || !nt_contest_size(c, &step_metrics))
			continue;
		line_up(detect, &step_metrics, c);
		/* Usually both series have the same ranks. */
		c->waiting = i && c->n == own->n ? own->waiting
						 : median_starved(detect, &step_metrics, c);
		nt_contest_compare(c, &step_metrics);
		c->residual_width = nt_residual_width(c, &step_metrics);
		c->shared = find_shared(c, &step_metrics);
	}
	judge_ranks(detect, &step_metrics, contest);
	if (own->n < 2 || own->n >= live) {
		group->shared_growth = own->n < 2 ? 0.0 : shared_growth(detect, &step_metrics);
		find_jump(detect, group);
	}
	if (group->past && own->n >= 2) {
		count_apart(own);
		note_slowest(own, steps, most_excess(detect, &step_metrics, own));
	}
	group->together = group->computing = 0;
	group->rounds++;
	group->waited = 0;
	group->round_frame = detect->frames;
}

static void forget_round(struct nt_detect *detect)
{
	struct nt_scratch *scratch = &detect->scratch;
	const size_t size = detect->ranks * sizeof(double);

	if (!detect->ranks)
		return;
	memset(scratch->step_metric_step, 0, size);
	memset(scratch->run_queue, 0, size);
	memset(scratch->gc, 0, size);
	memset(scratch->sum, 0, size);
	memset(scratch->judged, 0, sizeof(scratch->judged));
}

static void sum_far_rates(struct nt_detect *detect)
{
	struct nt_far_rate *sum = detect->scratch.far_rate;

	memset(sum, 0, sizeof(detect->scratch.far_rate));
	for (uint32_t i = 0; i < detect->roles.groups; i++)
		for (int j = 0; j < NT_SERIES_END; j++)
			nt_far_rate_plus(&sum[j], &detect->roles.group[i].far_rate[j]);
}

int nt_peer_deviation_rounds(struct nt_detect *detect, const struct nt_frame *frame)
{
	struct passed passed = {0};
	uint32_t stepping = 0;
	double all = 0.0;

	(void)frame;
	forget_round(detect);
	sum_far_rates(detect);
	nt_peer_hosts_note(detect);
	for (uint32_t g = 0; g < detect->roles.groups; g++) {
		struct nt_group *group = &detect->roles.group[g];
		uint32_t *ready = detect->scratch.index;
		uint32_t n = 0, live = 0;

		for (uint32_t i = 0; i < group->members; i++) {
			const uint32_t index = detect->roles.member[group->first + i];
			const struct nt_detect_rank *rank = &detect->rank[index];

			if (!takes_part(rank))
				continue;
			live++;
			stepping += rank->rounds > 0;
			if (!rank->steps)
				continue;
			ready[n++] = index;
		}
		all += live;
		if (!n)
			continue;
		if (!group->waited)
			group->wait_start_ns = detect->start_ns;
		if (n < live - live / NT_WAIT_PART && group->waited + 1 < NT_WAIT_FRAMES) {
			group->waited++;
			continue;
		}
		judge_group(detect, group, live, ready, n, &passed);
	}
	detect->scratch.stepping = stepping;
	all = nt_stats_max(all, 1.0);
	detect->step.round_steps = passed.steps / all;
	detect->step.round_ns = passed.step_ns / all;
	detect->step.round_calls = passed.calls / all;
	return 0;
}
