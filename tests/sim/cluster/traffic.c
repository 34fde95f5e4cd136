/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/traffic.h"

#include "tests/sim/cluster/fabric.h"
#include "tests/sim/cluster/parallelism.h"
#include "tests/sim/cluster/program.h"
#include "tests/sim/cluster/ring.h"

enum {
	LEAST_CHUNK = 64 << 10, /* of sends that agents take */
};

bool cl_traffic_is_ring(const struct cl_scenario *s)
{
	return s->ring && s->mode == CL_BLOCKING && s->dp > 1 && !s->sharded;
}

/* The rank sends there itself, in a pipeline or a ring. */
static bool sends(const struct cl_scenario *s, uint32_t rank, uint32_t to)
{
	const uint32_t stage_ranks = s->tp * s->dp;
	const uint32_t ranks = cl_scenario_ranks(s);

	if (s->rendezvous && rank + stage_ranks < ranks &&
	    cl_scenario_node_of(s, rank + stage_ranks) == to)
		return true;
	if (s->rendezvous && rank >= stage_ranks &&
	    cl_scenario_node_of(s, rank - stage_ranks) == to)
		return true;
	if (cl_traffic_is_ring(s)) {
		const struct cl_group group = cl_group_of(s, CL_DATA, rank);
		const uint32_t place = cl_group_place(&group, rank);
		const uint32_t next = cl_group_member(&group, (place + 1) % group.size);

		return cl_scenario_node_of(s, next) == to;
	}
	return false;
}

/* The load of what the rank's group moves most in. False: the group has no such call. */
static bool load_of(const struct cl_scenario *s, enum cl_group_kind kind,
		    const struct cl_ring *ring, uint32_t size, struct cl_load *ret_load)
{
	const double layer = (double)CL_LAYER_ELEMENTS * CL_ELEMENT_BYTES;
	const uint32_t elements = CL_GRADIENT_ELEMENTS / s->buckets;
	const double bucket = (double)elements * CL_ELEMENT_BYTES;

	if (size < 2)
		return false;
	if (kind == CL_PIPELINE)
		*ret_load = cl_load_of_pair(layer);
	else if (kind == CL_EXPERT)
		*ret_load = cl_load_of_pair(layer / 2 / size);
	else if (kind == CL_DATA && !s->sharded)
		*ret_load = cl_load_of_ring(ring, bucket, size, true);
	else
		*ret_load = cl_load_of_ring(ring, layer, size, kind == CL_TENSOR);
	return true;
}

/* The next or the last of its pipeline, or one of its experts. */
static bool is_pair_on(const struct cl_scenario *s, enum cl_group_kind kind,
		       const struct cl_group *group, uint32_t rank, uint32_t node)
{
	const uint32_t place = cl_group_place(group, rank);

	if (kind == CL_EXPERT)
		return cl_group_is_on(s, group, node);
	return (place + 1 < group->size &&
		cl_scenario_node_of(s, cl_group_member(group, place + 1)) == node) ||
	       (place && cl_scenario_node_of(s, cl_group_member(group, place - 1)) == node);
}

static bool is_port_to(const struct cl_scenario *s, enum cl_group_kind kind,
		       const struct cl_group *group, uint32_t rank, uint32_t node)
{
	const uint32_t own = cl_scenario_node_of(s, rank);
	struct cl_load load;
	struct cl_ring ring;
	bool is_port = false;

	if (!cl_ring_make(s, group, &ring))
		return false;
	if (load_of(s, kind, &ring, group->size, &load) && load.chunk >= LEAST_CHUNK) {
		if (kind == CL_PIPELINE || kind == CL_EXPERT)
			is_port = is_pair_on(s, kind, group, rank, node);
		for (uint32_t i = 0; i < ring.stops && load.rings; i++) {
			if (ring.stop[i].node != own || cl_ring_next(&ring, i)->node != node)
				continue;
			for (uint32_t c = 0; c < load.rings; c++)
				is_port |= cl_ring_port(&ring, &ring.stop[i], c) == rank;
		}
	}
	cl_ring_release(&ring);
	return is_port;
}

/* The rank's proxies send there, and report it. */
static bool proxies_send(const struct cl_scenario *s, uint32_t rank, uint32_t to)
{
	static const enum cl_group_kind kinds[] = {CL_TENSOR, CL_DATA, CL_PIPELINE, CL_EXPERT};

	if (cl_scenario_is_bare(s, cl_scenario_node_of(s, rank)) || !cl_fabric_reports(s, rank))
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct cl_group group = cl_group_of(s, kinds[i], rank);

		if ((kinds[i] != CL_EXPERT || s->ep > 1) &&
		    is_port_to(s, kinds[i], &group, rank, to))
			return true;
	}
	return false;
}

bool cl_traffic_is_timed(const struct cl_scenario *s, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; s->proxies && i < cl_scenario_ranks_on(s, from) && from != to; i++) {
		if (proxies_send(s, cl_scenario_rank_on(s, from, i), to))
			return true;
	}
	if (s->mode != CL_BLOCKING || from == to)
		return false;
	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, from); i++) {
		if (sends(s, cl_scenario_rank_on(s, from, i), to))
			return true;
	}
	return false;
}

uint32_t cl_traffic_partners(const struct cl_scenario *s, uint32_t node, uint32_t *ret_first)
{
	uint32_t n = 0;

	*ret_first = UINT32_MAX;
	for (uint32_t i = 0; i < cl_scenario_nodes(s); i++) {
		if (!cl_traffic_is_timed(s, node, i) && !cl_traffic_is_timed(s, i, node))
			continue;
		if (!n++)
			*ret_first = i;
	}
	return n;
}

static bool is_pipe(const struct cl_scenario *s, uint32_t node, uint32_t peer)
{
	const uint32_t stage_ranks = s->tp * s->dp, ranks = cl_scenario_ranks(s);

	for (uint32_t i = 0; i + stage_ranks < ranks; i++) {
		const uint32_t a = cl_scenario_node_of(s, i);
		const uint32_t b = cl_scenario_node_of(s, i + stage_ranks);

		if ((a == node && b == peer) || (a == peer && b == node))
			return true;
	}
	return false;
}

bool cl_traffic_is_between(const struct cl_scenario *s, uint32_t node, uint32_t peer)
{
	static const enum cl_group_kind kinds[] = {CL_TENSOR, CL_DATA, CL_EXPERT};
	if (is_pipe(s, node, peer) || cl_traffic_is_timed(s, node, peer) ||
	    cl_traffic_is_timed(s, peer, node))
		return true;
	for (uint32_t n = 0; n < cl_scenario_ranks_on(s, node); n++) {
		const uint32_t r = cl_scenario_rank_on(s, node, n);

		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			const struct cl_group group = cl_group_of(s, kinds[i], r);

			if (kinds[i] == CL_DATA && cl_traffic_is_ring(s))
				continue;
			if (cl_group_is_on(s, &group, peer))
				return true;
		}
	}
	return false;
}

/* The communicator's calls are a part of the step that shows. */
static bool is_measured(const struct cl_scenario *s, enum cl_group_kind kind,
			const struct cl_group *group)
{
	if (group->size < 2 || !cl_group_spans(s, group))
		return false;
	return kind == CL_TENSOR || kind == CL_EXPERT || !cl_traffic_is_ring(s);
}

bool cl_traffic_is_shared(const struct cl_scenario *s, uint32_t node)
{
	static const enum cl_group_kind kinds[] = {CL_TENSOR, CL_DATA, CL_EXPERT};
	const uint32_t nodes = cl_scenario_nodes(s);
	uint32_t over = 0;

	for (uint32_t other = 0; other < nodes; other++) {
		bool same = other != node;

		for (uint32_t r = 0; r < cl_scenario_ranks(s); r++) {
			for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
				const struct cl_group group = cl_group_of(s, kinds[i], r);
				bool on;

				if (group.first != r || !is_measured(s, kinds[i], &group))
					continue;
				on = cl_group_is_on(s, &group, node);
				over += on && other == node;
				same = same && on == cl_group_is_on(s, &group, other);
			}
		}
		if (same)
			return false;
	}
	return over >= 2;
}
