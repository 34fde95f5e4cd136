/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that made different calls of the same number. */
#ifndef NT_DETECT_RULES_MISMATCH_H
#define NT_DETECT_RULES_MISMATCH_H

#include <stdbool.h>

#include "detect/model/detector_state.h"

/* What a rank called under a number. */
struct nt_mismatch_call {
	uint32_t rank;
	uint8_t op;
	uint32_t type;
	uint64_t count;
};

/*
 * Sorts the calls; the smaller sides come first, the largest last. Where no side is larger than the
 * others all are to blame. Returns how many of the first are to blame, 0: all are equal.
 */
size_t nt_mismatch_sides(struct nt_mismatch_call *call, size_t n);
/*
 * Whether members must agree on such calls: sends and receives differ by nature, and so may the
 * counts of what goes to or comes from a root.
 */
bool nt_mismatch_matters(const struct nt_detect_comm *comm, const struct nt_mismatch_call *call,
			 size_t n);
/*
 * The same where the call itself is not among the recent ones any more: the members stand at
 * `number`, and the hashes of what they called until there tell the sides. *ret_differ: raised.
 */
int nt_mismatch_raise_hashes(struct nt_detect *detect, const struct nt_detect_comm *comm,
			     uint64_t number, uint64_t since_ns, bool *ret_differ);
/* Compares the members' rolling hashes, and raises what differs where it never did. -ENOMEM. */
int nt_mismatch_check(struct nt_detect *detect, const struct nt_frame *frame);
/* Raises it: `call` as sorted above, number the call's. -ENOMEM. */
int nt_mismatch_raise(struct nt_detect *detect, const struct nt_detect_comm *comm, uint64_t number,
		      const struct nt_mismatch_call *call, size_t n, size_t blamed,
		      uint64_t since_ns);
/* The rank's last call of that number on the communicator, if it is among the recent ones. */
bool nt_frame_find_call(const struct nt_frame *frame, uint32_t rank, uint64_t comm, uint64_t number,
			struct nt_mismatch_call *ret_call);

#endif
