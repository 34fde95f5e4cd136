/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The way around a group's nodes, as NCCL lays it: each node is entered and left once, and each channel
 * does so by ranks of its own, as far as the node has several.
 */
#ifndef NT_SIM_CLUSTER_RING_H
#define NT_SIM_CLUSTER_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cluster/parallelism.h"
#include "tests/sim/cluster/scenario.h"

/* The members of a group on one node. */
struct cl_stop {
	uint32_t node, first, count; /* in `member` */
};

struct cl_ring {
	struct cl_stop *stop; /* owned, in the order of the ring */
	uint32_t *member; /* owned: ranks, stop by stop */
	uint32_t stops, most; /* most members of a stop */
};

/* What one channel sends in a call from one rank to the next. */
struct cl_load {
	double bytes;
	uint32_t chunk; /* bytes of one send */
	uint32_t rings; /* with ports of their own */
};

/* False: no memory, and nothing is owned. */
bool cl_ring_make(const struct cl_scenario *scenario, const struct cl_group *group,
		  struct cl_ring *ret_ring);
void cl_ring_release(struct cl_ring *ring);

/* The stop behind the one with that number. */
const struct cl_stop *cl_ring_next(const struct cl_ring *ring, uint32_t stop);
/* The rank by which that channel enters and leaves a stop. */
uint32_t cl_ring_port(const struct cl_ring *ring, const struct cl_stop *stop, uint32_t channel);

/* By NCCL's algorithm. bytes: of the call; if it is no all-reduce, of each member. */
struct cl_load cl_load_of_ring(const struct cl_ring *ring, double bytes, uint32_t size,
			       bool all_reduce);
/* Of what one rank sends to one other. */
struct cl_load cl_load_of_pair(double bytes);

#endif
