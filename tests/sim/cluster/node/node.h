/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A node with its agent: the agent's own tracker and publisher, given events as its probes would
 * have recorded them, on a bus of the caller's.
 */
#ifndef NT_SIM_CLUSTER_NODE_H
#define NT_SIM_CLUSTER_NODE_H

#include <stdint.h>

#include "common/bus/bus.h"
#include "tests/sim/cluster/play/play.h"

#define CL_TICK_NS 100000000LL /* as the agent's */

struct cl_node;

/* All is borrowed. 0 or -ENOMEM. */
int cl_node_new(const struct cl_scenario *scenario, struct cl_play *play, uint32_t index,
		struct nt_bus *bus, struct cl_node **ret_node);
void cl_node_free(struct cl_node *node);

/* To be called for every tick: all that happened up to now_ns, since the start of the job. */
int cl_node_tick(struct cl_node *node, int64_t now_ns);

/* The agent is killed; its ranks go on unseen. */
void cl_node_kill(struct cl_node *node);
/* And another one comes, which finds them running. 0 or -ENOMEM. */
int cl_node_revive(struct cl_node *node, int64_t now_ns);

/* Calls given to the agent so far. */
uint64_t cl_node_calls(const struct cl_node *node);

/* Real time of the start of the job by an exact clock. */
#define CL_EPOCH_NS 1800000000000000000ULL

#endif
