/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peer groups: the ranks of one role and their learned state. Plain data. */
#ifndef NT_DETECT_MODEL_GROUP_H
#define NT_DETECT_MODEL_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/math/far_rate.h"
#include "detect/math/ring.h"
#include "detect/math/threshold_adaptation.h"

enum nt_group_kind {
	NT_GROUP_ALONE, /* id is the rank */
	NT_GROUP_COMM,
	NT_GROUP_STAGE,
};

#define NT_TURN_CROWDED (-1.0)

/* The ranks of one role. */
struct nt_group {
	uint8_t kind;
	uint64_t id;
	uint32_t first, members; /* range in nt_peer_groups.member */
	bool spans_nodes;
	uint32_t waited; /* frames with steps since the last round */
	uint64_t wait_start_ns; /* start of the first frame of these, or of the last round */
	uint64_t rounds, round_frame;
	uint32_t unit_rounds; /* rounds in a row with another unit: see step_unit.h */
	double step_ns, window_ns; /* of the last round: median step, and its length */
	double median[2]; /* of own and host work of the last round; < 0: not known */
	/* Growth of own work of all its ranks, or most, in the last complete round; 0: not known. */
	double shared_growth;
	bool jumped; /* the ranks of other groups do not share it */
	uint32_t jump_rounds; /* rounds since */
	uint64_t jump_since_ns;
	double jump_growth; /* of its median since, mean of about ten rounds; see whole_role.h */
	/* Of the last round: its abnormal ranks that share this growth, and those that compute. */
	uint32_t together, computing;
	uint8_t tier[2]; /* of these */
	struct nt_adaptation tail[2];
	struct nt_far_rate far_rate[2];
	struct nt_group_past {
		struct nt_ring width[2], core[2], residual_width[2]; /* by series */
		/* How often each of two ranks fell behind, by series: see peer_pair.h */
		double turns[2][2];
		double shared[2]; /* growth of all ranks when they last agreed on it, by series */
		uint32_t apart; /* rounds with two populations that no past explains */
		uint64_t apart_since_ns;
		uint32_t apart_slower; /* rank, in a group of two */
		double apart_gap, apart_cost; /* slow mean, of the smaller value; of the step */
		double apart_low, apart_high; /* ns */
		/* The slowest rank of the last rounds. */
		uint32_t slowest[NT_RING_MAX]; /* beside `worst` */
		struct nt_ring worst; /* its excess, parts of the step */
		/* summed excess of all ranks far behind; < 0: too many */
		struct nt_ring turn;
	} * past; /* NULL for a rank alone */
	/* Relative to the other groups. */
	double excess, cost; /* of the last round */
	uint32_t long_rounds;
	uint64_t long_since_ns;
};

struct nt_peer_groups {
	struct nt_group *group; /* ascending by (kind, id) */
	uint32_t groups;
	uint32_t *member; /* indices into nt_detect.rank, group after group, ascending in each */
	/*
	 * Ranks, each group's list stored twice: the peers of position p are the n-1 from p+1 on.
	 */
	uint32_t *peer;
	bool dirty;
};

void nt_peer_groups_free(struct nt_peer_groups *roles);

#endif
