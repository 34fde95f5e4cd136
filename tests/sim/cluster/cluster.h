/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A scenario from its first step to the incidents that the product makes of it. */
#ifndef NT_SIM_CLUSTER_CLUSTER_H
#define NT_SIM_CLUSTER_CLUSTER_H

#include <stdint.h>

#include "cli/replay/replay.h"
#include "common/bus/bus.h"
#include "tests/sim/cluster/cost.h"
#include "tests/sim/cluster/scenario.h"

struct cl_outcome {
	uint64_t calls, messages, refused, missing, frames;
	int64_t start_ns, end_ns, fault_ns; /* real time; fault: of the first, 0 without one */
	uint32_t incomplete; /* frames */
	int64_t reported_ns; /* real time: the end of the last window that told of a step */
	struct cl_cost cost[CL_MAX_FAULTS]; /* of the scenario's faults */
	double lost_s; /* by all of them up to reported_ns, or to the end: see cl_cost_of_all() */
};

/*
 * Plays it through agents and engine; with `bus` the messages go there too. The scenario has passed
 * cl_scenario_check(). 0 or -errno.
 */
int cl_run(const struct cl_scenario *scenario, struct nt_bus *bus, struct nt_judgement *judgement,
	   struct cl_outcome *ret_outcome);

#endif
