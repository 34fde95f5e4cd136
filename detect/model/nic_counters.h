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
	NT_NIC_NODES_MAX = 20000, /* nodes with non-zero counters; the rest is counted */
};

enum nt_nic_counter_kind {
	NT_NIC_COUNTER_RETRANSMITS,
	NT_NIC_COUNTER_ERRORS,
	NT_NIC_COUNTER_CONGESTION,
	NT_NIC_COUNTER_KINDS,
};

struct nt_nic_node_counters {
	uint32_t node;
	uint64_t frame; /* of `rate` */
	uint32_t learned; /* frames */
	double rate[NT_NIC_COUNTER_KINDS]; /* per second, in that frame */
	double usual[NT_NIC_COUNTER_KINDS]; /* maximum of its first frames */
	struct nt_cusum level; /* its peer_deviation: rate ÷ limit */
	double since[NT_NIC_COUNTER_KINDS]; /* sums of `rate` over the windows of `level` */
};

struct nt_nic_counters {
	struct nt_nic_node_counters *entry; /* ascending by node */
	uint32_t entries, entry_cap;
	uint64_t dropped;
};

/* Clears the evidence of the link's nodes. */
void nt_nic_counters_clear(struct nt_nic_counters *counters, const struct nt_culprit_link *link);
void nt_nic_counters_free(struct nt_nic_counters *counters);

#endif
