/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mismatches: members made different calls under the same call number. */
#ifndef NT_DETECT_RULES_MISMATCH_H
#define NT_DETECT_RULES_MISMATCH_H

#include <stdbool.h>

#include "detect/model/detector_state.h"

/* A rank's call under one number. */
struct nt_mismatch_call {
	uint32_t rank;
	uint8_t op;
	uint32_t type;
	uint64_t count;
	uint32_t tensors; /* of a coalesced call; 0: unknown */
};

/*
 * Sorts the calls into sides of equal calls, the largest last. Returns how many of the first are to
 * blame: all but the largest side, or all if there is no largest; 0: all are equal.
 */
size_t nt_mismatch_sides(struct nt_mismatch_call *call, size_t n);
/*
 * Whether members must agree on such calls: sends and receives differ by design, and so may the
 * counts of rooted operations.
 */
bool nt_mismatch_matters(const struct nt_detect_comm *comm, const struct nt_mismatch_call *call,
			 size_t n);
/*
 * The same if the call is no longer among the recent ones: sides are formed by the hashes of the
 * calls up to `number`. *ret_differ: raised.
 */
int nt_mismatch_raise_hashes(struct nt_detect *detect, const struct nt_detect_comm *comm,
			     uint64_t number, uint64_t since_ns, bool *ret_differ);
/* Compares the members' rolling hashes; raises a first difference. -ENOMEM. */
int nt_mismatch_check(struct nt_detect *detect, const struct nt_frame *frame);
/* Raises a mismatch: `call` as sorted above, `number` is the call number. -ENOMEM. */
int nt_mismatch_raise(struct nt_detect *detect, const struct nt_detect_comm *comm, uint64_t number,
		      const struct nt_mismatch_call *call, size_t n, size_t blamed,
		      uint64_t since_ns);
/* The rank's last call with that number on the communicator. False: not among the recent ones. */
bool nt_frame_find_call(const struct nt_frame *frame, uint32_t rank, uint64_t comm, uint64_t number,
			struct nt_mismatch_call *ret_call);

#endif
