/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/truth/sight.h"

#include "tests/sim/cluster/parallelism.h"

bool cl_sight_has_work(const struct cl_scenario *s)
{
	return s->mode == CL_BLOCKING || s->mode == CL_PLUGIN ||
	       (s->mode == CL_LOCAL_SYNC && s->tp == 1 && s->pp == 1 && s->ep == 1 && !s->sharded);
}

enum nt_tier cl_sight_tier(const struct cl_scenario *s)
{
	if (s->mode == CL_PLUGIN)
		return NT_TIER_T3;
	return cl_sight_has_work(s) ? NT_TIER_T2 : NT_TIER_T1;
}

/* Where some nodes have no plugin theirs are of another tier: nothing of them is held against it. */
static bool is_alike(const struct cl_scenario *s, uint32_t a, uint32_t b)
{
	return s->mode != CL_PLUGIN || cl_scenario_is_bare(s, cl_scenario_node_of(s, a)) ==
					       cl_scenario_is_bare(s, cl_scenario_node_of(s, b));
}

bool cl_sight_has_work_of(const struct cl_scenario *s, uint32_t rank)
{
	return cl_sight_has_work(s) &&
	       !(s->mode == CL_PLUGIN && cl_scenario_is_bare(s, cl_scenario_node_of(s, rank)));
}

bool cl_sight_is_even(const struct cl_scenario *s)
{
	for (uint32_t i = 1; i < cl_scenario_nodes(s) && s->mode == CL_PLUGIN; i++) {
		if (cl_scenario_is_bare(s, i) != cl_scenario_is_bare(s, 0))
			return false;
	}
	return true;
}

bool cl_sight_has_all_work(const struct cl_scenario *s)
{
	return cl_sight_is_even(s) && cl_sight_has_work_of(s, 0);
}

bool cl_sight_is_alone(const struct cl_scenario *s, uint32_t rank)
{
	const struct cl_group peers = cl_group_of(s, CL_DATA, rank);
	uint32_t n = 0;

	for (uint32_t i = 0; i < peers.size; i++)
		n += is_alike(s, rank, cl_group_member(&peers, i));
	return n < 4 && n < peers.size;
}

uint32_t cl_sight_peers_on(const struct cl_scenario *s, uint32_t rank, uint32_t node,
			   uint32_t *ret_all)
{
	const struct cl_group peers = cl_group_of(s, CL_DATA, rank);
	uint32_t n = 0;

	*ret_all = 0;
	for (uint32_t i = 0; i < peers.size; i++) {
		const uint32_t member = cl_group_member(&peers, i);

		if (!is_alike(s, rank, member))
			continue;
		n += cl_scenario_node_of(s, member) == node;
		++*ret_all;
	}
	return n;
}

bool cl_sight_is_crowded(const struct cl_scenario *s, uint32_t node)
{
	uint32_t all;

	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, node); i++) {
		if (cl_sight_peers_on(s, cl_scenario_rank_on(s, node, i), node, &all) * 3 > all * 2)
			return true;
	}
	return false;
}

bool cl_sight_is_compared(const struct cl_scenario *s, uint32_t node)
{
	uint32_t all;

	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, node); i++) {
		if (cl_sight_peers_on(s, cl_scenario_rank_on(s, node, i), node, &all) < all)
			return true;
	}
	return false;
}

bool cl_sight_is_unobserved(const struct cl_scenario *s, uint32_t rank)
{
	for (size_t i = 0; i < s->faults; i++) {
		if (s->fault[i].kind == CL_AGENT_DIES &&
		    cl_scenario_node_of(s, rank) == s->fault[i].target)
			return true;
	}
	return false;
}
