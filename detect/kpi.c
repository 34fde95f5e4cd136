/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each rank against its peers. */
#include "detect/kpi.h"

#include <math.h>
#include <string.h>

#include "detect/space.h"
#include "detect/stats.h"
#include "detect/unit.h"

enum {
	WAIT_FRAMES = 3, /* for the ranks of a group that have not ended a step */
	APART_ROUNDS = 20,
};

/*
 * Where threads wait for a processor, a part of that falls into what is taken for their own work, and
 * for seconds more on one rank than on another. Of the median time that ranks wait so in a step this
 * part counts as noise. Seen on eight ranks that shared two processors with other programs: 33 % of
 * the step spent waiting, and one rank's own work 7 % longer for 5 s.
 */
static const double starved_noise = 0.25;
/* The width of twenty windows is too narrow by chance as often as not. */
static const double past_caution = 1.25;
/* Of the last window in a slow mean, which one wild window must not move much. */
static const double slow_part = 0.25, wild = 0.25;
static const uint64_t longest_ns = (uint64_t)1 << 56; /* two years: beyond it a duration is noise */

static bool is_plausible(const struct nt_frame_rank *seen)
{
	const uint64_t step = seen->step_ns;

	if (!step || step > longest_ns || seen->window_ns > longest_ns)
		return false;
	/* Busy times of several streams may add up to more than the step, but not to any number. */
	return seen->own_ns / 2 <= step && seen->own_blocked_ns / 2 <= step &&
	       seen->host_ns / 2 <= step && seen->blocked_ns / 2 <= step &&
	       seen->comm_ns / 64 <= step;
}

void nt_kpi_sum(struct nt_detect *detect, struct nt_rank *rank, const struct nt_frame_rank *seen)
{
	const uint64_t value[NT_PACE_END] = {
		[NT_PACE_OWN] = seen->own_ns,
		[NT_PACE_OWN_BLOCKED] = seen->own_blocked_ns,
		[NT_PACE_HOST] = seen->host_ns,
		[NT_PACE_BLOCKED] = seen->blocked_ns,
		[NT_PACE_COMM] = seen->comm_ns,
		[NT_PACE_STEP] = seen->step_ns,
		[NT_PACE_ON_CPU] = seen->on_cpu_ns,
		[NT_PACE_RUN_QUEUE] = seen->run_queue_ns,
		[NT_PACE_IO] = seen->io_ns,
		[NT_PACE_GC] = seen->gc_ns,
		[NT_PACE_READ] = seen->read_bytes,
		[NT_PACE_WRITE] = seen->write_bytes,
		[NT_PACE_FAULTS] = seen->major_faults,
		[NT_PACE_CALLS] = nt_unit_calls(seen),
	};

	if (seen->steps && !is_plausible(seen)) {
		detect->implausible++;
		return;
	}
	for (int i = 0; i < NT_PACE_END; i++)
		if (seen->steps || i >= NT_PACE_THREAD)
			rank->sum[i] = nt_stats_add(rank->sum[i], value[i]);
	rank->window_ns = nt_stats_add(rank->window_ns, seen->window_ns);
	rank->steps += seen->steps < UINT32_MAX - rank->steps ? seen->steps : 0;
}

double nt_kpi_base(const struct nt_rules *rules, double peers, double step)
{
	return fmax(fmax(peers, rules->kpi_floor * step), 1.0);
}

/* Sums become paces: per step, and for the thread, whose window is not cut at steps, scaled to one. */
static void set_pace(struct nt_rank *rank)
{
	const double steps = rank->steps;
	const double step = (double)rank->sum[NT_PACE_STEP] / steps;

	for (int i = 0; i < NT_PACE_THREAD; i++)
		rank->pace[i] = (double)rank->sum[i] / steps;
	for (int i = NT_PACE_THREAD; i < NT_PACE_END; i++)
		rank->pace[i] = rank->window_ns
					? (double)rank->sum[i] * step / (double)rank->window_ns
					: 0.0;
	memset(rank->sum, 0, sizeof(rank->sum));
	rank->window_ns = 0;
	rank->steps = 0;
}

static bool takes_part(const struct nt_rank *rank)
{
	return !rank->ended && !rank->silent;
}

enum {
	AHEAD = 6, /* ranks */
	LINE = 64,
};

/*
 * Ranks lie far apart in memory, and a pass over them would wait for each: what one needs is sent
 * for while those before it are judged.
 */
static void expect(const void *data, size_t size)
{
	for (size_t i = 0; i < size; i += LINE)
		__builtin_prefetch((const char *)data + i, 1);
}

static void expect_track(const struct nt_track *track)
{
	expect(track, sizeof(*track));
}

static void expect_pace(const struct nt_rank *rank)
{
	expect(rank->sum, sizeof(rank->sum) + sizeof(rank->pace));
}

static void expect_evidence(const struct nt_rank *rank)
{
	expect(rank->pace, sizeof(rank->pace) + sizeof(rank->habit));
	for (int i = 0; i < NT_SERIES_END; i++) {
		expect(&rank->track[i].level, 1);
		expect(&rank->track[i].shift, 1);
		expect(&rank->track[i].tier, 1);
	}
	expect(&rank->evidence, 1);
}

/* One series of one group in one round: the ranks that are compared, and their values. */
struct contest {
	struct nt_detect *detect;
	struct nt_group *group;
	enum nt_series series;
	uint8_t tier;
	const uint32_t *index; /* of the ranks */
	uint32_t n;
	double *value, *sorted, *kpi; /* value in the order of index, the others ascending */
	struct nt_stats_middle middle; /* of two values or more */
	uint32_t *label;
	double step;
	double ceiling; /* of sums */
	double starved; /* waiting for a processor outside of calls, median of the ranks, a step */
};

static double starved_width(const struct contest *c, double base)
{
	return starved_noise * c->starved / base;
}

static void judge_rank(const struct contest *c, struct nt_rank *rank, double value, double width,
		       enum nt_mode mode)
{
	const struct nt_rules *rules = &c->detect->rules;
	struct nt_track *track = &rank->track[c->series];
	const double peers = c->n > 1 ? nt_stats_middle_without(&c->middle, value) : 0.0;
	const double base = nt_kpi_base(rules, c->n > 1 ? peers : value, c->step);
	const double kpi = c->n > 1 ? (value - peers) / base : 0.0;
	const bool has_past = track->past.ready;
	struct nt_cusum_window level = {.start_ns = c->group->wait_start_ns,
					.frame = c->detect->frames,
					.kpi = kpi,
					.ceiling = c->ceiling};
	struct nt_cusum_window shift;
	double own_base = 1.0, own_width = 0.0;

	track->growth = 0.0;
	if (has_past) {
		own_base = nt_kpi_base(rules, track->past.value_centre, c->step);
		own_width = fmax(rules->kpi_floor, past_caution * track->past.value_width);
		own_width = fmax(own_width, starved_width(c, own_base));
		track->growth = (value - track->past.value_centre) / own_base;
	}
	track->slow_cost +=
		slow_part * (fmin(track->growth * own_base / c->step, wild) - track->slow_cost);
	shift = level;
	if (mode == NT_MODE_PEERS) {
		level.z = kpi / width;
		level.cost = kpi * base / c->step;
		shift.kpi = kpi - nt_past_floor(&track->past, rules->size_floor / 4.0);
		shift.z = shift.kpi / fmax(width, track->past.kpi_width);
		shift.cost = shift.kpi * base / c->step;
		track->residual = has_past && !track->always ? shift.cost : level.cost;
	} else if (has_past) {
		level.kpi = track->growth;
		level.z = (track->growth - nt_past_doubt(&track->past)) / own_width;
		level.cost = track->growth * own_base / c->step;
		shift = level;
		track->residual = level.cost;
	} else {
		/* Neither peers nor a past tell what is normal. */
		track->residual = kpi * base / c->step;
	}
	nt_tail_add(&c->group->tail[c->series], track->far, nt_tail_is_far(level.z));
	track->far = nt_tail_is_far(level.z);
	nt_cusum_add(&track->level, rules, &level);
	if (has_past)
		nt_cusum_add(&track->shift, rules, &shift);

	track->mode = mode == NT_MODE_PEERS ? NT_MODE_PEERS
		      : has_past            ? NT_MODE_PAST
					    : NT_MODE_NONE;
	track->peers_seen = (uint8_t)(c->n - 1 < UINT8_MAX ? c->n - 1 : UINT8_MAX);
	track->frame = c->detect->frames;
	track->value = value;
	track->peers = c->n > 1 ? peers : 0.0;
	track->kpi = kpi;
	track->width = mode == NT_MODE_PEERS ? width : own_width;
	if (!rank->in_incident)
		nt_past_learn(&track->past, nt_rank_lesson(c->detect, rank, c->series), kpi, value,
			      c->detect->frames);
}

/* Two populations that no rank's own past explains: counted, and reported when they last. */
static void count_apart(const struct contest *c, const struct nt_space *space, double middle)
{
	const double base = nt_kpi_base(&c->detect->rules, middle, c->step);
	struct nt_group_past *past = c->group->past;
	double gap = fabs(space->other - space->normal);
	bool explained = false;

	if (c->series != NT_SERIES_OWN)
		return;
	for (uint32_t i = 0; i < c->n && !explained; i++) {
		const struct nt_track *track = &c->detect->rank[c->index[i]].track[c->series];

		explained = track->past.ready && track->growth > gap / 2.0;
	}
	past->apart_cost = 0.0;
	if (!space->two || explained) {
		past->apart -= past->apart > 0;
		past->apart_gap *= 0.95;
		return;
	}
	/* Of two ranks it must be the same one all the time. */
	if (c->n == 2 && past->apart &&
	    past->apart_slower != c->detect->rank[c->index[c->value[1] > c->value[0]]].rank)
		past->apart = 0;
	past->apart_slower = c->detect->rank[c->index[c->n > 1 && c->value[1] > c->value[0]]].rank;
	if (!past->apart)
		past->apart_since_ns = c->group->wait_start_ns;
	past->apart += past->apart < 2 * APART_ROUNDS;
	past->apart_low = middle + fmin(space->other, space->normal) * base;
	past->apart_high = middle + fmax(space->other, space->normal) * base;
	gap = (past->apart_high - past->apart_low) / fmax(1.0, past->apart_low);
	past->apart_gap += (past->apart == 1 ? 1.0 : 0.1) * (gap - past->apart_gap);
	past->apart_cost = (past->apart_high - past->apart_low) / c->step;
}

/*
 * Who was slowest, and by how much of the step: tells uneven work from one slow rank. Not where that
 * is explained already.
 */
static void note_slowest(const struct contest *c, bool two)
{
	struct nt_group_past *past = c->group->past;
	const struct nt_rank *slowest;
	uint32_t at = 0;

	if (c->series != NT_SERIES_OWN)
		return;
	for (uint32_t i = 1; i < c->n; i++)
		if (c->value[i] > c->value[at])
			at = i;
	slowest = &c->detect->rank[c->index[at]];
	if (past->worst.next == NT_RING_MAX)
		past->worst.next = 0;
	past->slowest[past->worst.next] = slowest->rank;
	nt_ring_add(&past->worst, NT_RING_MAX,
		    two || slowest->in_incident ? 0.0 : slowest->track[c->series].residual);
}

/*
 * How many spreads may lie between neighbours of one cluster. Of many values the gaps in the middle
 * are small, and where there are two populations the shortest half is all of one: a long reach would
 * then bridge them.
 */
static double reach(uint32_t n)
{
	return fmax(0.75, 2.0 * sqrt(8.0 / fmax(8.0, n)));
}

static double median_starved(const struct contest *c)
{
	double *starved = c->detect->scratch.column[NT_PACE_RUN_QUEUE];

	for (uint32_t i = 0; i < c->n; i++) {
		const double *pace = c->detect->rank[c->index[i]].pace;
		/* A library that spins in its calls waits most of it there, which is no harm. */
		const double outside = 1.0 - pace[NT_PACE_COMM] / fmax(1.0, pace[NT_PACE_STEP]);

		starved[i] = pace[NT_PACE_RUN_QUEUE] * fmax(0.0, outside);
	}
	return nt_stats_median_of(starved, c->n);
}

static void judge_series(struct contest *c)
{
	const struct nt_rules *rules = &c->detect->rules;
	struct nt_group_past *past = c->group->past;
	struct nt_tail *tail = &c->group->tail[c->series];
	struct nt_space space = {0};
	enum nt_mode mode = NT_MODE_PAST;
	double width = rules->kpi_floor, middle;

	c->starved = median_starved(c);
	memcpy(c->sorted, c->value, c->n * sizeof(*c->sorted));
	nt_stats_sort(c->sorted, c->n);
	middle = nt_stats_median(c->sorted, c->n);
	if (c->n > 1)
		c->middle = nt_stats_middle(c->sorted, c->n);
	c->group->median[c->series] = nt_stats_median_low(c->sorted, c->n);
	c->group->tier[c->series] = c->tier;

	if (c->n >= 3 && past) {
		const double base = nt_kpi_base(rules, middle, c->step);
		double core;

		for (uint32_t i = 0; i < c->n; i++)
			c->kpi[i] = (c->sorted[i] - middle) / base;
		core = nt_stats_core(c->kpi, c->n);
		nt_ring_add(&past->core[c->series], rules->width_windows, core);
		core = fmax(rules->kpi_floor, nt_ring_median(&past->core[c->series]));
		space = nt_space_split(c->kpi, c->n, reach(c->n) * core, c->label);
		space.two = space.two &&
			    fabs(space.other - space.normal) * base > rules->size_floor * c->step;

		for (uint32_t i = 0; i < c->n; i++) {
			const double peers = nt_stats_middle_without(&c->middle, c->sorted[i]);

			c->kpi[i] = (c->sorted[i] - peers) / nt_kpi_base(rules, peers, c->step);
		}
		nt_stats_sort(c->kpi, c->n);
		if (!space.two)
			nt_ring_add(&past->width[c->series], rules->width_windows,
				    nt_stats_width(c->kpi, c->n));
		width = past->width[c->series].count ? nt_ring_median(&past->width[c->series])
						     : core;
		width = fmax(width, rules->kpi_floor);
		width = fmax(width, starved_width(c, base));
		mode = space.two ? NT_MODE_PAST : NT_MODE_PEERS;
	} else if (c->n == 2 && past) {
		const double base = nt_kpi_base(rules, c->sorted[0], c->step);

		space.normal = 0.0;
		space.other = (c->sorted[1] - c->sorted[0]) / base;
		space.two = space.other * base > rules->size_floor * c->step;
		middle = c->sorted[0];
	}
	c->ceiling = 2.0 * nt_cusum_raised(rules, c->detect->threshold, nt_tail_factor(tail));
	nt_tail_fade(tail);
	for (uint32_t i = 0; i < c->n; i++) {
		if (i + AHEAD < c->n)
			expect_track(&c->detect->rank[c->index[i + AHEAD]].track[c->series]);
		judge_rank(c, &c->detect->rank[c->index[i]], c->value[i], width, mode);
	}
	if (past && c->n >= 2) {
		count_apart(c, &space, middle);
		note_slowest(c, space.two);
	}
}

/* Only ranks of one tier are compared: of the tier that most have, the higher where equal. */
static uint8_t common_tier(const struct nt_detect *detect, const uint32_t *index, uint32_t n,
			   uint8_t least)
{
	uint32_t count[NT_FRAME_T3 + 1] = {0};
	uint8_t best = 0;

	for (uint32_t i = 0; i < n; i++)
		count[detect->rank[index[i]].tier]++;
	for (uint8_t tier = least; tier <= NT_FRAME_T3; tier++)
		if (count[tier] && (!best || count[tier] >= count[best]))
			best = tier;
	return best;
}

/* The middle of each pace among the ranks. */
static void find_middles(const struct contest *c, const uint32_t *ready, uint32_t n,
			 struct nt_stats_middle *ret_middle)
{
	double *const *column = c->detect->scratch.column;

	for (uint32_t i = 0; i < n; i++)
		for (int j = 0; j < NT_PACE_END; j++)
			column[j][i] = c->detect->rank[ready[i]].pace[j];
	for (int j = 0; j < NT_PACE_END; j++)
		ret_middle[j] = nt_stats_middle_of(column[j], n);
}

/* While nothing is suspicious the pace is the rank's habit; evidence is held against it or peers. */
static void gather_evidence(const struct contest *c, const uint32_t *ready, uint32_t n)
{
	struct nt_detect *detect = c->detect;
	struct nt_stats_middle middle[NT_PACE_END];
	bool has_middle = false;

	for (uint32_t i = 0; i < n; i++) {
		struct nt_rank *rank = &detect->rank[ready[i]];
		const double sum = nt_rank_sum(rank);
		const bool own_past = rank->track[NT_SERIES_OWN].frame == detect->frames
					      ? rank->track[NT_SERIES_OWN].mode == NT_MODE_PAST
					      : rank->track[NT_SERIES_HOST].mode == NT_MODE_PAST;
		struct nt_case *evidence = &rank->evidence;

		if (i + AHEAD < n)
			expect_evidence(&detect->rank[ready[i + AHEAD]]);
		if (sum <= 0.0) {
			for (int j = 0; j < NT_PACE_END; j++)
				rank->habit[j] += (rank->has_habit ? 0.1 : 1.0) *
						  (rank->pace[j] - rank->habit[j]);
			rank->has_habit = true;
		}
		if (sum < detect->threshold / 4.0 && !rank->in_incident) {
			if (evidence->weight != 0.0)
				*evidence = (struct nt_case){0};
			continue;
		}
		if (!own_past && n >= 2 && !has_middle) {
			find_middles(c, ready, n, middle);
			has_middle = true;
		}
		evidence->weight = 0.95 * evidence->weight + 1.0;
		for (int j = 0; j < NT_PACE_END; j++) {
			double peers = rank->has_habit ? rank->habit[j] : 0.0;

			if (!own_past && n >= 2)
				peers = nt_stats_middle_without(&middle[j], rank->pace[j]);
			evidence->value[j] +=
				(rank->pace[j] - evidence->value[j]) / evidence->weight;
			evidence->peers[j] += (peers - evidence->peers[j]) / evidence->weight;
		}
	}
}

static void judge_group(struct nt_detect *detect, struct nt_group *group, uint32_t *ready,
			uint32_t n)
{
	struct contest c = {.detect = detect,
			    .group = group,
			    .value = detect->scratch.a,
			    .sorted = detect->scratch.b,
			    .kpi = detect->scratch.c,
			    .label = detect->scratch.label};
	uint32_t *chosen = &detect->scratch.index[detect->scratch.cap];

	for (uint32_t i = 0; i < n; i++) {
		if (i + AHEAD < n)
			expect_pace(&detect->rank[ready[i + AHEAD]]);
		set_pace(&detect->rank[ready[i]]);
	}
	nt_unit_align(detect, group, ready, n);
	for (uint32_t i = 0; i < n; i++)
		c.value[i] = detect->rank[ready[i]].pace[NT_PACE_STEP];
	c.step = fmax(nt_stats_median_of(c.value, n), 1.0);
	group->step_ns = c.step;
	group->window_ns = (double)(detect->end_ns - group->wait_start_ns);

	for (c.series = NT_SERIES_OWN; c.series < NT_SERIES_END; c.series++) {
		const bool own = c.series == NT_SERIES_OWN;

		group->median[c.series] = -1.0;
		c.tier = common_tier(detect, ready, n, own ? NT_FRAME_T2 : NT_FRAME_T1);
		c.index = chosen;
		c.n = 0;
		for (uint32_t i = 0; i < n; i++) {
			struct nt_rank *rank = &detect->rank[ready[i]];
			struct nt_track *track = &rank->track[c.series];

			if (!c.tier || rank->tier != c.tier)
				continue;
			if (track->tier != c.tier)
				*track = (struct nt_track){.tier = c.tier};
			chosen[c.n] = ready[i];
			c.value[c.n++] = rank->pace[own ? NT_PACE_OWN : NT_PACE_HOST];
		}
		if (c.n)
			judge_series(&c);
	}
	for (uint32_t i = 0; i < n; i++) {
		detect->rank[ready[i]].rounds++;
		detect->rank[ready[i]].round_frame = detect->frames;
		detect->scratch.run_queue[ready[i]] =
			detect->rank[ready[i]].pace[NT_PACE_RUN_QUEUE];
	}
	gather_evidence(&c, ready, n);
	group->rounds++;
	group->waited = 0;
	group->round_frame = detect->frames;
}

int nt_kpi_rounds(struct nt_detect *detect, const struct nt_frame *frame)
{
	double steps = 0.0, all = 0.0;

	(void)frame;
	if (detect->ranks)
		memset(detect->scratch.run_queue, 0,
		       detect->ranks * sizeof(*detect->scratch.run_queue));
	for (uint32_t g = 0; g < detect->roles.groups; g++) {
		struct nt_group *group = &detect->roles.group[g];
		uint32_t *ready = detect->scratch.index;
		uint32_t n = 0, live = 0;

		for (uint32_t i = 0; i < group->members; i++) {
			const uint32_t index = detect->roles.member[group->first + i];
			const struct nt_rank *rank = &detect->rank[index];

			live += takes_part(rank);
			if (takes_part(rank) && rank->steps)
				ready[n++] = index;
		}
		all += live;
		if (!n)
			continue;
		if (!group->waited)
			group->wait_start_ns = detect->start_ns;
		if (n < live - live / 8 && group->waited + 1 < WAIT_FRAMES) {
			group->waited++;
			continue;
		}
		for (uint32_t i = 0; i < n; i++)
			steps += detect->rank[ready[i]].steps;
		judge_group(detect, group, ready, n);
	}
	detect->step.round_steps = all > 0.0 ? steps / all : 0.0;
	return 0;
}
