/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The incident of a node's alarm, of class node: which metrics stand out, and by how much. */
#ifndef NT_AGGREGATOR_GROUP_NODE_INCIDENT_H
#define NT_AGGREGATOR_GROUP_NODE_INCIDENT_H

#include "common/base/cleanup.h"
#include "engine/nodes/fleet.h"
#include "proto/arena.h"
#include "proto/wire.h"

/* The job of a node incident; NULL or "": none. */
struct nt_node_job {
	const char *name, *namespace, *key;
	uint32_t attempt;
};

/* All of the incident is in the arena. -ENOMEM. */
NT_MUST_CHECK int nt_node_incident_describe(const struct nt_fleet *fleet,
					    const struct nt_fleet_node *node,
					    const struct nt_node_job *job,
					    enum nt_fleet_change change, uint64_t real_ns,
					    struct nt_arena *arena,
					    struct nt_wire_incident *ret_incident);

#endif
