/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of the whole node as numbers with names, from /proc. */
#ifndef NT_AGENT_HOST_NODE_H
#define NT_AGENT_HOST_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/host/nic.h"
#include "proto/wire.h"

enum {
	NT_NODE_METRICS = 32,
};

/* Zeroed is ready for use, and needs no release. */
struct nt_node {
	struct nt_metric_value metric[NT_NODE_METRICS]; /* of the last reading; names are static */
	size_t metrics;
	uint64_t busy_ticks, total_ticks; /* of the processors, since boot */
};

/* Reads again. What this kernel does not tell is left out. */
void nt_node_read(struct nt_node *node);
/* Adds what the ports have counted; nothing where the node has none and never sent a segment again. */
void nt_node_take_nic(struct nt_node *node, const struct nt_nic *nic);

/* The parts, for tests: texts of /proc/stat, meminfo, loadavg and pressure/<what>. */
void nt_node_take_stat(struct nt_node *node, const char *text, size_t len);
void nt_node_take_memory(struct nt_node *node, const char *text, size_t len);
void nt_node_take_load(struct nt_node *node, const char *text, size_t len);
void nt_node_take_pressure(struct nt_node *node, const char *some_name, const char *full_name,
			   const char *text, size_t len);

#endif
