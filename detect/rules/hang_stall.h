/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A stall: finds, from the calls of a stopped job's ranks, the ranks that they wait for. */
#ifndef NT_DETECT_RULES_HANG_STALL_H
#define NT_DETECT_RULES_HANG_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/evidence_text.h"

struct nt_detect;
struct nt_detect_link;
struct nt_detect_rank;
struct nt_proposal;

/* One member of a communicator in which a rank waits. */
struct nt_stall_member {
	struct nt_detect_rank *rank;
	const struct nt_detect_link *link;
	uint64_t number;
	uint64_t waited_ns;
	bool in; /* in the call of that number, as far as its tier shows */
	bool elsewhere; /* in a call of another communicator */
};

/* The result over all communicators of the job. */
struct nt_stall {
	uint32_t *culprit;
	uint32_t culprits;
	uint64_t since_ns, longest_ns;
	uint64_t comm; /* kind communicator: the one that waits for longest */
	uint64_t comm_since_ns;
	uint32_t *members;
	uint32_t listed;
	bool queued; /* of its members: see struct nt_frame_inside */
	enum nt_evidence_text cause;
	bool found, working, waiting, moving, inside_all;
	bool by_peer; /* a rank waits in a call to or from a peer, or for such calls */
	bool gone; /* a process ended without finalizing */
	bool going; /* a rank made progress just now, and may release the waiting ones */
	uint32_t lost_sight; /* ranks whose calls are not observed now */
	uint8_t tier;
};

/* Marks the member as one that others wait for. */
void nt_stall_accuse(const struct nt_detect *detect, struct nt_stall *stall,
		     const struct nt_stall_member *member);
/* Marks the member as waiting. */
void nt_stall_witness(struct nt_stall *stall, const struct nt_stall_member *member);
/* Looks for other causes of the wait. */
void nt_stall_look_around(const struct nt_detect *detect, struct nt_stall *stall);
/*
 * A rank that waits for its device may wait for another rank through it, directly or indirectly. If
 * a late rank waits for nothing, is gone, or has just made progress, that rank is the cause, and
 * the waiting ones are acquitted.
 */
void nt_stall_acquit_waiting(const struct nt_detect *detect, struct nt_stall *stall);
/*
 * Whether the rank made progress in the last need_ns. It entered or left a call, or waits for its
 * device while a rank that it may wait for made progress.
 */
bool nt_stall_has_moved(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			uint64_t need_ns);
/*
 * For communicators with unknown members, and for calls to or from a peer: judges the job as a
 * whole. If no rank makes progress, ranks in no call are culprits while all others wait. False: a
 * rank makes progress, or none waits.
 */
bool nt_stall_is_unbound(const struct nt_detect *detect, uint64_t need_ns, struct nt_stall *stall);
/*
 * If processes are stopped, their ranks are the culprits in place of those found, in a call or not.
 * If most are, the job is suspended, and there is no stall.
 */
void nt_stall_accuse_stopped(const struct nt_detect *detect, struct nt_stall *stall);
/* Adds the state of the culprits' processes, if it is known and the same. */
void nt_stall_add_state(const struct nt_detect *detect, const struct nt_stall *stall,
			struct nt_proposal *proposal);

#endif
