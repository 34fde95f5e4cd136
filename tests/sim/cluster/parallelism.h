/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who talks to whom. A group is every stride-th rank from a first one on. */
#ifndef NT_SIM_CLUSTER_LAYOUT_H
#define NT_SIM_CLUSTER_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cluster/scenario.h"

enum cl_group_kind {
	CL_WORLD,
	CL_TENSOR,
	CL_DATA,
	CL_PIPELINE,
	CL_EXPERT,
	CL_GROUP_END,
};

struct cl_group {
	uint32_t first, stride, size;
};

/* The rank's group of this kind; size 1: it has none. Ranks run tensor first, pipeline last. */
struct cl_group cl_group_of(const struct cl_scenario *scenario, enum cl_group_kind kind,
			    uint32_t rank);

uint32_t cl_group_place(const struct cl_group *group, uint32_t rank);
uint32_t cl_group_member(const struct cl_group *group, uint32_t place);
bool cl_group_has(const struct cl_group *group, uint32_t rank);
bool cl_group_is_on(const struct cl_scenario *scenario, const struct cl_group *group,
		    uint32_t node);
/* Are its ranks on several nodes? */
bool cl_group_spans(const struct cl_scenario *scenario, const struct cl_group *group);

uint32_t cl_stage_of(const struct cl_scenario *scenario, uint32_t rank);
uint32_t cl_replica_of(const struct cl_scenario *scenario, uint32_t rank);

#endif
