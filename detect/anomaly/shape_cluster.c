/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/shape_cluster.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Curves of metrics with mean 0 and length 1, one after the other. A constant one is all 0. */
static void normalise(const float *row, size_t rows, size_t stride, size_t metrics, float *curve)
{
	for (size_t j = 0; j < metrics; j++) {
		float *at = curve + j * rows, mean = 0.0F, square = 0.0F;

		for (size_t i = 0; i < rows; i++)
			mean += row[i * stride + j] / (float)rows;
		for (size_t i = 0; i < rows; i++) {
			at[i] = row[i * stride + j] - mean;
			square += at[i] * at[i];
		}
		for (size_t i = 0; i < rows && square > 0.0F; i++)
			at[i] /= sqrtf(square);
	}
}

static float shape_distance(const float *one, const float *other, size_t rows)
{
	float best = 0.0F;

	for (int shift = -NT_SHAPE_SHIFTS; shift <= NT_SHAPE_SHIFTS; shift++) {
		size_t skip = (size_t)abs(shift);
		const float *a = shift < 0 ? one : one + skip,
			    *b = shift < 0 ? other + skip : other;
		float sum = 0.0F;

		for (size_t i = 0; i + skip < rows; i++)
			sum += a[i] * b[i];
		best = fmaxf(best, sum);
	}
	return 1.0F - best;
}

/* Gathers the nearest free metrics around a first one. */
static void gather(const float *curve, size_t rows, size_t metrics, size_t first, bool *used,
		   struct nt_shape_clusters *clusters)
{
	float distance[NT_ANOMALY_METRICS_MAX];
	size_t group = clusters->groups++;

	for (size_t j = 0; j < metrics; j++)
		distance[j] =
			used[j] ? INFINITY
				: shape_distance(curve + first * rows, curve + j * rows, rows);
	distance[first] = -1.0F;
	clusters->members[group] = 0;
	while (clusters->members[group] < NT_SENSING_GROUP) {
		size_t best = first;

		for (size_t j = 0; j < metrics; j++)
			if (distance[j] < distance[best] || (used[best] && !used[j]))
				best = j;
		if (used[best] || distance[best] > (float)NT_SHAPE_CLOSE)
			return;
		used[best] = true;
		distance[best] = INFINITY;
		clusters->member[group][clusters->members[group]++] = (uint8_t)best;
	}
}

int nt_shape_clusters_find(const float *row, size_t rows, size_t stride, size_t metrics,
			   struct nt_shape_clusters *ret_clusters)
{
	nt_autofree float *curve = calloc(metrics * rows, sizeof(*curve));
	bool used[NT_ANOMALY_METRICS_MAX] = {false};

	if (!curve)
		return -ENOMEM;
	normalise(row, rows, stride, metrics, curve);
	memset(ret_clusters, 0, sizeof(*ret_clusters));
	for (size_t j = 0; j < metrics; j++)
		if (!used[j])
			gather(curve, rows, metrics, j, used, ret_clusters);
	return 0;
}
