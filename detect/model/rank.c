/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank. */
#include "detect/model/rank.h"

#include "detect/math/stats.h"

void nt_track_clear_sums(struct nt_track *track)
{
	nt_cusum_clear(&track->level);
	nt_cusum_clear(&track->shift);
	nt_cusum_clear(&track->rate);
	track->far_fresh = 0;
	track->marked = 0.0;
	track->rhythm = (struct nt_far_rhythm){0};
}

double nt_track_rate_sum(const struct nt_track *track, const struct nt_rules *rules)
{
	return track->rate.sum > 0.0 ? rules->threshold_base + track->rate.sum : 0.0;
}

bool nt_track_is_judged(const struct nt_track *track)
{
	return track->mode == NT_MODE_PEERS || track->past.ready || track->peers_seen < 2;
}

double nt_track_sum(const struct nt_track *track, const struct nt_rules *rules)
{
	return nt_stats_max(nt_stats_max(track->level.sum, track->shift.sum),
			    nt_track_rate_sum(track, rules));
}

double nt_detect_rank_sum(const struct nt_detect_rank *rank, const struct nt_rules *rules)
{
	double sum = 0.0;

	for (int i = 0; i < NT_SERIES_END; i++)
		sum = nt_stats_max(sum, nt_track_sum(&rank->track[i], rules));
	return sum;
}

struct nt_track_contribution nt_track_contribute(const struct nt_track *track)
{
	return (struct nt_track_contribution){.growth = track->growth_known ? track->growth : NAN,
					      .slow_cost = track->slow_cost,
					      .centre = track->past.value_centre,
					      .spread = track->past.value_width};
}
