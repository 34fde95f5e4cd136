/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/parallelism.h"

uint32_t cl_stage_of(const struct cl_scenario *s, uint32_t rank)
{
	return rank / (s->tp * s->dp);
}

uint32_t cl_replica_of(const struct cl_scenario *s, uint32_t rank)
{
	return rank / s->tp % s->dp;
}

struct cl_group cl_group_of(const struct cl_scenario *s, enum cl_group_kind kind, uint32_t rank)
{
	uint32_t tensor = rank % s->tp, replica = cl_replica_of(s, rank);
	uint32_t stage = cl_stage_of(s, rank), stage_ranks = s->tp * s->dp;

	switch (kind) {
	case CL_TENSOR:
		return (struct cl_group){rank - tensor, 1, s->tp};
	case CL_DATA:
		return (struct cl_group){stage * stage_ranks + tensor, s->tp, s->dp};
	case CL_PIPELINE:
		return (struct cl_group){rank % stage_ranks, stage_ranks, s->pp};
	case CL_EXPERT:
		return (struct cl_group){rank - replica % s->ep * s->tp, s->tp, s->ep};
	default:
		return (struct cl_group){0, 1, cl_scenario_ranks(s)};
	}
}

uint32_t cl_group_place(const struct cl_group *group, uint32_t rank)
{
	return (rank - group->first) / group->stride;
}

uint32_t cl_group_member(const struct cl_group *group, uint32_t place)
{
	return group->first + place * group->stride;
}

bool cl_group_has(const struct cl_group *group, uint32_t rank)
{
	return rank >= group->first && (rank - group->first) % group->stride == 0 &&
	       cl_group_place(group, rank) < group->size;
}

bool cl_group_is_on(const struct cl_scenario *s, const struct cl_group *group, uint32_t node)
{
	for (uint32_t i = 0; i < group->size; i++) {
		if (cl_scenario_node_of(s, cl_group_member(group, i)) == node)
			return true;
	}
	return false;
}

bool cl_group_spans(const struct cl_scenario *s, const struct cl_group *group)
{
	const uint32_t node = cl_scenario_node_of(s, group->first);

	for (uint32_t i = 1; i < group->size; i++) {
		if (cl_scenario_node_of(s, cl_group_member(group, i)) != node)
			return true;
	}
	return false;
}
