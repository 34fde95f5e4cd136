/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each rank against its peers: how far it is from them, and the evidence that this adds. */
#ifndef NT_DETECT_BASELINE_PEER_DEVIATION_H
#define NT_DETECT_BASELINE_PEER_DEVIATION_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/baseline/step_metrics.h"
#include "detect/math/peer_clusters.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"

/* One series of one group in one round: the ranks of a tier against each other. */
struct nt_contest {
	struct nt_detect *detect;
	struct nt_group *group;
	enum nt_series series;
	uint8_t tier; /* others do not take part; 0: nobody does */
	uint32_t n;
	double *value; /* of these, in their order */
	double step;
	/* What is found about all of them. */
	struct nt_stats_middle middle; /* of two values or more */
	struct nt_peer_clusters space;
	double centre;
	double waiting; /* for a processor outside of calls, median of the ranks, a step */
	double width, ceiling; /* ceiling: of sums */
	enum nt_mode mode;
	/* And while they are judged. */
	const struct nt_detect_rank *slowest;
	double slowest_value, most_growth, least_growth;
	double far_cost; /* of all that are far behind their peers, of the step */
	uint32_t fars;
};

/* The smallest value that a KPI is divided by: the peers' or a part of the step. */
double nt_peer_deviation_base(const struct nt_rules *rules, double peers, double step);
/*
 * What hosts do is seen from their calls, whatever else tells of own work: it is one figure at all tiers,
 * and a window that does not hold at T3 is no other one.
 */
static inline bool nt_contest_holds(const struct nt_contest *c, const struct nt_detect_rank *rank)
{
	return c->tier && (c->series == NT_SERIES_HOST ? nt_detect_rank_shows_host(rank)
						       : rank->tier == c->tier);
}

/* How many ranks it holds of those whose paces are given. */
uint32_t nt_contest_size(const struct nt_contest *c, const struct nt_step_metrics *step_metrics);
/* What must be known of all before the first is judged. */
void nt_contest_compare(struct nt_contest *c);
/* One rank of it, and its value: adds to the evidence. */
void nt_contest_judge(struct nt_contest *c, struct nt_detect_rank *rank, double value);
/* Two populations that no rank's own past explains: counted, and reported when they last. */
void nt_contest_count_apart(const struct nt_contest *c);
/*
 * Who was slowest, and by how much of the step: tells uneven work from one slow rank. Not where that
 * is explained already.
 */
void nt_contest_note_slowest(const struct nt_contest *c, double steps);

#endif
