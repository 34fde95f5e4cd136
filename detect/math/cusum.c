/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A one-sided CUSUM. */
#include "detect/math/cusum.h"

#include <math.h>

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

void nt_cusum_clear(struct nt_cusum *cusum)
{
	*cusum = (struct nt_cusum){0};
}

void nt_cusum_add(struct nt_cusum *cusum, const struct nt_rules *rules,
		  const struct nt_cusum_window *window)
{
	const double z = nt_stats_clip(window->z, -rules->z_clip, rules->z_clip);

	nt_cusum_grow(cusum, rules, window, z - rules->drift);
}

void nt_cusum_grow(struct nt_cusum *cusum, const struct nt_rules *rules,
		   const struct nt_cusum_window *window, double increment)
{
	const double sum = cusum->sum + increment;

	if (!(sum > 0.0)) {
		nt_cusum_clear(cusum);
		return;
	}
	if (!cusum->windows) {
		cusum->onset_ns = window->start_ns;
		cusum->onset_frame = window->frame;
	}
	/* The ceiling bounds the time to decay after a fault. */
	cusum->sum = nt_stats_min(sum, window->ceiling);
	if (cusum->windows < UINT32_MAX) {
		cusum->windows++;
		cusum->costly += window->cost >= NT_COSTLY_PART * rules->size_floor;
	}
	cusum->cost += window->cost;
	cusum->cost_peak = nt_stats_max(cusum->cost_peak, window->cost);
	cusum->peer_deviation += window->peer_deviation;
	cusum->peer_deviation_peak =
		nt_stats_max(cusum->peer_deviation_peak, window->peer_deviation);
}

bool nt_cusum_lasts(const struct nt_cusum *cusum)
{
	return cusum->costly >= cusum->windows - cusum->costly;
}

double nt_cusum_cost(const struct nt_cusum *cusum)
{
	if (cusum->windows < 2)
		return cusum->cost;
	return (cusum->cost - cusum->cost_peak) / (cusum->windows - 1);
}

double nt_cusum_peer_deviation(const struct nt_cusum *cusum)
{
	if (cusum->windows < 2)
		return cusum->peer_deviation;
	return (cusum->peer_deviation - cusum->peer_deviation_peak) / (cusum->windows - 1);
}

double nt_cusum_threshold(const struct nt_rules *rules, double ranks, double window_ns)
{
	const double windows = 86400e9 / nt_stats_clip(window_ns, (double)NT_CUSUM_SHORTEST_NS,
						       (double)NT_CUSUM_LONGEST_NS);

	return rules->threshold_base +
	       log(nt_stats_max(1.0, ranks * windows / rules->false_alarms_a_day)) /
		       nt_cusum_exponent();
}

double nt_cusum_raised(const struct nt_rules *rules, double threshold, double factor)
{
	return rules->threshold_base + factor * (threshold - rules->threshold_base);
}

double nt_cusum_chance(double sum, const struct nt_rules *rules, double ranks, double factor)
{
	const double beyond = nt_stats_max(0.0, sum - rules->threshold_base);

	return nt_stats_min(1.0, ranks * exp(-nt_cusum_exponent() / factor * beyond));
}
