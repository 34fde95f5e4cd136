/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who is compared with whom. Communicators are learned from what the ranks say of them; the mix of
 * operations tells what they are for; the members of a data-parallel one have the same role.
 */
#ifndef NT_DETECT_ROLE_H
#define NT_DETECT_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "detect/network.h"
#include "detect/ring.h"

struct nt_detect;
struct nt_rank;
struct nt_frame_rank;

enum {
	NT_ROLE_MAX_COMMS = 262144,
	NT_ROLE_OPS = 32, /* operations whose kind is remembered */
};

enum nt_comm_use {
	NT_COMM_IDLE, /* nothing seen that tells */
	NT_COMM_REDUCING, /* data or tensor: which one depends on the rank's others */
	NT_COMM_PIPELINE, /* sends and receives only */
	NT_COMM_EXPERT, /* all-to-all */
};

struct nt_comm {
	uint64_t id;
	uint32_t size;
	uint32_t *member; /* ranks of the job, ascending once the roles are derived */
	uint32_t members, member_cap;
	/* Sums over the members' steps. */
	double steps, sync_calls, sync_bytes, all_to_all_calls, p2p_calls;
	struct nt_network network;
	uint8_t kind_of[NT_ROLE_OPS]; /* enum nt_frame_kind + 1 by operation, 0: never seen */
	/* Whether members that are at the same number called the same until there: see mismatch.h. */
	uint32_t agreed; /* frames, up to a few */
	bool varies; /* they never did, or not for good: it means nothing */
	uint64_t agreed_frame, differed_frame;
	uint64_t heard_frame, heard_epoch, heard_last, heard_hash; /* of the first member */
	uint64_t checked_frame; /* scratch of the step */
	uint32_t index; /* scratch of saving and loading */
	UT_hash_handle hh;
};

enum nt_group_kind {
	NT_GROUP_ALONE, /* id is the rank */
	NT_GROUP_COMM,
	NT_GROUP_STAGE,
};

/* The ranks of one role. */
struct nt_group {
	uint8_t kind;
	uint64_t id;
	uint32_t first, members; /* where it starts in nt_roles.member, and how many */
	bool spans_nodes;
	uint32_t waited; /* frames since the last round in which somebody had steps */
	uint64_t wait_start_ns; /* start of the first frame of these, or of the last round */
	uint64_t rounds, round_frame;
	double step_ns, window_ns; /* of the last round: median step, and how long it was */
	double median[2]; /* of own and host work of the last round; < 0: not known */
	uint8_t tier[2]; /* of these */
	struct nt_group_past {
		struct nt_ring width[2], core[2]; /* by series */
		uint32_t apart; /* rounds of two populations that no past explains */
		uint32_t apart_slower; /* rank, of two */
		double apart_gap, apart_cost; /* slow mean, of the smaller value; of the step */
		double apart_low, apart_high; /* ns */
		/* Who was the slowest, in the last rounds. */
		uint32_t slowest[NT_RING_MAX]; /* beside `worst` */
		struct nt_ring worst; /* and by how much of the step */
	} * past; /* NULL for a rank alone */
	/* Of the role against the other roles. */
	double excess, cost; /* of the last round */
	uint32_t long_rounds;
};

struct nt_roles {
	struct nt_comm *comm; /* head of the hash table, in the order of arrival */
	struct nt_group *group; /* ascending by (kind, id) */
	uint32_t groups;
	uint32_t *member; /* indices into nt_detect.rank, group after group, ascending in each */
	/* Ranks, each group's list twice in a row: the peers of place p are the n-1 from p+1 on. */
	uint32_t *peer;
	bool dirty;
};

/* Takes in what one rank says of its communicators. -ENOMEM. */
int nt_roles_learn(struct nt_detect *detect, struct nt_rank *rank,
		   const struct nt_frame_rank *seen);
/* Derives the groups anew where something was learned. -ENOMEM leaves the old ones. */
int nt_roles_derive(struct nt_detect *detect);
enum nt_comm_use nt_comm_use(const struct nt_comm *comm);
/* Calls of synchronising operations per step of a member. */
double nt_comm_calls(const struct nt_comm *comm);
struct nt_comm *nt_roles_find(const struct nt_roles *roles, uint64_t id);
/* The communicator, made where it is new; NULL at the cap or without memory. */
struct nt_comm *nt_roles_comm(struct nt_roles *roles, uint64_t id);
void nt_roles_free(struct nt_roles *roles);
/* The peers of a rank: NULL and 0 where it has none. */
const uint32_t *nt_role_peers(const struct nt_detect *detect, const struct nt_rank *rank,
			      size_t *ret_n);

#endif
