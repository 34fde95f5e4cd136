/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the node's network ports have counted that says that packets did not arrive at once: RDMA ports
 * from /sys/class/infiniband, TCP from /proc/net/snmp. Which names a device has depends on its driver;
 * the sum of those that it has goes by its class.
 */
#ifndef NT_AGENT_HOST_NIC_H
#define NT_AGENT_HOST_NIC_H

#include <stddef.h>
#include <stdint.h>

enum {
	NT_NIC_PORTS = 64, /* of all devices */
};

/* Since boot, of all ports; what has no port stays 0. */
struct nt_nic {
	uint64_t retransmits, errors, congestion;
	uint32_t ports;
	uint32_t ports_over_cap; /* of this reading */
};

/* `sys` is "/sys/class/infiniband" and `snmp` "/proc/net/snmp", but for tests. */
void nt_nic_read(const char *sys, const char *snmp, struct nt_nic *ret_nic);

/* The part for tests: retransmitted segments in the text of /proc/net/snmp, or 0. */
uint64_t nt_nic_parse_snmp(const char *text, size_t len);

#endif
