/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What stands out on a node with an alarm: evidence of its incident and of slow ranks on it. */
#ifndef NT_ENGINE_NODES_NODE_CAUSE_H
#define NT_ENGINE_NODES_NODE_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/cleanup.h"
#include "engine/nodes/fleet.h"
#include "proto/arena.h"

/* The method of such an evidence. */
#define NT_NODE_CAUSE_METHOD "node-score"

enum {
	NT_NODE_CAUSE_UNIT = 32, /* bytes of a unit with "/s" and the NUL */
};

/*
 * A metric of the explanation. `usual`: the median of its peers, or the nearer end of its usual
 * range where it has none.
 */
struct nt_node_cause {
	const char *metric; /* static, as long as the fleet */
	char unit[NT_NODE_CAUSE_UNIT];
	double value, usual, width;
	bool has_peers;
};

/* Those of the node's open alarm, that of the largest share first. 0: it has none. */
size_t nt_node_causes(const struct nt_fleet *fleet, const struct nt_fleet_node *node,
		      struct nt_node_cause ret_cause[NT_FLEET_TOLD]);

/* "tcp_retransmits is 40 times the peers' (120 segments/s)". -ENOMEM. */
NT_MUST_CHECK int nt_node_cause_text(const struct nt_node_cause *cause, struct nt_arena *arena,
				     const char **ret_text);

/*
 * Names in an incident that accuses ranks, nodes or NICs what stands out on their nodes: evidence,
 * a cause if it has none, and the end of its summary. Returns how many alarms joined, or -ENOMEM:
 * the incident is unchanged then.
 */
NT_MUST_CHECK int nt_node_cause_join(const struct nt_fleet *fleet,
				     struct nt_wire_incident *incident, struct nt_arena *arena);

#endif
