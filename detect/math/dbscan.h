/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DBSCAN: density-based clustering; points outside clusters are noise. */
#ifndef NT_DETECT_MATH_DBSCAN_H
#define NT_DETECT_MATH_DBSCAN_H

#include <stddef.h>
#include <stdint.h>

enum {
	NT_DBSCAN_NOISE = UINT32_MAX,
};

/*
 * A point is a core point if at least min_samples points (itself included) lie within eps of it.
 * Labels ascend from 0 in the order of the clusters' first core points; a border point belongs to
 * the cluster that reaches it first. Returns the number of clusters.
 */

/* Clusters ascending values in one scan, O(n). */
uint32_t nt_dbscan_sorted(const double *sorted, size_t n, double eps, size_t min_samples,
			  uint32_t *ret_label);
/*
 * Clusters n points of `dimensions` coordinates each, stored point by point, by Euclidean distance:
 * O(n²). `queue` has room for n.
 */
uint32_t nt_dbscan_points(const double *point, size_t n, size_t dimensions, double eps,
			  size_t min_samples, uint32_t *ret_label, uint32_t *queue);

#endif
