/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A round of a group of ranks, and who takes part in it. */
#ifndef NT_DETECT_MODEL_CONTEST_H
#define NT_DETECT_MODEL_CONTEST_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
