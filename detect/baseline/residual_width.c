/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How far ranks differ beyond what is permanent about each. */
#include "detect/baseline/residual_width.h"

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

/* The centre of the rank's deviations; an incomplete past will do. False: it has none. */
static bool find_centre(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			enum nt_series series, double *ret_centre)
{
	const struct nt_past *past = &rank->track[series].past;
	struct nt_past so_far;

	if (!past->ready) {
		if (!nt_past_so_far(past, nt_detect_rank_lesson(detect, rank, series), &so_far))
			return false;
		past = &so_far;
	}
	*ret_centre = past->peer_deviation_centre;
	return true;
}

double nt_residual_width(const struct nt_contest *c, const struct nt_step_metrics *step_metrics)
{
	const struct nt_detect *detect = c->detect;
	const struct nt_rules *rules = &detect->rules;
	const double base = nt_peer_deviation_base(rules, c->centre, c->step);
	double *residual = detect->scratch.f;
	struct nt_ring *last;
	uint32_t n = 0, at = 0;

	if (c->mode != NT_MODE_PEERS || c->sample < NT_WIDTH_RANKS)
		return c->width;
	last = &c->group->past->residual_width[c->series];
	for (uint32_t i = 0; i < step_metrics->n && at < c->n; i++) {
		const struct nt_detect_rank *rank = &detect->rank[step_metrics->index[i]];
		double value, peers, centre;

		if (!nt_contest_holds(c, rank))
			continue;
		value = c->value[at++];
		if (!find_centre(detect, rank, c->series, &centre))
			continue;
		peers = nt_stats_middle_without(&c->middle, value);
		residual[n++] =
			(value - peers) / nt_peer_deviation_base(rules, peers, c->step) - centre;
	}
	if (n >= NT_WIDTH_RANKS && !c->space.two) {
		nt_stats_sort(residual, n);
		nt_ring_add(last, rules->width_windows, nt_stats_width(residual, n));
	}
	if (!last->count)
		return c->width;
	return nt_stats_max(nt_stats_max(nt_ring_median(last), rules->peer_deviation_floor),
			    nt_contest_starved_width(c, base));
}
