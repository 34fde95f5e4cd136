/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A one-sided CUSUM: it grows while a value is abnormal and decays while it is not. */
#ifndef NT_DETECT_MATH_CUSUM_H
#define NT_DETECT_MATH_CUSUM_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/thresholds/rules.h"
#include "detect/thresholds/thresholds.h"

struct nt_cusum {
	double sum;
	/* Accumulated since the sum last left zero; all zero while it is zero. */
	uint64_t onset_ns, onset_frame;
	uint32_t windows, costly; /* all, and those that cost at least half the size floor */
	double cost, cost_peak; /* parts of a step: sum and maximum */
	double peer_deviation, peer_deviation_peak;
};

/* One window's input. */
struct nt_cusum_window {
	uint64_t start_ns, frame;
	double z, peer_deviation, cost, ceiling;
};

void nt_cusum_add(struct nt_cusum *cusum, const struct nt_rules *rules,
		  const struct nt_cusum_window *window);
/* The same with this increment in place of z - drift. */
void nt_cusum_grow(struct nt_cusum *cusum, const struct nt_rules *rules,
		   const struct nt_cusum_window *window, double increment);
void nt_cusum_clear(struct nt_cusum *cusum);
/* Whether at least half of its windows were costly: a few outliers are not a lasting fault. */
bool nt_cusum_lasts(const struct nt_cusum *cusum);
/* Means since the onset without the largest window, so that a single stall is not a fault. */
double nt_cusum_cost(const struct nt_cusum *cusum);
double nt_cusum_peer_deviation(const struct nt_cusum *cusum);
/*
 * The decay rate of the tail probability: P(sum > h) ~ exp(-rate × h), for standard normal
 * increments minus the drift.
 */
static inline double nt_cusum_exponent(void)
{
	return 2.0 * nt_default_drift;
}

/* The maximum increment of one window. */
static inline double nt_cusum_step(void)
{
	return nt_default_z_clip - nt_default_drift;
}

/* The alarm threshold for `ranks` sums with windows of window_ns. */
double nt_cusum_threshold(const struct nt_rules *rules, double ranks, double window_ns);
/* The threshold for heavy-tailed values: see nt_adaptation_factor(). */
double nt_cusum_raised(const struct nt_rules *rules, double threshold, double factor);
/* Probability that one of `ranks` healthy sums is as high as this one. */
double nt_cusum_chance(double sum, const struct nt_rules *rules, double ranks, double factor);

#endif
