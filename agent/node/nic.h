/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * NIC error counters of the node: retransmissions, errors and congestion. RDMA counters come from
 * /sys/class/infiniband, TCP counters from /proc/net/snmp. Names depend on the driver; counters are
 * summed by class.
 */
#ifndef NT_AGENT_NODE_NIC_H
#define NT_AGENT_NODE_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/node/counter_sum.h"

enum {
	NT_NIC_PORTS = NT_COUNTER_SUM_DEVICES, /* of all devices */
};

enum nt_nic_class {
	NT_NIC_RETRANSMITS,
	NT_NIC_ERRORS,
	NT_NIC_CONGESTION,
	NT_NIC_CLASSES,
};

struct nt_nic_tcp {
	uint64_t retransmits; /* segments */
	uint64_t resets; /* of established connections */
};

/* Zero-initialised, and read again and again; needs no release. */
struct nt_nic {
	/* Totals since boot, of ports and TCP. Growth alone has a meaning: see counter_sum.h. */
	uint64_t retransmits, errors, congestion;
	struct nt_counter_sum port; /* by enum nt_nic_class: the same of RDMA ports alone */
	struct nt_nic_tcp tcp;
	bool has_tcp; /* in this reading */
	uint32_t ports;
	uint32_t ports_over_cap; /* of this reading */
};

/*
 * `sys` is "/sys/class/infiniband" and `snmp` "/proc/1/net/snmp", except in tests. That of the init
 * process is of the host's network namespace, also where the agent's pod has its own.
 */
void nt_nic_read(const char *sys, const char *snmp, struct nt_nic *nic);

/* Exported for tests: the text of /proc/net/snmp. False: a counter is missing or malformed. */
bool nt_nic_parse_snmp(const char *text, size_t len, struct nt_nic_tcp *ret_tcp);

#endif
