/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of one job's detector. Private to detect/; not thread-safe. */
#ifndef NT_DETECT_MODEL_DETECTOR_STATE_H
#define NT_DETECT_MODEL_DETECTOR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/model/communicator.h"
#include "detect/model/completeness.h"
#include "detect/model/group.h"
#include "detect/model/incident.h"
#include "detect/model/link.h"
#include "detect/model/rank.h"
#include "detect/model/step.h"
#include "detect/thresholds/rules.h"
#include "detect/thresholds/thresholds.h"

/* Frames whose start is kept. */
enum {
	NT_BEGAN_FRAMES = 64,
};

/* Totals over all ranks in this frame, so that rules need not scan them. */
struct nt_census {
	uint32_t here, gone; /* gone: ended ranks, finalized ones included */
	uint32_t using_gpu;
	uint64_t longest_wait_ns; /* of live ranks with a recent window; 0: no rank waits */
};

struct nt_detect {
	struct nt_rules rules;
	uint64_t job_hash;
	uint32_t attempt;
	uint64_t frames, start_ns, end_ns; /* of the last frame */
	double window_ns; /* slow mean of the frames' lengths */
	uint64_t began_ns[NT_BEGAN_FRAMES]; /* by number; not saved, 0: unknown */
	uint32_t expected_ranks;
	struct nt_completeness gaps;
	double threshold; /* alarm threshold of sums without adaptation */
	bool rebaseline; /* requested; done in the next step */

	struct nt_detect_rank *rank; /* ascending by rank */
	struct nt_lessons *lessons; /* of these ranks, in the same order */
	uint32_t ranks, rank_cap;
	struct nt_census census;
	struct nt_detect_comm *comms; /* head of a hash table */
	struct nt_detect_comm **comm; /* the same in order of arrival, for iteration */
	uint32_t comm_count, comm_cap;
	struct nt_peer_groups roles;
	struct nt_detect_step step;
	struct nt_links links;
	struct nt_incidents incidents;

	/* Counters of refused input. */
	uint64_t dropped_ranks, dropped_comms, implausible;
	/* rounds that lapsed with members missing */
	uint64_t lapsed_collective_rounds;

	/* Scratch arrays of one value per rank, grown at the start of a step. */
	struct nt_scratch {
		void *room; /* the allocation that holds all of them */
		double *a, *b, *c, *d, *e, *f, *column[NT_STEP_METRIC_END];
		/*
		 * By rank index, of its round: step metrics and the largest of its sums; 0: none.
		 */
		double *step_metric_step, *run_queue, *gc, *sum;
		struct nt_rank_contribution *contribution;
		uint32_t judged[NT_SERIES_END]; /* ranks of the round */
		struct nt_far_rate far_rate[NT_SERIES_END]; /* of all groups, before the round */
		/* The longest host work of the job's ranks before the round, and how many show theirs. */
		struct nt_longest_hosts {
			double value[NT_LONGEST_HOSTS];
			uint32_t group[NT_LONGEST_HOSTS], count;
		} hosts;
		uint32_t stepping; /* live ranks that had a round before this frame */
		/* Computed on first use in a frame. */
		struct nt_common_cost {
			uint64_t frame;
			double cost;
		} common_cost[NT_SERIES_END];
		struct nt_most_marked {
			uint64_t frame;
			double share;
		} most_marked[NT_SERIES_END];
		uint32_t *index, *label; /* twice the room */
		uint32_t cap;
	} scratch;
};

/* Grows the scratch arrays to `ranks`. -ENOMEM. */
int nt_detect_make_room(struct nt_detect *detect, uint32_t ranks);
/* Start of a recent frame, ns; of an older one, or one before a restart, approximately. */
uint64_t nt_detect_began_ns(const struct nt_detect *detect, uint64_t frame);
/* The rank's state or NULL. */
struct nt_detect_rank *nt_detect_find(const struct nt_detect *detect, uint32_t rank);
/* The learning windows of the series; `rank` is an element of detect->rank. */
struct nt_lesson *nt_detect_rank_lesson(const struct nt_detect *detect,
					const struct nt_detect_rank *rank, enum nt_series series);
/* Whether any live rank is observed. */
bool nt_detect_is_observed(const struct nt_detect *detect);
/*
 * Factor of its threshold's logarithmic part: 1 in a run of far windows that excursions of healthy
 * ranks do not explain, else nt_adaptation_factor(). The rank must be in a group.
 */
double nt_detect_rank_factor(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			     enum nt_series series);
/* Alarm threshold of the rank's sums of the series. The rank must be in a group. */
double nt_detect_rank_threshold(const struct nt_detect *detect, const struct nt_detect_rank *rank,
				enum nt_series series);

#endif
