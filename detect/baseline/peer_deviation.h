/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares each rank with its peers: the relative deviation and the evidence that it adds. */
#ifndef NT_DETECT_BASELINE_PEER_DEVIATION_H
#define NT_DETECT_BASELINE_PEER_DEVIATION_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/baseline/step_metrics.h"
#include "detect/math/stats.h"
#include "detect/model/contest.h"
#include "detect/thresholds/thresholds.h"

/* Run queue time outside calls; inside calls it is harmless, as libraries spin there. */
static inline double nt_peer_starved(double run_queue, double comm, double step)
{
	return run_queue * nt_stats_max(0.0, 1.0 - comm / nt_stats_max(1.0, step));
}

/* The divisor of a deviation: the peers' value, and at least a part of the step. */
double nt_peer_deviation_base(const struct nt_rules *rules, double peers, double step);
/* Number of ranks in step_metrics that take part. */
uint32_t nt_contest_size(const struct nt_contest *c, const struct nt_step_metrics *step_metrics);
/* Computes the group results; must precede nt_contest_judge(). */
void nt_contest_compare(struct nt_contest *c, const struct nt_step_metrics *step_metrics);
/* Judges one rank's value and adds to its evidence. */
void nt_contest_judge(struct nt_contest *c, struct nt_detect_rank *rank, double value);

#endif
