/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Transfer times of a communicator, compared with its own past. The transfer time of a call is the
 * shortest duration among the members: the member that arrives last does not wait.
 */
#ifndef NT_DETECT_MODEL_NETWORK_H
#define NT_DETECT_MODEL_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/math/cusum.h"
#include "detect/math/far_rate.h"
#include "detect/model/time.h"

/* How a transfer is measured, best first; values of different methods are never compared. */
enum nt_network_method {
	NT_NETWORK_NONE,
	NT_NETWORK_SAMPLES, /* calls that all members sampled */
	NT_NETWORK_SHORTEST, /* the shortest call of any member in the window */
	NT_NETWORK_LEAST_WAIT, /* the member that waited least in its steps */
	NT_NETWORK_BY_GPU, /* as SHORTEST, where all members' devices timed their calls */
	NT_NETWORK_METHODS,
};

/* Whether the past was compared with those of communicators alike. */
enum nt_network_compared {
	NT_NETWORK_NOT_YET, /* some of these are unknown */
	NT_NETWORK_UNLIKE, /* there are too few */
	NT_NETWORK_COMPARED,
};

struct nt_network {
	struct nt_cusum level;
	struct nt_cusum rate; /* of how often it is slow: see nt_network_count_far() */
	struct nt_far_rhythm rhythm;
	uint8_t far_fresh; /* of the last rounds, how many until the evidence of a slow one is old */
	/*
	 * Transfer time, ns: of a step's calls, or by devices of one call. Its peer_deviation:
	 * calls per step.
	 */
	struct nt_past past;
	uint8_t method, tier;
	uint8_t op; /* the operation that moves most bytes; only it is watched */
	double bytes; /* per call; a change of size resets the past */
	uint64_t frame; /* in which the last round ended, 0: none did */
	double transfer, step_ns; /* of that round, per step */
	double calls; /* calls per step, if the past is of one call: slow mean */
	double cost; /* excess of that round, part of the step; 0 while learning */
	struct nt_lesson lesson; /* of `past` */
	/*
	 * Of communicators alike, in the unit of `past`, if this one was much slower from the start;
	 * 0: its own past is the reference.
	 */
	double reference;
	uint8_t compared; /* enum nt_network_compared */
	/*
	 * Of what the member waits that is longest in the run queue: the part that it is queued, mean of
	 * the rounds of `past`.
	 */
	double starved_part;
	uint32_t starved_rounds;
	/* TCP packets sent again by its members, a second: a low mean while it is not slow, and a mean. */
	double retransmits_usual, retransmits;
	uint32_t loss_rounds; /* that these are means of */
};

/* Whether its members send many more packets again than before it became slow. */
bool nt_network_loses(const struct nt_network *network);

/* Clears both sums. */
void nt_network_clear(struct nt_network *network);
/* The normal transfer time of a step, ns. */
double nt_network_usual(const struct nt_network *network);

#endif
