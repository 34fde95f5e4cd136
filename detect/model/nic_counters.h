/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the network ports of a node count: segments sent again, errors, congestion. Healthy fabrics
 * count some of it all the time, so a node is held against the most that it counted in its first
 * windows; and a counter that turned accuses nobody unless the job became slow at that moment.
 */
#ifndef NT_DETECT_MODEL_NIC_COUNTERS_H
#define NT_DETECT_MODEL_NIC_COUNTERS_H

#include <stdint.h>

#include "detect/math/cusum.h"

struct nt_culprit_link;

enum {
	NT_NIC_PORTS_MAX = 20000, /* nodes that counted anything: beyond, dropped and counted */
};

enum nt_nic_port_kind {
	NT_NIC_PORT_RETRANSMITS,
	NT_NIC_PORT_ERRORS,
	NT_NIC_PORT_CONGESTION,
	NT_NIC_PORT_KINDS,
};

struct nt_nic_port {
	uint32_t node;
	uint64_t frame; /* of `rate` */
	uint32_t learned; /* frames */
	double rate[NT_NIC_PORT_KINDS]; /* a second, in that frame */
	double usual[NT_NIC_PORT_KINDS]; /* the most, in its first frames */
	struct nt_cusum level; /* its deviation is how many times the limit it counts */
	double since[NT_NIC_PORT_KINDS]; /* sums of `rate` over the windows of `level` */
};

struct nt_nic_ports {
	struct nt_nic_port *port; /* ascending by node */
	uint32_t ports, port_cap;
	uint64_t dropped;
};

/* The evidence of the link's nodes is forgotten. */
void nt_nic_ports_clear(struct nt_nic_ports *ports, const struct nt_culprit_link *link);
void nt_nic_ports_free(struct nt_nic_ports *ports);

#endif
