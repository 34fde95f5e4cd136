/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares each rank with its peers. */
#include "detect/baseline/peer_deviation.h"

#include <math.h>
#include <string.h>

#include "detect/baseline/far_count.h"
#include "detect/baseline/peer_group.h"
#include "detect/baseline/peer_pair.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

double nt_peer_deviation_base(const struct nt_rules *rules, double peers, double step)
{
	return nt_stats_max(nt_stats_max(peers, rules->peer_deviation_floor * step), 1.0);
}

uint32_t nt_contest_size(const struct nt_contest *c, const struct nt_step_metrics *step_metrics)
{
	return c->series == NT_SERIES_HOST ? step_metrics->hosts : step_metrics->tiers[c->tier];
}

/* While learning: slower than its peers, and much slower than its own past so far. */
static bool may_be_fault(const struct nt_contest *c, const struct nt_track *track, double value,
			 const struct nt_past *so_far)
{
	const double more = value - so_far->value_centre;

	return track->level.sum > 0.0 && more >= c->detect->rules.size_floor * c->step &&
	       more > NT_PAST_FAULT_WIDTHS * so_far->value_width * so_far->value_centre;
}

/*
 * Updates the slowest rank and the sum of far ranks. `cost`: the rank's excess, part of the step;
 * `growth_ns`: against its own past, 0 without one.
 */
static void note_rank(struct nt_contest *c, const struct nt_detect_rank *rank, double cost,
		      double growth_ns)
{
	const struct nt_track *track = &rank->track[c->series];

	const double middle =
		c->centre + (c->space.normal + c->space.other) / 2.0 *
				    nt_peer_deviation_base(&c->detect->rules, c->centre, c->step);
	const bool is_above = track->value > middle;

	c->growth_ns[is_above] += growth_ns;
	c->grown[is_above]++;
	if (!c->slowest || track->value > c->slowest_value) {
		c->slowest = rank;
		c->slowest_value = track->value;
	}
	if (c->mode == NT_MODE_PEERS && track->peer_deviation > NT_FAR_WIDTHS * c->width) {
		c->far_cost += cost;
		c->fars++;
	}
}

/* A role of two: each is the other's only peer. */
static bool is_pair(const struct nt_contest *c)
{
	return c->n == 2 && c->sample == 2 && c->group->members == 2;
}

/*
 * With few ranks, an excursion that is not random must not raise the threshold it is compared with.
 * With more ranks it weighs little.
 */
static void adapt(struct nt_contest *c, struct nt_track *track, bool is_far)
{
	struct nt_adaptation *tail = &c->group->tail[c->series];

	if (c->sample > NT_ADAPTATION_FEW_RANKS || track->level.windows < NT_ADAPTATION_EXCURSION ||
	    !nt_cusum_lasts(&track->level) ||
	    nt_adaptation_explains(tail, track->level.windows, track->level.costly))
		nt_adaptation_add(tail, track->far_run > 0, is_far);
	if (!is_far)
		nt_adaptation_add_run(tail, track->far_run);
	track->far_run = is_far ? track->far_run + (track->far_run < UINT8_MAX) : 0;
}

/* What a value is compared with if it is compared with its past. */
struct own {
	double base; /* the divisor of a growth */
	double width; /* of the growth that is the rank's own */
	double scale; /* what the role's common growth made of the base */
};

/* `usual`: its past, or what is known of it so far; NULL without one. */
static void add_slow_cost(const struct nt_contest *c, struct nt_track *track,
			  const struct nt_past *usual, double value)
{
	const double cost = usual ? (value - usual->value_centre) / c->step : 0.0;

	track->slow_cost += NT_SLOW_PART * (nt_stats_min(cost, NT_SLOW_MOST) - track->slow_cost);
}

/* Sets the track's growth. `past` and `usual` may be NULL. */
static struct own compare_past(const struct nt_contest *c, struct nt_track *track,
			       const struct nt_past *past, const struct nt_past *usual,
			       double value)
{
	const struct nt_rules *rules = &c->detect->rules;
	struct own own = {.base = 1.0, .scale = 1.0};

	track->growth = track->net = 0.0;
	track->growth_known = track->past.ready;
	track->settled = 0.0;
	if (past) {
		own.base = nt_peer_deviation_base(rules, past->value_centre, c->step);
		own.width = nt_stats_max(rules->peer_deviation_floor,
					 NT_PAST_CAUTION * past->value_width);
		own.width = nt_stats_max(own.width, nt_contest_starved_width(c, own.base));
		track->growth = track->net = (value - past->value_centre) / own.base;
	}
	if (past && past->ready && !isnan(c->shared)) {
		track->net -= c->shared;
		own.scale = nt_stats_max(NT_SHARED_LEAST, 1.0 + c->shared);
		track->settled = c->group->past->shared[c->series];
	}
	add_slow_cost(c, track, usual, value);
	return own;
}

/*
 * What it costs the job that the rank works longer than its peers, by `excess`: part of the step. Where
 * work overlaps with collectives, ranks that wait in them show less of their work: no rank costs more than
 * it exceeds the next. A suspected rank is no such next one, unless its excess is more than twice as large.
 * The cost of a named rank is not negative: a fault of another rank does not end its own.
 */
static double cost_of(const struct nt_contest *c, const struct nt_detect_rank *rank, double value,
		      double excess)
{
	const double next = c->longest[rank == c->foremost];
	double cost;

	if (!c->foremost)
		return excess / c->step;
	cost = nt_stats_min(excess, value - next);
	if (rank->in_incident)
		cost = nt_stats_max(cost, nt_stats_min(0.0, excess));
	else if (excess < NT_EXPLAINS * (c->longest_suspect - value + excess))
		cost = nt_stats_min(cost, 0.0);
	return cost / c->step;
}

/*
 * Of two populations either may be normal. A rank that works longer than the slower one, by more than they
 * differ, is slow in any case; where its past is known, that says more. `high`: the work of that one.
 */
static bool is_beyond_both(const struct nt_contest *c, const struct nt_track *track, double value,
			   double high)
{
	const double gap = fabs(c->space.other - c->space.normal) *
			   nt_peer_deviation_base(&c->detect->rules, c->centre, c->step);

	return c->series == NT_SERIES_OWN && c->space.two && c->sample > NT_WIDTH_RANKS &&
	       c->mode == NT_MODE_PAST && !track->past.ready && value - high > gap;
}

/* What the value is compared with, 0 if with its past alone. Sets *mode. */
static double reference_of(const struct nt_contest *c, const struct nt_track *track, double value,
			   enum nt_mode *mode)
{
	const double high =
		c->centre + nt_stats_max(c->space.other, c->space.normal) *
				    nt_peer_deviation_base(&c->detect->rules, c->centre, c->step);

	*mode = c->mode;
	if (is_beyond_both(c, track, value, high)) {
		*mode = NT_MODE_PEERS;
		return high;
	}
	return c->sample > 1 ? nt_stats_middle_without(&c->middle, value) : 0.0;
}

void nt_contest_judge(struct nt_contest *c, struct nt_detect_rank *rank, double value)
{
	const struct nt_rules *rules = &c->detect->rules;
	struct nt_track *track = &rank->track[c->series];
	enum nt_mode mode;
	const double peers = reference_of(c, track, value, &mode);
	const double base = nt_peer_deviation_base(rules, c->sample > 1 ? peers : value, c->step);
	const double peer_deviation = c->sample > 1 ? (value - peers) / base : 0.0;
	struct nt_past so_far;
	const bool learns = nt_past_so_far(
		&track->past, nt_detect_rank_lesson(c->detect, rank, c->series), &so_far);
	/* With two populations a past is needed, so the incomplete one is used. */
	const bool hurried = learns && c->space.two && mode != NT_MODE_PEERS;
	const struct nt_past *past = hurried ? &so_far : &track->past;
	const bool has_past = hurried || past->ready;
	const struct nt_past *usual = learns ? &so_far : past;
	const struct nt_past *known = learns || has_past ? usual : NULL;
	const double shift_width = nt_stats_max(c->residual_width, usual->peer_deviation_width);
	struct nt_cusum_window level = {.start_ns = c->group->wait_start_ns,
					.frame = c->detect->frames,
					.peer_deviation = peer_deviation,
					.ceiling = c->ceiling};
	struct nt_cusum_window shift;
	bool may_learn;
	const struct own own = compare_past(c, track, has_past ? past : NULL, known, value);

	shift = level;
	if (mode == NT_MODE_PEERS) {
		level.z = peer_deviation / c->width;
		level.cost = cost_of(c, rank, value, peer_deviation * base);
		shift.peer_deviation =
			peer_deviation - nt_past_floor(usual, NT_PAST_MOST * rules->size_floor);
		shift.z = shift.peer_deviation / shift_width;
		shift.cost = cost_of(c, rank, value, shift.peer_deviation * base);
		track->residual = has_past && !track->always ? shift.cost : level.cost;
	} else if (has_past) {
		level.peer_deviation = track->net / own.scale;
		level.z = (level.peer_deviation - nt_past_doubt(past)) / own.width;
		level.cost = cost_of(c, rank, value, track->net * own.base);
		shift = level;
		track->residual = level.cost;
	} else {
		/* Neither peers nor a past give a reference. */
		track->residual = peer_deviation * base / c->step;
	}
	/* What hardly costs anything leads to no accusation, however often it happens. */
	adapt(c, track,
	      nt_adaptation_is_far(level.z) && level.cost >= NT_COSTLY_PART * rules->size_floor);
	nt_cusum_add(&track->level, rules, &level);
	may_learn = !learns || !may_be_fault(c, track, value, &so_far);
	/* A past that a fault keeps from being completed stays what it is so far. */
	if (has_past || (mode == NT_MODE_PEERS && (!may_learn || track->shift.sum > 0.0)))
		nt_cusum_add(&track->shift, rules, &shift);
	if ((mode == NT_MODE_PEERS || is_pair(c)) &&
	    (learns || has_past || track->rate.sum > 0.0)) {
		if (learns && track->past.count == NT_PAST_SOME && track->far_given.windows <= 0.0)
			nt_far_count_before(c, rank, track, &so_far, base, shift);
		shift.peer_deviation = nt_far_count_deviation(c, usual, known != NULL, value,
							      peer_deviation, base);
		shift.cost = cost_of(c, rank, value, shift.peer_deviation * base);
		nt_far_count_add(c, track, past, shift);
	}

	track->mode = mode == NT_MODE_PEERS ? NT_MODE_PEERS
		      : has_past            ? NT_MODE_PAST
					    : NT_MODE_NONE;
	track->peers_seen = (uint8_t)(c->sample - 1 < UINT8_MAX ? c->sample - 1 : UINT8_MAX);
	track->frame = c->detect->frames;
	track->value = value;
	track->peers = c->sample > 1 ? peers : 0.0;
	track->peer_deviation = peer_deviation;
	track->width = mode == NT_MODE_PEERS ? c->width : own.width;
	track->shift_width = mode == NT_MODE_PEERS ? shift_width : own.width;
	if (!rank->in_incident && may_learn)
		nt_past_learn(&track->past, nt_detect_rank_lesson(c->detect, rank, c->series),
			      peer_deviation, value, c->detect->frames);
	note_rank(c, rank, peer_deviation * base / c->step, track->growth * own.base);
}

/*
 * Maximum gap between neighbours of one cluster, in spreads. With many values the inner gaps are
 * small, and with two populations the shortest half is one of them; a long reach would join both.
 */
static double reach(uint32_t n)
{
	return nt_stats_max(NT_COVERAGE_MANY,
			    NT_COVERAGE_FEW *
				    sqrt(NT_COVERAGE_RANKS / nt_stats_max(NT_COVERAGE_RANKS, n)));
}

/* Whether its own ranks, beside their partners, are of both populations. */
static bool is_divided(const struct nt_contest *c)
{
	const double gap = fabs(c->space.other - c->space.normal) *
			   nt_peer_deviation_base(&c->detect->rules, c->centre, c->step);
	double low = INFINITY, high = -INFINITY;

	for (uint32_t i = 0; i < c->n; i++) {
		low = fmin(low, c->value[i]);
		high = fmax(high, c->value[i]);
	}
	return high - low >= NT_EXPLAINS * gap;
}

/* Selects the reference of the ranks and their spread; peers if there are three ranks or more. */
static void compare_peers(struct nt_contest *c, const double *sorted)
{
	const struct nt_rules *rules = &c->detect->rules;
	const double base = nt_peer_deviation_base(rules, c->centre, c->step);
	struct nt_group_past *past = c->group->past;
	struct nt_peer_clusters *space = &c->space;
	double *peer_deviation = c->detect->scratch.f, core;

	for (uint32_t i = 0; i < c->sample; i++)
		peer_deviation[i] = (sorted[i] - c->centre) / base;
	core = nt_stats_core(peer_deviation, c->sample);
	nt_ring_add(&past->core[c->series], rules->width_windows, core);
	core = nt_stats_max(rules->peer_deviation_floor, nt_ring_median(&past->core[c->series]));
	*space = nt_peer_clusters_split(peer_deviation, c->sample, reach(c->sample) * core,
					c->detect->scratch.label);
	space->two = space->two &&
		     fabs(space->other - space->normal) * base > rules->size_floor * c->step;
	c->apart = space->two && (c->sample == c->n || is_divided(c));

	for (uint32_t i = 0; i < c->sample; i++) {
		const double peers = nt_stats_middle_without(&c->middle, sorted[i]);

		peer_deviation[i] =
			(sorted[i] - peers) / nt_peer_deviation_base(rules, peers, c->step);
	}
	nt_stats_sort(peer_deviation, c->sample);
	if (!space->two)
		nt_ring_add(&past->width[c->series], rules->width_windows,
			    nt_stats_width(peer_deviation, c->sample));
	c->width = past->width[c->series].count ? nt_ring_median(&past->width[c->series]) : core;
	c->width = nt_stats_max(c->width, rules->peer_deviation_floor);
	c->width = nt_stats_max(c->width, nt_contest_starved_width(c, base));
	/* Of three, two that agree outvote a slower third. Nobody waits for a faster one. */
	space->two = space->two && (c->sample > NT_WIDTH_RANKS || space->other < space->normal);
	c->mode = space->two || (c->group->jumped && c->series == NT_SERIES_OWN) ? NT_MODE_PAST
										 : NT_MODE_PEERS;
}

/*
 * Which of two hosts is normal, the other ranks show: none of them works as long. Where its past is known,
 * that says more.
 */
static bool is_beyond_hosts(struct nt_contest *c, const struct nt_step_metrics *step_metrics,
			    double scatter, double *sorted)
{
	const struct nt_rules *rules = &c->detect->rules;
	const uint32_t slower = step_metrics->index[c->value[1] > c->value[0]];
	double more;

	if (c->series != NT_SERIES_HOST || c->detect->rank[slower].track[NT_SERIES_HOST].past.ready)
		return false;
	more = nt_peer_hosts_replace(c->detect, c->group, sorted);
	if (more < 0.0)
		return false;
	c->middle = nt_stats_middle(sorted, 2);
	c->width = fmax(rules->peer_deviation_floor,
			fmax(more, scatter) / nt_peer_deviation_base(rules, sorted[0], c->step));
	return true;
}

/*
 * Whether the work of both varies together, as with sequences of random length: then each is the measure of
 * the other, and a change of their difference says more than a growth. Sets *width to how much they differ.
 */
static bool varies_together(const struct nt_contest *c, const struct nt_step_metrics *step_metrics,
			    double *width)
{
	double apart = 0.0, together = INFINITY;

	for (uint32_t i = 0; i < 2 && c->series == NT_SERIES_OWN; i++) {
		const struct nt_past *past =
			&c->detect->rank[step_metrics->index[i]].track[c->series].past;

		if (!past->ready)
			return false;
		apart = fmax(apart, past->peer_deviation_width);
		together = fmin(together, past->value_width);
	}
	*width = fmax(c->detect->rules.peer_deviation_floor, NT_PAST_CAUTION * apart);
	return isfinite(together) && NT_EXPLAINS * together > *width;
}

static void compare_two(struct nt_contest *c, const struct nt_step_metrics *step_metrics,
			double *sorted)
{
	const struct nt_rules *rules = &c->detect->rules;
	const double base = nt_peer_deviation_base(rules, sorted[0], c->step);
	const double unit = c->series == NT_SERIES_HOST ? c->step : base;
	struct nt_group_past *past = c->group->past;
	double width = c->width * base / unit;
	double together;
	bool is_known;

	c->space.normal = 0.0;
	c->space.other = (sorted[1] - sorted[0]) / base;
	c->apart = c->space.two = c->space.other * base > rules->size_floor * c->step;
	c->centre = sorted[0];
	if (!is_pair(c))
		return;
	is_known = nt_peer_pair_judge(past, c->series, rules, (c->value[1] - c->value[0]) / unit,
				      &width);
	c->width = width * unit / base;
	is_known = is_beyond_hosts(c, step_metrics, nt_peer_pair_scatter(past, c->series) * unit,
				   sorted) ||
		   is_known;
	if (!is_known && varies_together(c, step_metrics, &together)) {
		c->width = together;
		is_known = true;
	}
	if (is_known && !nt_peer_pair_takes_turns(past, c->series, rules)) {
		c->mode = NT_MODE_PEERS;
		c->apart = c->space.two = false;
	}
}

/*
 * The work of a partner in the same steps: its round may be still to come in this frame. Of roles whose
 * rounds are in other frames, that of the last one. Negative: not known.
 */
static double work_of(const struct nt_contest *c, const struct nt_detect_rank *partner)
{
	const struct nt_track *own = &partner->track[NT_SERIES_OWN];
	const uint64_t frames = c->detect->frames;

	if (partner->round_frame < frames && partner->steps)
		return partner->tier == c->tier
			       ? (double)partner->sum[NT_STEP_METRIC_OWN] / partner->steps
			       : -1.0;
	return own->tier == c->tier && own->frame + 1 >= frames ? own->value : -1.0;
}

/*
 * Two or three ranks do not show which of them is normal. The devices of their partners have the
 * same work: it is appended to `sample`. Returns the number of values.
 */
static uint32_t add_partners(const struct nt_contest *c, const struct nt_step_metrics *step_metrics,
			     double *sample)
{
	const struct nt_detect *detect = c->detect;
	uint32_t n = 0;

	if (c->series != NT_SERIES_OWN || c->tier != NT_FRAME_T3 || c->n > NT_WIDTH_RANKS ||
	    c->group->members > NT_WIDTH_RANKS)
		return 0;
	for (uint32_t i = 0; i < step_metrics->n; i++) {
		const struct nt_detect_rank *rank = &detect->rank[step_metrics->index[i]];
		const struct nt_detect_comm *comm = nt_peer_group_partners(detect, rank);

		for (uint32_t j = 0; comm && j < comm->members; j++) {
			const struct nt_detect_rank *partner =
				nt_peer_group_partner(detect, rank, comm, j);
			const double work = partner ? work_of(c, partner) : -1.0;

			if (work >= 0.0 && c->n + n < detect->ranks)
				sample[n++] = work;
		}
	}
	return n;
}

/* A rank that is about to be accused, or is, may be beside others of its kind. */
static bool is_suspected(const struct nt_contest *c, const struct nt_detect_rank *rank)
{
	const struct nt_track *track = &rank->track[c->series];

	return rank->in_incident ||
	       fmax(track->level.sum, track->shift.sum) >=
		       NT_EVIDENCE_FROM * c->detect->threshold ||
	       track->rate.sum >=
		       NT_EVIDENCE_FROM * (c->detect->threshold - c->detect->rules.threshold_base);
}

static void find_longest(struct nt_contest *c, const struct nt_step_metrics *step_metrics)
{
	double overlapped = 0.0;
	uint32_t n = 0;

	c->foremost = NULL;
	c->longest[0] = c->longest[1] = c->longest_suspect = 0.0;
	for (uint32_t i = 0; i < step_metrics->n && n < c->n; i++) {
		const struct nt_detect_rank *rank = &c->detect->rank[step_metrics->index[i]];
		double value;

		if (!nt_contest_holds(c, rank))
			continue;
		value = c->value[n++];
		overlapped = fmax(overlapped, rank->step_metric[NT_STEP_METRIC_OWN_LONGEST]);
		if (is_suspected(c, rank)) {
			c->longest_suspect = fmax(c->longest_suspect, value);
			continue;
		}
		if (c->foremost && value <= c->longest[0]) {
			c->longest[1] = fmax(c->longest[1], value);
			continue;
		}
		c->foremost = rank;
		c->longest[1] = c->longest[0];
		c->longest[0] = value;
	}
	if (overlapped <= 0.0)
		c->foremost = NULL;
}

void nt_contest_compare(struct nt_contest *c, const struct nt_step_metrics *step_metrics)
{
	const struct nt_rules *rules = &c->detect->rules;
	struct nt_adaptation *tail = &c->group->tail[c->series];
	double *sorted = c->detect->scratch.c;

	memcpy(sorted, c->value, c->n * sizeof(*sorted));
	nt_stats_sort(sorted, c->n);
	c->group->median[c->series] = nt_stats_median_low(sorted, c->n);
	c->sample = c->n;
	if (c->group->past)
		c->sample += add_partners(c, step_metrics, &sorted[c->n]);
	nt_stats_sort(sorted, c->sample);
	c->centre = nt_stats_median(sorted, c->sample);
	if (c->sample > 1)
		c->middle = nt_stats_middle(sorted, c->sample);
	c->group->tier[c->series] = c->tier;
	c->mode = NT_MODE_PAST;
	c->width = rules->peer_deviation_floor;
	if (c->sample >= NT_WIDTH_RANKS && c->group->past)
		compare_peers(c, sorted);
	else if (c->sample == 2 && c->group->past)
		compare_two(c, step_metrics, sorted);
	if (c->series == NT_SERIES_OWN)
		find_longest(c, step_metrics);
	c->ceiling = NT_CUSUM_CEILING *
		     nt_cusum_raised(rules, c->detect->threshold, nt_adaptation_factor(tail));
	nt_adaptation_fade(tail);
	nt_far_rate_fade(&c->group->far_rate[c->series]);
}
