/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a fault costs, told by playing the same without it. */
#ifndef NT_SIM_CLUSTER_COST_H
#define NT_SIM_CLUSTER_COST_H

#include "tests/sim/cluster/scenario.h"

struct cl_cost {
	/* Of the step as it is, while the fault lasts; INFINITY: the job stands. */
	double part;
	double alone; /* the same were it the only fault: another may hide it */
};

/* One for each fault of the scenario. 0 or -ENOMEM. */
int cl_cost_of_faults(const struct cl_scenario *scenario, struct cl_cost cost[CL_MAX_FAULTS]);

/*
 * Time of the job, in s, that all faults together have cost: in steps up to `reported_ns`, as later
 * ones were not reported yet, or where the job stands still, all of it up to `observed_ns`.
 * Negative: the job was not observed in full. 0 or -ENOMEM.
 */
int cl_cost_of_all(const struct cl_scenario *scenario, int64_t reported_ns, int64_t observed_ns,
		   double *ret_lost_s);

#endif
