/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * NIC counters of a node: retransmits, errors, congestion. Healthy fabrics count some all the time,
 * so a node is compared with the maximum of its first windows. A counter that rose is evidence only
 * if the job became slow at that moment.
 */
#ifndef NT_DETECT_MODEL_NIC_COUNTERS_H
#define NT_DETECT_MODEL_NIC_COUNTERS_H

#include <stdint.h>

#include "detect/math/cusum.h"

struct nt_culprit_link;

enum {
	NT_NIC_PORTS_MAX = 20000, /* nodes with non-zero counters; the rest is counted */
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
	double rate[NT_NIC_PORT_KINDS]; /* per second, in that frame */
	double usual[NT_NIC_PORT_KINDS]; /* maximum of its first frames */
	struct nt_cusum level; /* its peer_deviation: rate ÷ limit */
	double since[NT_NIC_PORT_KINDS]; /* sums of `rate` over the windows of `level` */
};

struct nt_nic_ports {
	struct nt_nic_port *port; /* ascending by node */
	uint32_t ports, port_cap;
	uint64_t dropped;
};

/* Clears the evidence of the link's nodes. */
void nt_nic_ports_clear(struct nt_nic_ports *ports, const struct nt_culprit_link *link);
void nt_nic_ports_free(struct nt_nic_ports *ports);

#endif
