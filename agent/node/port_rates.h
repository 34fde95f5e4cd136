/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rates of the node's RDMA ports, from the counters of /sys/class/infiniband: traffic, and signs of loss
 * and congestion, which the kernel or the card counts. A counter that a driver lacks has no rate.
 */
#ifndef NT_AGENT_NODE_PORT_RATES_H
#define NT_AGENT_NODE_PORT_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/node/counter_sum.h"
#include "proto/wire.h"

enum {
	NT_PORT_RATES_PORTS = 16, /* of a node; further ones are counted */
	NT_PORT_RATES_COUNTERS = 24, /* more than are known */
	NT_PORT_RATES_NAME = 64, /* of a device, with its NUL */
};

enum nt_port_sum {
	NT_PORT_SENT_BYTES,
	NT_PORT_RECEIVED_BYTES,
	NT_PORT_NAKS, /* seen by the receiver of lost packets, or for want of its buffers */
};

struct nt_port_counters {
	char device[NT_PORT_RATES_NAME];
	uint32_t port;
	uint64_t value[NT_PORT_RATES_COUNTERS];
	uint32_t has; /* bits of those that could be read */
};

/* Zero-initialised; needs no release. */
struct nt_port_rates {
	struct nt_port_counters before[NT_PORT_RATES_PORTS];
	size_t befores;
	uint64_t before_ns;
	uint64_t ports_over_cap; /* so far */
	struct nt_counter_sum sum; /* of all ports, by enum nt_port_sum */
	bool has_bytes, has_naks; /* in the last reading, by some port */
	/* Of the last reading. */
	struct nt_rdma_port port[NT_PORT_RATES_PORTS];
	struct nt_metric_value rate[NT_PORT_RATES_PORTS][NT_PORT_RATES_COUNTERS];
	char device[NT_PORT_RATES_PORTS][NT_PORT_RATES_NAME];
	size_t ports;
};

/*
 * Reads all counters. The first reading has no rates. now_ns: monotonic. `sys` is
 * "/sys/class/infiniband", except in tests.
 */
void nt_port_rates_read(const char *sys, uint64_t now_ns, struct nt_port_rates *rates);

#endif
