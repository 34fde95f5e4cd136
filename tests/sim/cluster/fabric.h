/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a healthy network between the nodes is like, and what of it NCCL's proxies report. */
#ifndef NT_SIM_CLUSTER_FABRIC_H
#define NT_SIM_CLUSTER_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cluster/scenario.h"

/* How many times as long as usual a node's NIC takes, without a fault. */
struct cl_strain {
	double leaving, entering;
};

/*
 * Of all nodes in the step. Now and then one sends or is sent more than its NIC takes at once, for up to
 * some seconds; behind a checkpoint all do, until it is written; and other jobs come and go slowly.
 */
void cl_fabric_strain(const struct cl_scenario *scenario, uint32_t step,
		      struct cl_strain *ret_strain);

/* The usual time of a rank's sends ÷ that of the slowest rail. */
double cl_fabric_rail(const struct cl_scenario *scenario, uint32_t rank);

/*
 * Whether a rank's sends are reported in that step. The network must have refused one before.
 * Sockets refuse none, and are what a share of the jobs have; some ranks see it late or never.
 */
bool cl_fabric_has_refused(const struct cl_scenario *scenario, uint32_t rank, uint32_t step);
/* It has from about the first steps on. */
bool cl_fabric_reports(const struct cl_scenario *scenario, uint32_t rank);

#endif
