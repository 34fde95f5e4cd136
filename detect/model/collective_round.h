/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the members of a communicator say of its calls, gathered until all of them have spoken. Mostly
 * one frame has them all. But where devices are far behind their hosts, windows end with a step of the
 * device and hold the calls of two steps now and of none then, and a window may be lost: then some
 * frames together are one hearing. After a few it is over, whoever is missing.
 */
#ifndef NT_DETECT_MODEL_COLLECTIVE_ROUND_H
#define NT_DETECT_MODEL_COLLECTIVE_ROUND_H

#include <stdbool.h>
#include <stdint.h>

struct nt_detect_comm;
struct nt_frame_comm;
struct nt_frame_rank;

enum {
	NT_COLLECTIVE_ROUND_OPS = 32, /* operations that are told apart */
};

enum nt_collective_round_clock {
	NT_COLLECTIVE_ROUND_BY_HOST,
	NT_COLLECTIVE_ROUND_BY_GPU,
	NT_COLLECTIVE_ROUND_CLOCKS,
};

/* What the members say of one synchronising operation. */
struct nt_collective_round_op {
	double bytes, calls; /* of all their calls */
	double shortest_ns[NT_COLLECTIVE_ROUND_CLOCKS]; /* of those that were timed */
	uint32_t timed[NT_COLLECTIVE_ROUND_CLOCKS]; /* members */
	uint8_t op;
};

struct nt_collective_round {
	uint32_t number; /* links that have another one have not spoken in it */
	uint64_t frame, start_ns; /* the first that tells of it; frame 0: none did */
	uint32_t heard; /* members that ended steps */
	double steps, step_ns; /* of theirs, and how long these took */
	uint8_t tier; /* of the last one */
	struct nt_collective_round_op *op;
	uint32_t ops, op_cap;
};

/* What one member says of its communicator. */
struct nt_detect_link {
	struct nt_detect_comm *comm;
	uint64_t epoch, last, hash; /* hash: of all calls of the epoch up to the last */
	uint64_t progress_ns; /* when `last` last moved */
	uint64_t frame; /* last seen in */
	/* Of the communicator's collective round with this number: spoke with a step; timed: operations, by bit. */
	uint32_t collective_round, timed[NT_COLLECTIVE_ROUND_CLOCKS];
	bool spoke;
};

/* Whether the collective round is over. */
enum nt_collective_round_end {
	NT_COLLECTIVE_ROUND_GOES_ON,
	NT_COLLECTIVE_ROUND_IS_WHOLE, /* all members have spoken */
	NT_COLLECTIVE_ROUND_LAPSED, /* some have not, or not in the way that the others did */
};

/* A member's part, which `link` is, in the frame of that number and start. -ENOMEM. */
int nt_collective_round_take(struct nt_collective_round *collective_round, uint64_t frame,
			     uint64_t start_ns, struct nt_detect_link *link,
			     const struct nt_frame_comm *said, const struct nt_frame_rank *seen);
/* At the end of the frame of that number; so many are to be heard. */
enum nt_collective_round_end
nt_collective_round_ends(const struct nt_collective_round *collective_round, uint64_t frame,
			 uint32_t members);
/* The operation that moves most, NULL: none was called. */
const struct nt_collective_round_op *
nt_collective_round_most(const struct nt_collective_round *collective_round);
/* The next one begins. */
void nt_collective_round_clear(struct nt_collective_round *collective_round);
void nt_collective_round_free(struct nt_collective_round *collective_round);

#endif
