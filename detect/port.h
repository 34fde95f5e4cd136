/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the network ports of a node count: segments sent again, errors, congestion. Healthy fabrics
 * count some of it all the time, so a node is held against the most that it counted in its first
 * windows; and a counter that turned accuses nobody unless the job became slow at that moment.
 */
#ifndef NT_DETECT_PORT_H
#define NT_DETECT_PORT_H

#include <stdint.h>

#include "detect/cusum.h"

struct nt_culprit_link;

enum {
	NT_PORTS_MAX = 20000, /* nodes that counted anything: beyond, dropped and counted */
};

enum nt_port_kind {
	NT_PORT_RETRANSMITS,
	NT_PORT_ERRORS,
	NT_PORT_CONGESTION,
	NT_PORT_KINDS,
};

struct nt_port {
	uint32_t node;
	uint64_t frame; /* of `rate` */
	uint32_t learned; /* frames */
	double rate[NT_PORT_KINDS]; /* a second, in that frame */
	double usual[NT_PORT_KINDS]; /* the most, in its first frames */
	struct nt_cusum level; /* its kpi is how many times the limit it counts */
	double since[NT_PORT_KINDS]; /* sums of `rate` over the windows of `level` */
};

struct nt_ports {
	struct nt_port *port; /* ascending by node */
	uint32_t ports, port_cap;
	uint64_t dropped;
};

/* The evidence of the link's nodes is forgotten. */
void nt_ports_clear(struct nt_ports *ports, const struct nt_culprit_link *link);
void nt_ports_free(struct nt_ports *ports);

#endif
