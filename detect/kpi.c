/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each rank against its peers. */
#include "detect/kpi.h"

#include <math.h>
#include <string.h>

#include "detect/pace.h"
#include "detect/space.h"
#include "detect/stats.h"
#include "detect/unit.h"

enum {
	WAIT_FRAMES = 3, /* for the ranks of a group that have not ended a step */
	APART_ROUNDS = 20,
	FEW = 3, /* ranks of a role */
	SURE_EXCURSION = 12, /* windows: hiccups by chance are not so many in a row */
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
/* Behind the peers: some of many are so by chance. */
static const double far_widths = 3.0;
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
	return nt_stats_max(nt_stats_max(peers, rules->kpi_floor * step), 1.0);
}

static bool takes_part(const struct nt_rank *rank)
{
	return !rank->ended && !rank->silent;
}

/* One series of one group in one round: the ranks of a tier against each other. */
struct contest {
	struct nt_detect *detect;
	struct nt_group *group;
	enum nt_series series;
	uint8_t tier; /* others do not take part; 0: nobody does */
	uint32_t n;
	double *value; /* of these, in their order */
	double step;
	/* What is found about all of them. */
	struct nt_stats_middle middle; /* of two values or more */
	struct nt_space space;
	double centre;
	double waiting; /* for a processor outside of calls, median of the ranks, a step */
	double width, ceiling; /* ceiling: of sums */
	enum nt_mode mode;
	/* And while they are judged. */
	const struct nt_rank *slowest;
	double slowest_value, most_growth, least_growth;
	double far_cost; /* of all that are far behind their peers, of the step */
	uint32_t fars;
};

static double starved_width(const struct contest *c, double base)
{
	return starved_noise * c->waiting / base;
}

/* While the past is learned: slow beside its peers, and slow by far beside what it was so far. */
static bool may_be_fault(const struct contest *c, const struct nt_track *track,
			 const struct nt_past *so_far)
{
	const double more = track->value - so_far->value_centre;

	return track->level.sum > 0.0 && more >= c->detect->rules.size_floor * c->step &&
	       more > 2.0 * so_far->value_width * so_far->value_centre;
}

static void judge_rank(struct contest *c, struct nt_rank *rank, double value)
{
	const struct nt_rules *rules = &c->detect->rules;
	struct nt_track *track = &rank->track[c->series];
	const double peers = c->n > 1 ? nt_stats_middle_without(&c->middle, value) : 0.0;
	const double base = nt_kpi_base(rules, c->n > 1 ? peers : value, c->step);
	const double kpi = c->n > 1 ? (value - peers) / base : 0.0;
	struct nt_past so_far;
	const bool learns =
		nt_past_so_far(&track->past, nt_rank_lesson(c->detect, rank, c->series), &so_far);
	/* Two populations ask for a past: what there is of it must do. */
	const bool hurried = learns && c->space.two;
	const struct nt_past *past = hurried ? &so_far : &track->past;
	const bool has_past = hurried || past->ready;
	struct nt_cusum_window level = {.start_ns = c->group->wait_start_ns,
					.frame = c->detect->frames,
					.kpi = kpi,
					.ceiling = c->ceiling};
	struct nt_cusum_window shift;
	double own_base = 1.0, own_width = 0.0;

	track->growth = 0.0;
	if (has_past) {
		own_base = nt_kpi_base(rules, past->value_centre, c->step);
		own_width = nt_stats_max(rules->kpi_floor, past_caution * past->value_width);
		own_width = nt_stats_max(own_width, starved_width(c, own_base));
		track->growth = (value - past->value_centre) / own_base;
	}
	track->slow_cost += slow_part * (nt_stats_min(track->growth * own_base / c->step, wild) -
					 track->slow_cost);
	shift = level;
	if (c->mode == NT_MODE_PEERS) {
		level.z = kpi / c->width;
		level.cost = kpi * base / c->step;
		shift.kpi = kpi - nt_past_floor(past, rules->size_floor / 4.0);
		shift.z = shift.kpi / nt_stats_max(c->width, past->kpi_width);
		shift.cost = shift.kpi * base / c->step;
		track->residual = has_past && !track->always ? shift.cost : level.cost;
	} else if (has_past) {
		level.kpi = track->growth;
		level.z = (track->growth - nt_past_doubt(past)) / own_width;
		level.cost = track->growth * own_base / c->step;
		shift = level;
		track->residual = level.cost;
	} else {
		/* Neither peers nor a past tell what is normal. */
		track->residual = kpi * base / c->step;
	}
	/*
	 * Among a few, an excursion that is no chance is what the tail is asked about, and no yardstick
	 * of itself. Among more, it weighs little.
	 */
	if (c->n > FEW || track->level.windows < SURE_EXCURSION || !nt_cusum_lasts(&track->level) ||
	    nt_tail_explains(&c->group->tail[c->series], track->level.windows, track->level.costly))
		nt_tail_add(&c->group->tail[c->series], track->far, nt_tail_is_far(level.z));
	track->far = nt_tail_is_far(level.z);
	nt_cusum_add(&track->level, rules, &level);
	if (has_past)
		nt_cusum_add(&track->shift, rules, &shift);

	track->mode = c->mode == NT_MODE_PEERS ? NT_MODE_PEERS
		      : has_past               ? NT_MODE_PAST
					       : NT_MODE_NONE;
	track->peers_seen = (uint8_t)(c->n - 1 < UINT8_MAX ? c->n - 1 : UINT8_MAX);
	track->frame = c->detect->frames;
	track->value = value;
	track->peers = c->n > 1 ? peers : 0.0;
	track->kpi = kpi;
	track->width = c->mode == NT_MODE_PEERS ? c->width : own_width;
	if (!rank->in_incident && !(learns && may_be_fault(c, track, &so_far)))
		nt_past_learn(&track->past, nt_rank_lesson(c->detect, rank, c->series), kpi, value,
			      c->detect->frames);
	if (!c->slowest || value > c->slowest_value) {
		c->slowest = rank;
		c->slowest_value = value;
	}
	c->most_growth = nt_stats_max(c->most_growth, track->growth);
	c->least_growth = fmin(c->least_growth, track->growth);
	if (c->mode == NT_MODE_PEERS && kpi > far_widths * c->width) {
		c->far_cost += kpi * base / c->step;
		c->fars++;
	}
}

/* Two populations that no rank's own past explains: counted, and reported when they last. */
static void count_apart(const struct contest *c)
{
	const double base = nt_kpi_base(&c->detect->rules, c->centre, c->step);
	const struct nt_space *space = &c->space;
	struct nt_group_past *past = c->group->past;
	double gap = fabs(space->other - space->normal);

	past->apart_cost = 0.0;
	if (!space->two || c->most_growth > gap / 2.0) {
		past->apart -= past->apart > 0;
		past->apart_gap *= 0.95;
		return;
	}
	/* Of two ranks it must be the same one all the time. */
	if (c->n == 2 && past->apart && past->apart_slower != c->slowest->rank)
		past->apart = 0;
	past->apart_slower = c->slowest->rank;
	if (!past->apart)
		past->apart_since_ns = c->group->wait_start_ns;
	past->apart += past->apart < 2 * APART_ROUNDS;
	past->apart_low = c->centre + nt_stats_min(space->other, space->normal) * base;
	past->apart_high = c->centre + nt_stats_max(space->other, space->normal) * base;
	gap = (past->apart_high - past->apart_low) / nt_stats_max(1.0, past->apart_low);
	past->apart_gap += (past->apart == 1 ? 1.0 : 0.1) * (gap - past->apart_gap);
	past->apart_cost = (past->apart_high - past->apart_low) / c->step;
}

/*
 * Who was slowest, and by how much of the step: tells uneven work from one slow rank. Not where that
 * is explained already.
 */
static void note_slowest(const struct contest *c, double steps)
{
	struct nt_group_past *past = c->group->past;
	const bool explained = c->space.two || c->slowest->in_incident;

	if (past->worst.next == NT_RING_MAX)
		past->worst.next = 0;
	past->slowest[past->worst.next] = c->slowest->rank;
	nt_ring_add(&past->worst, NT_RING_MAX,
		    explained ? 0.0 : c->slowest->track[c->series].residual);
	/*
	 * A window holds several steps, or parts of them, each with its own slowest: what each costs adds
	 * up to what they cost the job, unless two are slow in one step.
	 */
	if (!explained)
		nt_ring_add(&past->turn, NT_RING_MAX,
			    c->fars <= steps + 1.0 ? c->far_cost : NT_TURN_CROWDED);
}

/*
 * How many spreads may lie between neighbours of one cluster. Of many values the gaps in the middle
 * are small, and where there are two populations the shortest half is all of one: a long reach would
 * then bridge them.
 */
static double reach(uint32_t n)
{
	return nt_stats_max(0.75, 2.0 * sqrt(8.0 / nt_stats_max(8.0, n)));
}

/* Waiting for a processor outside of calls: a library that spins in its own does no harm by it. */
static double starved_of(double run_queue, double comm, double step)
{
	return run_queue * nt_stats_max(0.0, 1.0 - comm / nt_stats_max(1.0, step));
}

/* Against whom the ranks are judged, and what their spread is: of three or more, by the peers. */
static void compare_peers(struct contest *c, const double *sorted)
{
	const struct nt_rules *rules = &c->detect->rules;
	const double base = nt_kpi_base(rules, c->centre, c->step);
	struct nt_group_past *past = c->group->past;
	struct nt_space *space = &c->space;
	double *kpi = c->detect->scratch.f, core;

	for (uint32_t i = 0; i < c->n; i++)
		kpi[i] = (sorted[i] - c->centre) / base;
	core = nt_stats_core(kpi, c->n);
	nt_ring_add(&past->core[c->series], rules->width_windows, core);
	core = nt_stats_max(rules->kpi_floor, nt_ring_median(&past->core[c->series]));
	*space = nt_space_split(kpi, c->n, reach(c->n) * core, c->detect->scratch.label);
	space->two = space->two &&
		     fabs(space->other - space->normal) * base > rules->size_floor * c->step;

	for (uint32_t i = 0; i < c->n; i++) {
		const double peers = nt_stats_middle_without(&c->middle, sorted[i]);

		kpi[i] = (sorted[i] - peers) / nt_kpi_base(rules, peers, c->step);
	}
	nt_stats_sort(kpi, c->n);
	if (!space->two)
		nt_ring_add(&past->width[c->series], rules->width_windows,
			    nt_stats_width(kpi, c->n));
	c->width = past->width[c->series].count ? nt_ring_median(&past->width[c->series]) : core;
	c->width = nt_stats_max(c->width, rules->kpi_floor);
	c->width = nt_stats_max(c->width, starved_width(c, base));
	c->mode = space->two ? NT_MODE_PAST : NT_MODE_PEERS;
}

static void compare_two(struct contest *c, const double *sorted)
{
	const double base = nt_kpi_base(&c->detect->rules, sorted[0], c->step);

	c->space.normal = 0.0;
	c->space.other = (sorted[1] - sorted[0]) / base;
	c->space.two = c->space.other * base > c->detect->rules.size_floor * c->step;
	c->centre = sorted[0];
}

/* What must be known of all before the first is judged. */
static void compare(struct contest *c)
{
	const struct nt_rules *rules = &c->detect->rules;
	struct nt_tail *tail = &c->group->tail[c->series];
	double *sorted = c->detect->scratch.c;

	memcpy(sorted, c->value, c->n * sizeof(*sorted));
	nt_stats_sort(sorted, c->n);
	c->centre = nt_stats_median(sorted, c->n);
	if (c->n > 1)
		c->middle = nt_stats_middle(sorted, c->n);
	c->group->median[c->series] = nt_stats_median_low(sorted, c->n);
	c->group->tier[c->series] = c->tier;
	c->mode = NT_MODE_PAST;
	c->width = rules->kpi_floor;
	if (c->n >= 3 && c->group->past)
		compare_peers(c, sorted);
	else if (c->n == 2 && c->group->past)
		compare_two(c, sorted);
	c->ceiling = 2.0 * nt_cusum_raised(rules, c->detect->threshold, nt_tail_factor(tail));
	nt_tail_fade(tail);
}

/* Own work is compared among ranks of one tier: the one that most have, the higher where equal. */
static uint8_t common_tier(const uint32_t *count)
{
	uint8_t best = 0;

	for (uint8_t tier = NT_FRAME_T2; tier <= NT_FRAME_T3; tier++)
		if (count[tier] && (!best || count[tier] >= count[best]))
			best = tier;
	return best;
}

/* What is not seen at this tier is what it was; what was never seen is learned at once. */
static void learn_habit(struct nt_rank *rank, bool has_own)
{
	const double part = rank->has_habit ? 0.1 : 1.0;
	const double own = rank->habit[NT_PACE_OWN], blocked = rank->habit[NT_PACE_OWN_BLOCKED];

	for (int j = 0; j < NT_PACE_END; j++)
		rank->habit[j] += part * (rank->pace[j] - rank->habit[j]);
	rank->has_habit = true;
	if (has_own && own != 0.0)
		return;
	rank->habit[NT_PACE_OWN] = has_own ? rank->pace[NT_PACE_OWN] : own;
	rank->habit[NT_PACE_OWN_BLOCKED] = has_own ? rank->pace[NT_PACE_OWN_BLOCKED] : blocked;
}

/* As it always was: who is slower than its peers by nature has habits, too. */
static bool is_usual(const struct nt_track *track)
{
	return (track->past.ready ? track->shift.sum : track->level.sum) <= 0.0;
}

/* While nothing is suspicious the pace is the rank's habit; evidence is held against it or peers. */
static void gather_evidence(const struct nt_detect *detect, struct nt_rank *rank, double sum,
			    const struct nt_paces *paces, struct nt_pace_middles *middles)
{
	/* Of a round at another tier own work is not known, and not zero. */
	const bool has_own = rank->track[NT_SERIES_OWN].frame == detect->frames;
	const bool own_past =
		rank->track[has_own ? NT_SERIES_OWN : NT_SERIES_HOST].mode == NT_MODE_PAST;
	struct nt_case *evidence = &rank->evidence;

	/* Seen in another way than the others: it is neither a habit nor evidence. */
	if (!nt_rank_shows_host(rank) && !has_own)
		return;
	if (is_usual(&rank->track[NT_SERIES_OWN]) && is_usual(&rank->track[NT_SERIES_HOST]))
		learn_habit(rank, has_own);
	if (sum < detect->threshold / 4.0 && !rank->in_incident) {
		if (evidence->weight != 0.0)
			*evidence = (struct nt_case){0};
		return;
	}
	if (!own_past && paces->n >= 2 && !middles->known)
		nt_paces_middles(detect, paces, middles);
	evidence->weight = 0.95 * evidence->weight + 1.0;
	if (has_own)
		evidence->own_weight = 0.95 * evidence->own_weight + 1.0;
	for (int j = 0; j < NT_PACE_END; j++) {
		const bool is_own = nt_pace_is_own(j);
		const double weight = is_own ? evidence->own_weight : evidence->weight;
		double peers = rank->has_habit ? rank->habit[j] : 0.0;

		if (is_own && !has_own)
			continue;
		if (!own_past && middles->held[j] >= 2)
			peers = nt_stats_middle_without(&middles->of[j], rank->pace[j]);
		evidence->value[j] += (rank->pace[j] - evidence->value[j]) / weight;
		evidence->peers[j] += (peers - evidence->peers[j]) / weight;
	}
}

/* Puts the values of a contest side by side. */
/*
 * What hosts do is seen from their calls, whatever else tells of own work: it is one figure at all tiers,
 * and a window that does not hold at T3 is no other one.
 */
static bool takes_part_in(const struct contest *c, const struct nt_rank *rank)
{
	return c->tier &&
	       (c->series == NT_SERIES_HOST ? nt_rank_shows_host(rank) : rank->tier == c->tier);
}

static uint32_t count_parts(const struct contest *c, const struct nt_paces *paces)
{
	return c->series == NT_SERIES_HOST ? paces->hosts : paces->tiers[c->tier];
}

static void line_up(const struct nt_detect *detect, const struct nt_paces *paces, struct contest *c)
{
	const double *value =
		paces->column[c->series == NT_SERIES_OWN ? NT_PACE_OWN : NT_PACE_HOST];

	c->n = count_parts(c, paces);
	if (c->n == paces->n) {
		memcpy(c->value, value, c->n * sizeof(*value));
		return;
	}
	for (uint32_t i = 0, n = 0; i < paces->n && n < c->n; i++)
		if (takes_part_in(c, &detect->rank[paces->index[i]]))
			c->value[n++] = value[i];
}

/* What the ranks of a contest wait for a processor in a step: their median. */
static double median_starved(const struct nt_detect *detect, const struct nt_paces *paces,
			     const struct contest *c)
{
	double *const *column = paces->column;
	double *starved = detect->scratch.d;
	uint32_t n = 0;

	for (uint32_t i = 0; i < paces->n && n < c->n; i++)
		if (c->n == paces->n || takes_part_in(c, &detect->rank[paces->index[i]]))
			starved[n++] = starved_of(column[NT_PACE_RUN_QUEUE][i],
						  column[NT_PACE_COMM][i], column[NT_PACE_STEP][i]);
	return nt_stats_median_of(starved, n);
}

/* What the rank's track tells of all ranks together. */
static struct nt_note_track note_of(const struct nt_track *track)
{
	return (struct nt_note_track){.growth = track->past.ready ? track->growth : NAN,
				      .slow_cost = track->slow_cost,
				      .centre = track->past.value_centre,
				      .spread = track->past.value_width};
}

/* Each rank in all of its contests, and what follows for it alone. */
static void judge_ranks(struct nt_detect *detect, const struct nt_paces *paces,
			struct contest *contest)
{
	struct nt_scratch *scratch = &detect->scratch;
	struct nt_pace_middles middles = {.own_tier = contest[NT_SERIES_OWN].tier};
	uint32_t at[NT_SERIES_END] = {0};

	for (uint32_t i = 0; i < paces->n; i++) {
		const uint32_t index = paces->index[i];
		struct nt_rank *rank = &detect->rank[index];

		if (i + NT_RANKS_AHEAD < paces->n) {
			const struct nt_rank *next =
				&detect->rank[paces->index[i + NT_RANKS_AHEAD]];

			nt_rank_expect(&next->window_ns,
				       offsetof(struct nt_rank, evidence.value) -
					       offsetof(struct nt_rank, window_ns));
		}
		for (int j = 0; j < NT_SERIES_END; j++) {
			struct contest *c = &contest[j];
			struct nt_track *track = &rank->track[j];

			scratch->note[index].of[j].growth = NAN;
			if (!takes_part_in(c, rank))
				continue;
			if (track->tier != c->tier)
				*track = (struct nt_track){.tier = c->tier};
			judge_rank(c, rank, c->value[at[j]++]);
			scratch->note[index].of[j] = note_of(track);
			scratch->judged[j]++;
		}
		rank->rounds++;
		rank->round_frame = detect->frames;
		scratch->pace_step[index] = rank->pace[NT_PACE_STEP];
		scratch->run_queue[index] = rank->pace[NT_PACE_RUN_QUEUE];
		scratch->gc[index] = rank->pace[NT_PACE_GC];
		scratch->sum[index] = nt_rank_sum(rank);
		gather_evidence(detect, rank, scratch->sum[index], paces, &middles);
	}
}

/* What the ranks of a round went through, all together. */
struct passed {
	double steps, step_ns, calls;
};

/*
 * How many steps, and how long they took: their sum is the job's time, as every rank's steps follow each
 * other, however windows are cut. One rank that tells of wild ones must not move it. Returns how
 * many, the mean of the ranks.
 */
static double sum_steps(const struct nt_paces *paces, double middle, struct passed *passed)
{
	const double most = 2.0, exact = 16.0;
	const double *took = paces->took, *step = paces->column[NT_PACE_STEP];
	double sum = 0.0;

	for (uint32_t i = 0; i < paces->n; i++) {
		/* By the aligned unit; in parts that add up in any order to the same. */
		const double steps = step[i] > 0.0 ? rint(exact * took[i] / step[i]) / exact : 0.0;

		sum += steps;
		passed->step_ns +=
			rint(nt_stats_clip(took[i], steps * middle / most, steps * middle * most));
	}
	passed->steps += sum;
	passed->calls += paces->calls;
	return sum / paces->n;
}

static void judge_group(struct nt_detect *detect, struct nt_group *group, const uint32_t *ready,
			uint32_t n, struct passed *passed)
{
	struct nt_scratch *scratch = &detect->scratch;
	struct contest contest[NT_SERIES_END] = {{.value = scratch->a}, {.value = scratch->b}};
	const struct contest *own = &contest[NT_SERIES_OWN];
	struct nt_paces paces = nt_paces_take(detect, ready, n);
	double steps;

	group->step_ns = nt_stats_max(nt_unit_align(detect, group, &paces), 1.0);
	steps = sum_steps(&paces, group->step_ns, passed);
	group->window_ns = (double)(detect->end_ns - group->wait_start_ns);
	for (int i = 0; i < NT_SERIES_END; i++) {
		struct contest *c = &contest[i];

		c->detect = detect;
		c->group = group;
		c->series = i;
		c->step = group->step_ns;
		c->tier = i == NT_SERIES_OWN ? common_tier(paces.tiers) : NT_FRAME_T1;
		c->least_growth = INFINITY;
		group->median[i] = -1.0;
		if (!c->tier || !count_parts(c, &paces))
			continue;
		line_up(detect, &paces, c);
		/* Mostly the same ranks are in both. */
		c->waiting = i && c->n == own->n ? own->waiting : median_starved(detect, &paces, c);
		compare(c);
	}
	judge_ranks(detect, &paces, contest);
	group->least_growth = own->n >= 2 && own->n == group->members ? own->least_growth : 0.0;
	if (group->past && own->n >= 2) {
		count_apart(own);
		note_slowest(own, steps);
	}
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
	memset(scratch->pace_step, 0, size);
	memset(scratch->run_queue, 0, size);
	memset(scratch->gc, 0, size);
	memset(scratch->sum, 0, size);
	memset(scratch->judged, 0, sizeof(scratch->judged));
}

int nt_kpi_rounds(struct nt_detect *detect, const struct nt_frame *frame)
{
	struct passed passed = {0};
	double all = 0.0;

	(void)frame;
	forget_round(detect);
	for (uint32_t g = 0; g < detect->roles.groups; g++) {
		struct nt_group *group = &detect->roles.group[g];
		uint32_t *ready = detect->scratch.index;
		uint32_t n = 0, live = 0;

		for (uint32_t i = 0; i < group->members; i++) {
			const uint32_t index = detect->roles.member[group->first + i];
			const struct nt_rank *rank = &detect->rank[index];

			if (!takes_part(rank))
				continue;
			live++;
			if (!rank->steps)
				continue;
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
		judge_group(detect, group, ready, n, &passed);
	}
	all = nt_stats_max(all, 1.0);
	detect->step.round_steps = passed.steps / all;
	detect->step.round_ns = passed.step_ns / all;
	detect->step.round_calls = passed.calls / all;
	return 0;
}
