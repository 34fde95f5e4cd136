/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/ring.h"

#include <math.h>
#include <stdlib.h>

enum {
	MOST_RINGS = 4, /* with ranks of their own */
	PAIR_CHANNELS = 2, /* over which two ranks send to each other */
	LEAST_CHUNK = 128 << 10, /* channels are left out, for sends to be no smaller */
	RING_CHUNK = 512 << 10, /* the largest sends */
	PAIR_CHUNK = 128 << 10,
};

/* 1 + the stop of each node; 0: it has none yet. */
static void list_stops(const struct cl_scenario *s, const struct cl_group *group,
		       struct cl_ring *ring, uint32_t *stop_of)
{
	for (uint32_t i = 0; i < group->size; i++) {
		const uint32_t node = cl_scenario_node_of(s, cl_group_member(group, i));

		if (!stop_of[node]) {
			ring->stop[ring->stops] = (struct cl_stop){.node = node};
			stop_of[node] = ++ring->stops;
		}
		ring->stop[stop_of[node] - 1].count++;
	}
	for (uint32_t i = 0, first = 0; i < ring->stops; i++) {
		struct cl_stop *stop = &ring->stop[i];

		stop->first = first;
		first += stop->count;
		if (stop->count > ring->most)
			ring->most = stop->count;
		stop->count = 0; /* until its members are listed */
	}
	for (uint32_t i = 0; i < group->size; i++) {
		const uint32_t member = cl_group_member(group, i);
		struct cl_stop *stop = &ring->stop[stop_of[cl_scenario_node_of(s, member)] - 1];

		ring->member[stop->first + stop->count++] = member;
	}
}

bool cl_ring_make(const struct cl_scenario *scenario, const struct cl_group *group,
		  struct cl_ring *ret_ring)
{
	struct cl_ring ring = {
		.stop = calloc(group->size, sizeof(*ring.stop)),
		.member = calloc(group->size, sizeof(*ring.member)),
	};
	uint32_t *stop_of = calloc(cl_scenario_nodes(scenario), sizeof(*stop_of));
	const bool made = ring.stop && ring.member && stop_of;

	if (made) {
		list_stops(scenario, group, &ring, stop_of);
		*ret_ring = ring;
	} else {
		cl_ring_release(&ring);
	}
	free(stop_of);
	return made;
}

void cl_ring_release(struct cl_ring *ring)
{
	free(ring->stop);
	free(ring->member);
	*ring = (struct cl_ring){0};
}

const struct cl_stop *cl_ring_next(const struct cl_ring *ring, uint32_t stop)
{
	return &ring->stop[(stop + 1) % ring->stops];
}

uint32_t cl_ring_port(const struct cl_ring *ring, const struct cl_stop *stop, uint32_t channel)
{
	return ring->member[stop->first + channel % stop->count];
}

struct cl_load cl_load_of_ring(const struct cl_ring *ring, double bytes, uint32_t size,
			       bool all_reduce)
{
	const double n = size;
	const double piece = all_reduce ? bytes / n : bytes; /* from rank to rank at a time */
	const double moved = all_reduce ? 2 * (n - 1) * piece : (n - 1) * piece;
	const uint32_t rings = ring->most < MOST_RINGS ? ring->most : MOST_RINGS;
	uint32_t channels = rings * PAIR_CHANNELS;

	while (channels > 1 && piece / channels < LEAST_CHUNK)
		channels--;
	return (struct cl_load){
		.bytes = moved / channels,
		.chunk = (uint32_t)fmax(1, fmin(RING_CHUNK, piece / channels)),
		.rings = channels < rings ? channels : rings,
	};
}

struct cl_load cl_load_of_pair(double bytes)
{
	const double each = bytes / PAIR_CHANNELS;

	return (struct cl_load){.bytes = each, .chunk = (uint32_t)fmax(1, fmin(PAIR_CHUNK, each))};
}
