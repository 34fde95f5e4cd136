/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares each rank with its peers: the relative deviation and the evidence that it adds. */
#ifndef NT_DETECT_BASELINE_PEER_DEVIATION_H
#define NT_DETECT_BASELINE_PEER_DEVIATION_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/baseline/step_metrics.h"
#include "detect/math/peer_clusters.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* One series of one group in one round: the ranks of one tier are compared with each other. */
struct nt_contest {
	struct nt_detect *detect;
	struct nt_group *group;
	enum nt_series series;
	uint8_t tier; /* ranks of other tiers are left out; 0: all are */
	uint32_t n;
	double *value; /* of these ranks, in their order */
	uint32_t sample; /* n and the partners that a small role is compared with, too */
	double step;
	/* Results for the group as a whole. */
	struct nt_stats_middle middle; /* of two values or more */
	struct nt_peer_clusters space;
	bool apart; /* two populations, also if one of them is a slower rank that two others outvote */
	double centre;
	double waiting; /* run queue time outside calls, ns per step, median of the ranks */
	double width, ceiling; /* ceiling: of sums */
	double residual_width; /* of deviations less what is permanent about each rank */
	enum nt_mode mode;
	/*
	 * Where work overlaps with collectives, else NULL: the rank that works longest of those that nothing
	 * is held against. The work of it, of the next, and the longest of suspected ones.
	 */
	const struct nt_detect_rank *foremost;
	double longest[2], longest_suspect;
	double shared; /* growth common to the ranks, each against its own past; NAN: unknown */
	/* Updated as ranks are judged. */
	const struct nt_detect_rank *slowest;
	double slowest_value;
	double growth_ns[2]; /* sums of ranks below and above the middle of two populations, */
	uint32_t grown[2]; /* against their own pasts; numbers of these ranks */
	double far_cost; /* of all ranks far behind their peers, parts of a step */
	uint32_t fars;
};

/* Run queue time outside calls; inside calls it is harmless, as libraries spin there. */
static inline double nt_peer_starved(double run_queue, double comm, double step)
{
	return run_queue * nt_stats_max(0.0, 1.0 - comm / nt_stats_max(1.0, step));
}

/* The divisor of a deviation: the peers' value, and at least a part of the step. */
double nt_peer_deviation_base(const struct nt_rules *rules, double peers, double step);
/*
 * Whether the rank takes part. Host work is derived from calls and is comparable across tiers; own
 * work is compared within one tier only.
 */
static inline bool nt_contest_holds(const struct nt_contest *c, const struct nt_detect_rank *rank)
{
	return c->tier && (c->series == NT_SERIES_HOST ? nt_detect_rank_shows_host(rank)
						       : rank->tier == c->tier);
}

/* What waits for a processor contribute to a width. `base`: the divisor of the deviations. */
static inline double nt_contest_starved_width(const struct nt_contest *c, double base)
{
	return NT_STARVED_NOISE * c->waiting / base;
}

/* Number of ranks in step_metrics that take part. */
uint32_t nt_contest_size(const struct nt_contest *c, const struct nt_step_metrics *step_metrics);
/* Computes the group results; must precede nt_contest_judge(). */
void nt_contest_compare(struct nt_contest *c, const struct nt_step_metrics *step_metrics);
/* Judges one rank's value and adds to its evidence. */
void nt_contest_judge(struct nt_contest *c, struct nt_detect_rank *rank, double value);

#endif
