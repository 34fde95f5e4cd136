/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A communicator: its members, operations and state. Owned by struct nt_detect. */
#ifndef NT_DETECT_MODEL_COMMUNICATOR_H
#define NT_DETECT_MODEL_COMMUNICATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "detect/model/collective_round.h"
#include "detect/model/network.h"

struct nt_frame_comm;

enum {
	NT_DETECT_COMM_MAX = 262144,
	NT_DETECT_COMM_OPS = 32, /* operations whose kind is remembered */
};

enum nt_detect_comm_use {
	NT_DETECT_COMM_IDLE, /* use not determined */
	NT_DETECT_COMM_REDUCING, /* data or tensor parallel; the rank's others decide */
	NT_DETECT_COMM_PIPELINE, /* sends and receives only */
	NT_DETECT_COMM_EXPERT, /* all-to-all */
};

struct nt_detect_comm {
	uint64_t id;
	uint32_t size;
	uint32_t *member; /* ranks of the job, ascending once the roles are derived */
	uint32_t members, member_cap;
	/* Sums over the members' steps. */
	double steps, sync_calls, sync_bytes, all_to_all_calls, p2p_calls;
	uint64_t first_frame, first_epoch, first_last, first_hash; /* of the frame's first member */
	const struct nt_frame_comm *first; /* the same report; borrowed from the frame */
	struct nt_collective_round collective_round;
	uint64_t moved_ns; /* when a member last completed a call in it */
	uint8_t kind_of
		[NT_DETECT_COMM_OPS]; /* enum nt_frame_kind + 1 by operation, 0: never seen */
	/* Whether members at the same call number made the same calls up to it: see mismatch.h. */
	uint64_t agreed_frame, differed_frame;
	uint32_t agreed; /* frames, up to a few */
	/*
	 * Hosts that run ahead are rarely at the same number: whether their calls had the same
	 * sizes.
	 */
	uint64_t matched_frame, unlike_frame;
	uint32_t matched; /* frames, up to a few */
	bool varies; /* they never agree, or not for long: differences are ignored */
	/*
	 * Number at which they differ without a recent call to show it (0: agree), and how often it
	 * moved.
	 */
	uint32_t differed_moves;
	uint64_t differed_last;
	uint64_t checked_frame; /* scratch of the step */
	size_t samples_at; /* index of its samples in the last frame: a hint for the next */
	uint32_t index; /* scratch of saving and loading */
	UT_hash_handle hh;
	/*
	 * Transfers of the calls that move most bytes, and of those that did before: an evaluation
	 * makes other calls than training.
	 */
	struct nt_network network, other_network;
	uint32_t strange_rounds; /* in a row, with calls of neither */
};

enum nt_detect_comm_use nt_detect_comm_use(const struct nt_detect_comm *comm);
/* Calls of synchronising operations per step of a member. */
double nt_detect_comm_calls(const struct nt_detect_comm *comm);
/* Mean bytes of such a call. */
double nt_detect_comm_call_bytes(const struct nt_detect_comm *comm);
/* Clears what is known of its transfers. */
void nt_network_forget(struct nt_detect_comm *comm);
/* Looks up the hash table at `head`; NULL if absent. */
struct nt_detect_comm *nt_detect_comm_find(struct nt_detect_comm *head, uint64_t id);

#endif
