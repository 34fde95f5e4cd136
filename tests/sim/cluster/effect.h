/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the faults of a scenario do in a step. */
#ifndef NT_SIM_CLUSTER_EFFECT_H
#define NT_SIM_CLUSTER_EFFECT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cluster/parallelism.h"
#include "tests/sim/cluster/scenario.h"

/* Is the rank one that the fault falls on, if there is any of it in the step? */
bool cl_effect_hits(const struct cl_scenario *scenario, const struct cl_fault *fault, uint32_t rank,
		    uint32_t step);
/* How many times as long as usual the rank's kernels take. */
double cl_effect_on_work(const struct cl_scenario *scenario, uint32_t rank, uint32_t step);
/* The same of the rank by nature. */
double cl_effect_of_nature(const struct cl_scenario *scenario, uint32_t rank);
/* How long the rank writes at a checkpoint before the step. */
int64_t cl_effect_of_saving_ns(const struct cl_scenario *scenario, uint32_t rank, uint32_t step);
/* And what the group transfers: a ring is as fast as its slowest edge. */
double cl_effect_on_transfer(const struct cl_scenario *scenario, const struct cl_group *group,
			     uint32_t step);
/* The same of what goes from one node to another. */
double cl_effect_on_link(const struct cl_scenario *scenario, uint32_t from, uint32_t to,
			 uint32_t step);
/* The fault of that kind that falls on the rank in this very step, or NULL. */
const struct cl_fault *cl_effect_now(const struct cl_scenario *scenario, enum cl_fault_kind kind,
				     uint32_t rank, uint32_t step);

#endif
