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
#include "detect/matrix.h"

struct nt_detect;
struct nt_frame_rank;

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

/* What a rank tells of its node's ports, of which something is not zero. -ENOMEM. */
int nt_ports_note(struct nt_detect *detect, const struct nt_frame_rank *seen);
/* Judges what was noted in this frame. */
void nt_ports_judge(struct nt_detect *detect);
/*
 * Of which node, or of which two, counters turned when something began; they must stand out from all
 * others'. False: it is not clear.
 */
bool nt_ports_name(const struct nt_detect *detect, uint64_t onset_ns,
		   struct nt_culprit_link *ret_link);
/* What of a node's ports turned, and how often: a mean, as counters are read more seldom than told. */
struct nt_port_account {
	enum nt_port_kind kind;
	double rate, usual; /* a second: since they turned, and the most that is usual */
	uint32_t windows;
};
/* Of the kind that turned most. False: none counts more than usual. */
bool nt_ports_tell(const struct nt_detect *detect, uint32_t node,
		   struct nt_port_account *ret_account);
void nt_ports_clear(struct nt_detect *detect, const struct nt_culprit_link *link);
void nt_ports_free(struct nt_ports *ports);

#endif
