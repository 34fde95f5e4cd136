/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DBSCAN: density-based clustering; points outside clusters are noise. */
#include "detect/math/dbscan.h"

#include <math.h>
#include <stdbool.h>

/* With min_samples 1 every point is a core point, and clusters end at gaps wider than eps. */
static uint32_t label_runs(const double *sorted, size_t n, double eps, uint32_t *ret_label)
{
	uint32_t clusters = 1;

	for (size_t i = 0; i < n; i++) {
		clusters += i && sorted[i] - sorted[i - 1] > eps;
		ret_label[i] = clusters - 1;
	}
	return clusters;
}

/*
 * In sorted order a cluster is a run of core points with gaps of at most eps. Its border points are
 * those up to eps before its first and after its last core point.
 */
uint32_t nt_dbscan_sorted(const double *sorted, size_t n, double eps, size_t min_samples,
			  uint32_t *ret_label)
{
	size_t low = 0, high = 0, last_core = 0, labelled = 0;
	uint32_t clusters = 0;

	if (n && min_samples <= 1 && eps >= 0.0 && isfinite(sorted[0]) && isfinite(sorted[n - 1]))
		return label_runs(sorted, n, eps, ret_label);
	for (size_t i = 0; i < n; i++)
		ret_label[i] = NT_DBSCAN_NOISE;
	for (size_t i = 0; i < n; i++) {
		while (sorted[i] - sorted[low] > eps)
			low++;
		while (high < n && sorted[high] - sorted[i] <= eps)
			high++;
		if (high - low < min_samples)
			continue;
		if (!clusters || sorted[i] - sorted[last_core] > eps)
			clusters++;
		/* Earlier points are labelled or out of reach. */
		for (labelled = labelled < low ? low : labelled; labelled < high; labelled++)
			ret_label[labelled] = clusters - 1;
		last_core = i;
	}
	return clusters;
}

static bool is_near(const double *a, const double *b, size_t dimensions, double eps)
{
	double squares = 0.0;

	for (size_t i = 0; i < dimensions; i++)
		squares += (a[i] - b[i]) * (a[i] - b[i]);
	return sqrt(squares) <= eps;
}

static bool is_core(const double *point, size_t n, size_t dimensions, double eps,
		    size_t min_samples, size_t i)
{
	size_t near = 0;

	for (size_t j = 0; j < n && near < min_samples; j++)
		near += is_near(&point[i * dimensions], &point[j * dimensions], dimensions, eps);
	return near >= min_samples;
}

uint32_t nt_dbscan_points(const double *point, size_t n, size_t dimensions, double eps,
			  size_t min_samples, uint32_t *ret_label, uint32_t *queue)
{
	uint32_t clusters = 0;

	for (size_t i = 0; i < n; i++)
		ret_label[i] = NT_DBSCAN_NOISE;
	for (size_t i = 0; i < n; i++) {
		size_t head = 0, tail = 0;

		if (ret_label[i] != NT_DBSCAN_NOISE ||
		    !is_core(point, n, dimensions, eps, min_samples, i))
			continue;
		ret_label[i] = clusters;
		queue[tail++] = (uint32_t)i;
		while (head < tail) {
			const size_t at = queue[head++];

			if (!is_core(point, n, dimensions, eps, min_samples, at))
				continue;
			for (size_t j = 0; j < n; j++) {
				if (ret_label[j] != NT_DBSCAN_NOISE ||
				    !is_near(&point[at * dimensions], &point[j * dimensions],
					     dimensions, eps))
					continue;
				ret_label[j] = clusters;
				queue[tail++] = (uint32_t)j;
			}
		}
		clusters++;
	}
	return clusters;
}
