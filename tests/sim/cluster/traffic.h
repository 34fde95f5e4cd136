/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which nodes the played job moves data between, and of which of it the times show by peer. */
#ifndef NT_SIM_CLUSTER_TRAFFIC_H
#define NT_SIM_CLUSTER_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cluster/scenario.h"

/* Members of a group of the rank's exchange gradients with their neighbours alone. */
bool cl_traffic_is_ring(const struct cl_scenario *scenario);
/* Ranks of the one node send to ranks of the other, and how long each send takes can be seen. */
bool cl_traffic_is_timed(const struct cl_scenario *scenario, uint32_t from, uint32_t to);
/* With how many nodes this one has such traffic; *ret_first is one of them. */
uint32_t cl_traffic_partners(const struct cl_scenario *scenario, uint32_t node,
			     uint32_t *ret_first);
/* Anything is moved between the two at all. */
bool cl_traffic_is_between(const struct cl_scenario *scenario, uint32_t node, uint32_t peer);
/*
 * Of the communicators whose members all wait for each other, at least two go over the node's NIC, and
 * no other node is on the same ones.
 */
bool cl_traffic_is_shared(const struct cl_scenario *scenario, uint32_t node);

#endif
