/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What lies between agents and aggregator: a bus on which messages are lost, doubled, and overtaken,
 * as the scenario's weather has it.
 */
#ifndef NT_SIM_CLUSTER_AIR_H
#define NT_SIM_CLUSTER_AIR_H

#include "common/bus/bus.h"
#include "tests/sim/cluster/scenario.h"

struct cl_air;

/* The scenario is borrowed. 0 or -ENOMEM. */
int cl_air_new(const struct cl_scenario *scenario, struct cl_air **ret_air);
void cl_air_free(struct cl_air *air);

/* The bus to publish to; it belongs to the air. */
struct nt_bus *cl_air_bus(struct cl_air *air);

/* What is published from now on sets out at this time, since the start of the job. */
void cl_air_set_time(struct cl_air *air, int64_t now_ns);

/*
 * Hands over what has arrived by now, in the order of arrival; INT64_MAX: all there is. Stops at the
 * first result that is not 0, and returns it.
 */
int cl_air_deliver(struct cl_air *air, int64_t now_ns,
		   int (*fn)(void *data, const struct nt_bus_record *record), void *data);

#endif
