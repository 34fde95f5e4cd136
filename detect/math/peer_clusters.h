/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One-dimensional clustering of the peers of one window: finds the normal cluster. */
#ifndef NT_DETECT_MATH_PEER_CLUSTERS_H
#define NT_DETECT_MATH_PEER_CLUSTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nt_peer_clusters {
	double low, high; /* bounds of the largest cluster, which is normal */
	bool two; /* the second largest has at least a third of the peers: neither is normal */
	double other; /* median of the second largest, in the peers' unit; 0: none */
	double normal; /* median of the largest */
};

/*
 * Splits ascending values at gaps over eps. `label` is scratch for n. Of two equally large clusters
 * the lower one is the largest.
 */
struct nt_peer_clusters nt_peer_clusters_split(const double *sorted, size_t n, double eps,
					       uint32_t *label);

#endif
