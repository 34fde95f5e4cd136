/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The metrics of the whole node, as rows of proto/node_metric.def. A reading reads each file once.
 * Counters are as the kernel has them; what this kernel lacks is left out.
 */
#ifndef NT_AGENT_NODE_NODE_H
#define NT_AGENT_NODE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/node/disk.h"
#include "agent/node/net_device.h"
#include "agent/node/nic.h"
#include "agent/node/port_rates.h"
#include "agent/node/processor_clock.h"
#include "proto/wire.h"

enum {
	NT_NODE_METRICS = 96, /* at least the rows of the table */
	NT_NODE_TICKS = 8, /* columns of /proc/stat, user to steal; guests are in user already */
};

/* Zero-initialised; needs no release. */
struct nt_node {
	struct nt_metric_value metric[NT_NODE_METRICS]; /* of the last reading; names are static */
	size_t metrics;
	uint64_t ticks[NT_NODE_TICKS]; /* of all processors since boot, of the last reading */
	bool has_ticks;
	struct nt_disks disks;
	struct nt_net_devices net;
	struct nt_processor_clock clock;
	uint64_t bytes_read; /* in the last reading, of /proc */
};

/*
 * Reads all metrics anew. `proc` is "/proc", `sys` is "/sys" or another path to the host's, except in
 * tests. now_ns: monotonic.
 */
void nt_node_read(struct nt_node *node, const char *proc, const char *sys, uint64_t now_ns);

/* Adds metrics whose names are static. */
void nt_node_add(struct nt_node *node, const struct nt_metric_value *metric, size_t metrics);
void nt_node_add_value(struct nt_node *node, const char *name, double value);

/* Adds the counters of TCP and of RDMA ports; nothing of what there is not. */
void nt_node_take_nic(struct nt_node *node, const struct nt_nic *nic);
void nt_node_take_ports(struct nt_node *node, const struct nt_port_rates *rates);

/* Devices that were left out so far, as they are over a cap. */
uint64_t nt_node_over_cap(const struct nt_node *node);

/*
 * Exported for tests. agent/node/node_processor.c: texts of /proc/stat, loadavg and pressure/<what>.
 * The names of a pressure may be NULL.
 */
void nt_node_take_stat(struct nt_node *node, const char *text, size_t len);
void nt_node_take_load(struct nt_node *node, const char *text, size_t len);
void nt_node_take_pressure(struct nt_node *node, const char *some_name, const char *full_name,
			   const char *text, size_t len);
/* agent/node/node_memory.c: /proc/meminfo and vmstat. */
void nt_node_take_memory(struct nt_node *node, const char *text, size_t len);
void nt_node_take_vmstat(struct nt_node *node, const char *text, size_t len);
/* agent/node/node.c: /proc/net/softnet_stat and sys/fs/file-nr. */
void nt_node_take_softnet(struct nt_node *node, const char *text, size_t len);
void nt_node_take_files(struct nt_node *node, const char *text, size_t len);

#endif
