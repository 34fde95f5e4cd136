/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How far ranks differ beyond what is permanent about each. */
#include "detect/baseline/residual_width.h"

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

/* The past of the rank: in a role that is not large an incomplete one will do. NULL: it has none. */
static const struct nt_past *find_past(const struct nt_contest *c,
				       const struct nt_detect_rank *rank, struct nt_past *so_far)
{
	const struct nt_past *past = &rank->track[c->series].past;

	if (past->ready)
		return past;
	return c->n <= NT_FLEET_SO_FAR &&
			       nt_past_so_far(past,
					      nt_detect_rank_lesson(c->detect, rank, c->series),
					      so_far)
		       ? so_far
		       : NULL;
}

double nt_residual_width(const struct nt_contest *c, const struct nt_step_metrics *step_metrics)
{
	const struct nt_detect *detect = c->detect;
	const struct nt_rules *rules = &detect->rules;
	const double base = nt_peer_deviation_base(rules, c->centre, c->step);
	/* Of many ranks a part shows their spread as well. */
	const bool all = c->n == step_metrics->n;
	const uint32_t stride = all ? 1 + c->n / NT_RESIDUAL_RANKS : 1;
	double *residual = detect->scratch.f, width;
	struct nt_ring *last;
	uint32_t n = 0, at = 0;

	if (c->mode != NT_MODE_PEERS || c->sample < NT_WIDTH_RANKS)
		return c->width;
	last = &c->group->past->residual_width[c->series];
	for (uint32_t i = 0; i < step_metrics->n && at < c->n; i += stride) {
		const struct nt_detect_rank *rank = &detect->rank[step_metrics->index[i]];
		const struct nt_past *past;
		struct nt_past so_far;
		double value, peers;

		if (!all && !nt_contest_holds(c, rank))
			continue;
		value = c->value[at];
		at += stride;
		past = find_past(c, rank, &so_far);
		if (!past)
			continue;
		peers = nt_stats_middle_without(&c->middle, value);
		residual[n++] = (value - peers) / nt_peer_deviation_base(rules, peers, c->step) -
				past->peer_deviation_centre;
	}
	if (n < NT_WIDTH_RANKS)
		return c->width;
	nt_stats_sort(residual, n);
	width = nt_stats_width(residual, n);
	nt_ring_add(last, rules->width_windows, width);
	if (last->count < NT_PAST_SOME)
		return c->width;
	/* A phase of the program in which the ranks differ otherwise shows at once. */
	width = nt_stats_max(width, nt_ring_median(last));
	return nt_stats_max(nt_stats_max(width, rules->peer_deviation_floor),
			    nt_contest_starved_width(c, base));
}
