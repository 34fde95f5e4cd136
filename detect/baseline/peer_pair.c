/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Roles of two ranks. */
#include "detect/baseline/peer_pair.h"

#include <math.h>
#include <string.h>

#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* The side that a difference leaves behind: 0, 1, or 2 if it is not large. */
static int side_of(double difference, double least)
{
	if (fabs(difference) <= least)
		return 2;
	return difference > 0.0;
}

bool nt_peer_pair_judge(struct nt_group_past *past, enum nt_series series,
			const struct nt_rules *rules, double difference, double *width)
{
	struct nt_ring *last = &past->width[series];
	const double before = nt_ring_last(last);
	double *turns = past->turns[series], size[NT_RING_MAX], least;
	uint32_t agreed, behind[3] = {0};

	nt_ring_add(last, rules->width_windows, difference);
	for (uint32_t i = 0; i < last->count; i++)
		size[i] = fabs(last->value[i]);
	nt_stats_sort(size, last->count);
	agreed = nt_stats_lower_mode(
		size, last->count, (uint32_t)ceil(NT_PAIR_AGREES * last->count), rules->size_floor);
	*width = nt_stats_max(*width, NT_STATS_SIGMA_OF_MAD * nt_stats_median(size, agreed));
	least = nt_stats_max(rules->size_floor, NT_FAR_WIDTHS * *width);
	for (uint32_t i = 0; i < last->count; i++)
		behind[side_of(last->value[i], least)]++;
	for (int i = 0; i < 2; i++)
		turns[i] = NT_PAIR_KEPT * turns[i] +
			   (side_of(difference, least) == i && side_of(before, least) != i);
	return agreed < last->count && behind[0] + behind[1] >= NT_PAIR_BEHIND &&
	       (!behind[0] || !behind[1]) &&
	       nt_stats_max(turns[0], turns[1]) >= NT_PAIR_TURNS_LEAST;
}

double nt_peer_pair_scatter(const struct nt_group_past *past, enum nt_series series)
{
	const struct nt_ring *last = &past->width[series];
	double value[NT_RING_MAX];

	memcpy(value, last->value, last->count * sizeof(*value));
	return nt_stats_mad(value, last->count, nt_stats_median_of(value, last->count));
}

/* Whether one rank has been behind in more windows in a row than a turn has. */
static bool is_no_turn(const struct nt_ring *last, double least)
{
	const int side = side_of(nt_ring_last(last), least);

	if (last->count < NT_PAIR_BEHIND || side == 2)
		return false;
	for (uint32_t i = 1; i <= NT_PAIR_BEHIND; i++)
		if (side_of(last->value[(last->next + last->count - i) % last->count], least) !=
		    side)
			return false;
	return true;
}

bool nt_peer_pair_takes_turns(const struct nt_group_past *past, enum nt_series series,
			      const struct nt_rules *rules)
{
	const double *turns = past->turns[series];
	const double least = nt_stats_min(turns[0], turns[1]);

	return least >= NT_PAIR_TURNS_LEAST &&
	       least > NT_PAIR_TURNS * nt_stats_max(turns[0], turns[1]) &&
	       !is_no_turn(&past->width[series], rules->size_floor);
}

static bool has_pair_of_ranks(const struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->roles.groups; i++)
		if (detect->roles.group[i].members == 2)
			return true;
	return false;
}

void nt_peer_hosts_note(struct nt_detect *detect)
{
	struct nt_longest_hosts *hosts = &detect->scratch.hosts;
	const bool has_pairs = has_pair_of_ranks(detect);

	*hosts = (struct nt_longest_hosts){0};
	for (size_t i = 0; i < NT_LONGEST_HOSTS; i++) {
		hosts->value[i] = -1.0;
		hosts->group[i] = NT_NO_INDEX;
	}
	for (uint32_t i = 0; i < detect->ranks && has_pairs; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];
		const struct nt_track *host = &rank->track[NT_SERIES_HOST];
		double value = host->value;
		uint32_t group = rank->group;

		if (!nt_detect_rank_shows_host(rank) || rank->ended ||
		    (!rank->steps &&
		     (!host->frame || host->frame + NT_WAIT_FRAMES < detect->frames)))
			continue;
		/* All hosts may become busy in the same frame. */
		if (rank->steps)
			value = (double)rank->sum[NT_STEP_METRIC_HOST] / rank->steps;
		hosts->count++;
		/* An insertion sort. */
		for (size_t j = 0; j < NT_LONGEST_HOSTS; j++) {
			const double shorter = hosts->value[j];
			const uint32_t other = hosts->group[j];

			if (value <= shorter)
				continue;
			hosts->value[j] = value;
			hosts->group[j] = group;
			value = shorter;
			group = other;
		}
	}
}

/* The longest host work of ranks outside the group. Negative: they are too few. */
static double most_of(const struct nt_detect *detect, const struct nt_group *group)
{
	const struct nt_longest_hosts *hosts = &detect->scratch.hosts;
	const uint32_t own = (uint32_t)(group - detect->roles.group);

	if (hosts->count < NT_PAIR_HOSTS + group->members)
		return -1.0;
	for (size_t i = 0; i < NT_LONGEST_HOSTS; i++)
		if (hosts->group[i] != own)
			return hosts->value[i];
	return -1.0;
}

double nt_peer_hosts_replace(const struct nt_detect *detect, const struct nt_group *group,
			     double *sorted)
{
	const double most = most_of(detect, group);
	const double more = nt_stats_max(0.0, most - sorted[0]);

	/* As little beyond them is less than a width: no evidence. */
	if (most < 0.0 || sorted[1] - most <= more)
		return -1.0;
	sorted[0] += more;
	return more;
}
