/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * NIC error counters of the node: retransmissions, errors and congestion. RDMA counters come from
 * /sys/class/infiniband, TCP counters from /proc/net/snmp. Names depend on the driver; counters are
 * summed by class.
 */
#ifndef NT_AGENT_HOST_NIC_H
#define NT_AGENT_HOST_NIC_H

#include <stddef.h>
#include <stdint.h>

enum {
	NT_NIC_PORTS = 64, /* of all devices */
};

/* Totals of all ports since boot; 0 without a port. */
struct nt_nic {
	uint64_t retransmits, errors, congestion;
	uint32_t ports;
	uint32_t ports_over_cap; /* of this reading */
};

/* `sys` is "/sys/class/infiniband" and `snmp` "/proc/net/snmp", except in tests. */
void nt_nic_read(const char *sys, const char *snmp, struct nt_nic *ret_nic);

/* Exported for tests: retransmitted segments in the text of /proc/net/snmp, or 0. */
uint64_t nt_nic_parse_snmp(const char *text, size_t len);

#endif
