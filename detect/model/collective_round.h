/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A collective round: the timings that all members of one communicator reported for its calls. It
 * is normally complete within one frame. If devices lag their hosts, a window may hold the calls of
 * two steps or of none, and a window may be lost. A round therefore spans several frames, and
 * lapses after a few even if members are missing.
 */
#ifndef NT_DETECT_MODEL_COLLECTIVE_ROUND_H
#define NT_DETECT_MODEL_COLLECTIVE_ROUND_H

#include <stdbool.h>
#include <stdint.h>

struct nt_detect_comm;
struct nt_frame_comm;
struct nt_frame_rank;

enum {
	NT_COLLECTIVE_ROUND_OPS = 32, /* operations that are distinguished */
};

enum nt_collective_round_clock {
	NT_COLLECTIVE_ROUND_BY_HOST,
	NT_COLLECTIVE_ROUND_BY_GPU,
	NT_COLLECTIVE_ROUND_CLOCKS,
};

/* The members' reports of one synchronising operation. */
struct nt_collective_round_op {
	double bytes, calls; /* sums over all members */
	double shortest_ns[NT_COLLECTIVE_ROUND_CLOCKS]; /* shortest timed call */
	uint32_t timed[NT_COLLECTIVE_ROUND_CLOCKS]; /* members that timed it */
	uint8_t op;
};

struct nt_collective_round {
	uint32_t number; /* links with another number have not reported in this round */
	uint64_t frame, start_ns; /* of the first report; frame 0: none yet */
	uint32_t reporters; /* members that reported with completed steps */
	double steps, step_ns; /* their steps, and the time of these */
	uint8_t tier; /* of the last member */
	struct nt_collective_round_op *op;
	uint32_t ops, op_cap;
};

/* One member's state in its communicator. */
struct nt_detect_link {
	struct nt_detect_comm *comm;
	uint64_t epoch, last, hash; /* hash: over the calls of the epoch up to `last` */
	uint64_t progress_ns; /* when `last` last moved */
	uint64_t frame; /* last seen in */
	/*
	 * Last round that it reported in; timed: bit set of operations; reported: with a completed
	 * step.
	 */
	uint32_t collective_round, timed[NT_COLLECTIVE_ROUND_CLOCKS];
	bool reported;
};

/* State of a collective round at the end of a frame. */
enum nt_collective_round_end {
	NT_COLLECTIVE_ROUND_GOES_ON,
	NT_COLLECTIVE_ROUND_IS_WHOLE, /* all members have reported */
	NT_COLLECTIVE_ROUND_LAPSED, /* members are missing, or reported by another clock */
};

/* Adds the report of a member, `link`, in the frame with that number and start. -ENOMEM. */
int nt_collective_round_take(struct nt_collective_round *collective_round, uint64_t frame,
			     uint64_t start_ns, struct nt_detect_link *link,
			     const struct nt_frame_comm *said, const struct nt_frame_rank *seen);
/* Called at the end of a frame; `members` reports are expected. */
enum nt_collective_round_end
nt_collective_round_ends(const struct nt_collective_round *collective_round, uint64_t frame,
			 uint32_t members);
/* The operation that moves most bytes, or NULL if none was called. */
const struct nt_collective_round_op *
nt_collective_round_most(const struct nt_collective_round *collective_round);
/* Starts the next round. */
void nt_collective_round_clear(struct nt_collective_round *collective_round);
void nt_collective_round_free(struct nt_collective_round *collective_round);

#endif
