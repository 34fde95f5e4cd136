/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that were slower from the start, beyond what healthy ranks differ by. */
#include "detect/baseline/fleet_spread.h"

#include <math.h>

#include "detect/baseline/peer_group.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

/*
 * Spread of the lower values, but for a share. Of seven values four may be close by chance, which makes
 * the shortest half too small. That share of the values may be slow and is left out.
 */
static double lower_spread(const double *sorted, uint32_t n, double share)
{
	const uint32_t kept = n - (uint32_t)(share * n);
	double mean = 0.0, squares = 0.0;

	for (uint32_t i = 0; i < kept; i++)
		mean += sorted[i] / kept;
	for (uint32_t i = 0; i < kept; i++)
		squares += (sorted[i] - mean) * (sorted[i] - mean);
	return kept > 1 ? sqrt(squares / (kept - 1)) : 0.0;
}

/* Lists the baselines of a member's partners, with which the rank is compared, too: up to `room`. */
static uint32_t add_partners(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			     const struct nt_detect_rank *member, double *centre, uint32_t room)
{
	const struct nt_detect_comm *comm = nt_peer_group_partners(detect, member);
	uint32_t n = 0;

	for (uint32_t i = 0; comm && i < comm->members && n < room; i++) {
		const struct nt_detect_rank *partner = nt_peer_group_partner(detect, rank, comm, i);

		if (partner && partner->track[NT_SERIES_OWN].past.ready)
			centre[n++] = partner->track[NT_SERIES_OWN].past.peer_deviation_centre;
	}
	return n;
}

/*
 * What is known of a series' past, if only so far. NULL: too little. In a large role the median of
 * the peers is known well enough without, and this bounds the work.
 */
static const struct nt_past *known_past(const struct nt_detect *detect,
					const struct nt_detect_rank *rank, enum nt_series series,
					struct nt_past *so_far)
{
	const struct nt_past *past = &rank->track[series].past;

	if (past->ready)
		return past;
	return detect->roles.group[rank->group].members <= NT_FLEET_SO_FAR &&
			       nt_past_so_far(past, nt_detect_rank_lesson(detect, rank, series),
					      so_far)
		       ? so_far
		       : NULL;
}

/* Spread of the baselines of the other ranks that it is compared with, over their first windows. */
static double long_run_spread(struct nt_detect *detect, const struct nt_detect_rank *rank,
			      enum nt_series series)
{
	const struct nt_group *group = &detect->roles.group[rank->group];
	const bool partners = rank->track[series].peers_seen >= group->members &&
			      group->members <= NT_WIDTH_RANKS;
	double *centre = detect->scratch.a;
	uint32_t n = 0;

	for (uint32_t i = 0; i < group->members; i++) {
		const struct nt_detect_rank *other =
			&detect->rank[detect->roles.member[group->first + i]];
		struct nt_past so_far;
		const struct nt_past *past =
			other != rank ? known_past(detect, other, series, &so_far) : NULL;

		if (past && n < detect->ranks)
			centre[n++] = past->peer_deviation_centre;
		if (partners)
			n += add_partners(detect, rank, other, &centre[n], detect->ranks - n);
	}
	if (n < 2)
		return INFINITY;
	nt_stats_sort(centre, n);
	/* Beside ranks that wait, a node of three may be slow as a whole. */
	return fmax(nt_stats_width(centre, n),
		    lower_spread(centre, n,
				 rank->evidence.peers[NT_STEP_METRIC_OWN_LONGEST] > 0.0
					 ? NT_FLEET_SLOW_WAITING
					 : NT_FLEET_SLOW));
}

/* The same, or that of windows where histories are not known, as in a large role at first. */
static double spread_of(struct nt_detect *detect, const struct nt_detect_rank *rank,
			enum nt_series series)
{
	const double spread = long_run_spread(detect, rank, series);

	return isfinite(spread) ? spread : rank->track[series].width;
}

/*
 * The median of a few peers that differ is uncertain: by how much of their work. What they differ
 * by for long counts; what differs from window to window averages out.
 */
static double reference_error(struct nt_detect *detect, const struct nt_detect_rank *rank,
			      enum nt_series series, const struct nt_cusum *sum)
{
	const struct nt_track *track = &rank->track[series];
	const double lasting = long_run_spread(detect, rank, series);
	/* While a rank warms up its windows are no measures of the same. */
	const bool is_steady = rank->rounds >= NT_PAST_WINDOWS ||
			       track->peer_deviation >= nt_cusum_peer_deviation(sum);
	const double windows = is_steady ? fmin(sum->windows, NT_PAST_WINDOWS) : 1.0;
	const double width =
		isfinite(lasting) ? fmax(lasting, track->width / sqrt(windows)) : track->width;

	return NT_PAST_ERRORS * NT_STATS_MEDIAN_ERROR * width / sqrt(track->peers_seen);
}

/* The spread of few ranks is more often small by chance. */
static double times_of(uint32_t peers)
{
	return peers == NT_FEW_PEERS ? NT_FLEET_FEW_TIMES : NT_FLEET_TIMES;
}

/* The same of host work, as parts of the step: the hosts of most ranks hardly work longer than others. */
static bool is_host_beyond(struct nt_detect *detect, const struct nt_detect_rank *rank,
			   const struct nt_cusum *sum)
{
	const struct nt_past *past = &rank->track[NT_SERIES_HOST].past;
	const uint32_t peers = rank->track[NT_SERIES_HOST].peers_seen;
	double cost = nt_cusum_cost(sum);
	const double unit = cost / nt_cusum_peer_deviation(sum);

	if (cost > NT_FLEET_SPREAD)
		return true;
	if (past->ready)
		cost = fmin(cost, unit * past->peer_deviation_centre);
	if (rank->rounds < NT_PAST_WINDOWS || peers < NT_FEW_PEERS)
		return false;
	return cost > times_of(peers) * fmax(NT_FLEET_LEAST,
					     unit * long_run_spread(detect, rank, NT_SERIES_HOST));
}

bool nt_fleet_spread_is_exceeded(struct nt_detect *detect, const struct nt_detect_rank *rank,
				 enum nt_series series, const struct nt_cusum *sum)
{
	const struct nt_past *past = &rank->track[series].past;
	/* Of this window too, as the means contain the last checkpoint. */
	const double longest[] = {fmin(rank->evidence.value[NT_STEP_METRIC_OWN_LONGEST],
				       rank->step_metric[NT_STEP_METRIC_OWN_LONGEST]),
				  rank->evidence.peers[NT_STEP_METRIC_OWN_LONGEST]};
	double peer_deviation = nt_cusum_peer_deviation(sum), error;
	uint32_t peers;

	if (rank->accepted)
		return false;
	/* A new deviation is not part of the permanent one. */
	if (past->ready)
		peer_deviation = fmin(peer_deviation, past->peer_deviation_centre);
	if (series == NT_SERIES_HOST)
		return is_host_beyond(detect, rank, sum);
	peers = rank->track[series].peers_seen;
	error = reference_error(detect, rank, series, sum);
	/*
	 * Peers that wait beside their work seem to work less, and less in their longest piece. By how
	 * much, their own differences show.
	 */
	if (longest[1] > 0.0) {
		if (peers >= NT_FEW_PEERS &&
		    peer_deviation <= NT_FLEET_WAITING_TIMES * spread_of(detect, rank, series))
			return false;
		error *= nt_stats_clip((longest[0] / longest[1] - 1.0) / peer_deviation, 0.0, 1.0);
		peer_deviation = fmin(peer_deviation, longest[0] / longest[1] - 1.0);
	}
	if (peer_deviation - error > NT_FLEET_SPREAD)
		return true;
	/* The spread of two ranks is too often small by chance, and that of three now and then. */
	if (rank->rounds < NT_PAST_WINDOWS || peers < NT_FEW_PEERS)
		return false;
	return peer_deviation >
	       times_of(peers) * fmax(NT_FLEET_LEAST, long_run_spread(detect, rank, series));
}
