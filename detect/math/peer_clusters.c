/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One-dimensional clustering of the peers of one window. */
#include "detect/math/peer_clusters.h"

#include "detect/math/dbscan.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

struct nt_peer_clusters nt_peer_clusters_split(const double *sorted, size_t n, double eps,
					       uint32_t *label)
{
	struct nt_peer_clusters space = {0};
	size_t first = 0, first_n = 0, second = 0, second_n = 0;

	/* A single sample forms a cluster, so every rank is in one. */
	(void)nt_dbscan_sorted(sorted, n, eps, 1, label);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && label[end] == label[i];)
			end++;
		if (end - i > first_n) {
			second = first;
			second_n = first_n;
			first = i;
			first_n = end - i;
		} else if (end - i > second_n) {
			second = i;
			second_n = end - i;
		}
	}
	if (!first_n)
		return space;
	space.low = sorted[first];
	space.high = sorted[first + first_n - 1];
	space.normal = nt_stats_median(&sorted[first], first_n);
	if (second_n)
		space.other = nt_stats_median(&sorted[second], second_n);
	space.two = second_n * NT_SECOND_PART >= n;
	return space;
}
