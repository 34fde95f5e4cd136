/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/traffic.h"

#include "tests/sim/cluster/parallelism.h"

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

bool cl_traffic_is_timed(const struct cl_scenario *s, uint32_t from, uint32_t to)
{
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
