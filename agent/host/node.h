/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metrics of the whole node (CPU, memory, load, pressure, NIC), from /proc. */
#ifndef NT_AGENT_HOST_NODE_H
#define NT_AGENT_HOST_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/host/nic.h"
#include "proto/wire.h"

enum {
	NT_NODE_METRICS = 48,
};

/* Zero-initialised; needs no release. */
struct nt_node {
	struct nt_metric_value metric[NT_NODE_METRICS]; /* of the last reading; names are static */
	size_t metrics;
	uint64_t busy_ticks, total_ticks; /* of the processors, since boot */
};

/* Reads all metrics anew. Metrics that this kernel lacks are omitted. */
void nt_node_read(struct nt_node *node);
/* Adds metrics whose names are static. */
void nt_node_add(struct nt_node *node, const struct nt_metric_value *metric, size_t metrics);
/* Adds the NIC counters; nothing without ports and TCP retransmissions. */
void nt_node_take_nic(struct nt_node *node, const struct nt_nic *nic);

/* Exported for tests: texts of /proc/stat, meminfo, loadavg and pressure/<what>. */
void nt_node_take_stat(struct nt_node *node, const char *text, size_t len);
void nt_node_take_memory(struct nt_node *node, const char *text, size_t len);
void nt_node_take_load(struct nt_node *node, const char *text, size_t len);
void nt_node_take_pressure(struct nt_node *node, const char *some_name, const char *full_name,
			   const char *text, size_t len);

#endif
