/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The peers of one window in one line: which of them are the normal ones. */
#ifndef NT_DETECT_MATH_PEER_CLUSTERS_H
#define NT_DETECT_MATH_PEER_CLUSTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nt_peer_clusters {
	double low, high; /* the largest cluster: normal */
	bool two; /* the second largest holds a third of the peers or more: neither is normal */
	double other; /* its median, in the peers' unit; 0 where there is none */
	double normal; /* median of the largest */
};

/*
 * Of ascending values, clusters being those with gaps up to eps. `label` is scratch for n. The
 * largest cluster of equal ones is the lower.
 */
struct nt_peer_clusters nt_peer_clusters_split(const double *sorted, size_t n, double eps,
					       uint32_t *label);

#endif
