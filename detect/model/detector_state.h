/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of one job's detection, shared by the files of this directory alone. */
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

/* How the ranks stand in this frame: who asks about all of them need not walk over them. */
struct nt_census {
	uint32_t here, gone; /* gone: also who said good-bye, which is not here either */
	uint32_t using_gpu;
	uint64_t longest_wait_ns; /* of who lives and was heard of lately; 0: nobody waits */
};

struct nt_detect {
	struct nt_rules rules;
	uint64_t job_hash;
	uint32_t attempt;
	uint64_t frames, start_ns, end_ns; /* of the last frame */
	double window_ns; /* slow mean of the frames' lengths */
	uint32_t expected_ranks;
	struct nt_completeness gaps;
	double threshold; /* of sums, where far values are rare */
	bool rebaseline; /* asked for: at the next step */

	struct nt_detect_rank *rank; /* ascending by rank */
	struct nt_lessons *lessons; /* of these ranks, in the same order */
	uint32_t ranks, rank_cap;
	struct nt_census census;
	struct nt_detect_comm *comms; /* head of a hash table */
	struct nt_detect_comm **comm; /* the same in the order of arrival, for passes over all */
	uint32_t comm_count, comm_cap;
	struct nt_peer_groups roles;
	struct nt_detect_step step;
	struct nt_links links;
	struct nt_incidents incidents;

	/* What was refused, so that it is not silently lost. */
	uint64_t dropped_ranks, dropped_comms, implausible;
	/* of communicators, of which some members were not heard in time */
	uint64_t lapsed_collective_rounds;

	/* Room for one value per rank, grown at the start of a step. */
	struct nt_scratch {
		void *room; /* that all of it is in */
		double *a, *b, *c, *d, *e, *f, *column[NT_STEP_METRIC_END];
		/* By the index of the rank, of its round: paces and the largest of its sums; 0: none. */
		double *step_metric_step, *run_queue, *gc, *sum;
		struct nt_note *note;
		uint32_t judged[NT_SERIES_END]; /* ranks of the round */
		/* Of this frame, where it was asked for. */
		struct nt_together {
			uint64_t frame;
			double cost;
		} together[NT_SERIES_END];
		uint32_t *index, *label; /* twice the room */
		uint32_t cap;
	} scratch;
};

/* Scratch for so many ranks. -ENOMEM. */
int nt_detect_make_room(struct nt_detect *detect, uint32_t ranks);
/* About when that frame of not long ago began. */
uint64_t nt_detect_began_ns(const struct nt_detect *detect, uint64_t frame);
/* The rank's state or NULL. */
struct nt_detect_rank *nt_detect_find(const struct nt_detect *detect, uint32_t rank);
/* What the past of the series is learned from; the rank is one of the detector's own. */
struct nt_lesson *nt_detect_rank_lesson(const struct nt_detect *detect,
					const struct nt_detect_rank *rank, enum nt_series series);
/* Some rank lives whose agent is heard of. */
bool nt_detect_is_heard(const struct nt_detect *detect);
/* The rank's sums of the series are a finding from here on. The rank is in a group. */
double nt_detect_rank_threshold(const struct nt_detect *detect, const struct nt_detect_rank *rank,
				enum nt_series series);

#endif
