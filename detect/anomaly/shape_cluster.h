/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Groups metrics whose curves have the same shape: those with a small shape-based distance, which is
 * 1 minus the largest correlation over shifts in time.
 *
 * Paparrizos and Gravano, "k-Shape: Efficient and accurate clustering of time series", SIGMOD 2015.
 * Groups are small, as the cost of a reconstruction grows with their size.
 */
#ifndef NT_DETECT_ANOMALY_SHAPE_CLUSTER_H
#define NT_DETECT_ANOMALY_SHAPE_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "detect/anomaly/metric.h"
#include "detect/thresholds/thresholds.h"

struct nt_shape_clusters {
	size_t groups;
	uint8_t members[NT_ANOMALY_METRICS_MAX];
	uint8_t member[NT_ANOMALY_METRICS_MAX][NT_SENSING_GROUP];
};

/* Of `rows` rows of `stride` values, of which the first `metrics` are used. -ENOMEM. */
NT_MUST_CHECK int nt_shape_clusters_find(const float *row, size_t rows, size_t stride,
					 size_t metrics, struct nt_shape_clusters *ret_clusters);

#endif
