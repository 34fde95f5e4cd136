/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Robust statistics over plain arrays. */
#include "detect/math/stats.h"

#include <math.h>
#include <stdbool.h>

#include "common/base/search.h"
#include "common/base/sort.h"

/*
 * Median length of the shortest interval ÷ 1.35 sigma, for n normal values, by simulation. Odd
 * counts hold a smaller share of the values, so both rows alternate.
 */
static const double width_small[] = {
	1.0,   1.0,   0.690, 0.256, 0.676, 0.431, 0.704, 0.525,
	0.721, 0.588, 0.745, 0.637, 0.769, 0.678, 0.775, 0.708,
};
static const double core_small[] = {
	1.0,   1.0,   1.0,   0.272, 0.143, 0.434, 0.313, 0.533,
	0.422, 0.603, 0.507, 0.640, 0.557, 0.670, 0.607, 0.694,
};

enum {
	SMALL = sizeof(width_small) / sizeof(width_small[0]),
};

void nt_stats_sort(double *value, size_t n)
{
	bool ascending = true;

	for (size_t i = 1; i < n && ascending; i++)
		ascending = value[i - 1] <= value[i];
	if (!ascending)
		nt_sort(value, n);
}

double nt_stats_median_low(const double *sorted, size_t n)
{
	return n ? sorted[(n - 1) / 2] : 0.0;
}

double nt_stats_median(const double *sorted, size_t n)
{
	return n ? sorted[(n - 1) / 2] / 2.0 + sorted[n / 2] / 2.0 : 0.0;
}

double nt_stats_quantile_of(double *value, size_t n, double q)
{
	const size_t at = n ? (size_t)((double)(n - 1) * q) : 0;

	if (n)
		nt_sort_select(value, n, at, at);
	return n ? value[at] : 0.0;
}

double nt_stats_median_without(const double *sorted, size_t n, double value)
{
	size_t low, a, b;

	if (n < 2)
		return 0.0;
	low = nt_search_first(0, n, i, !(sorted[i] < value));
	a = (n - 2) / 2;
	b = (n - 1) / 2;
	a += a >= low;
	b += b >= low;
	return sorted[a] / 2.0 + sorted[b] / 2.0;
}

struct nt_stats_middle nt_stats_middle(const double *sorted, size_t n)
{
	const size_t low = (n - 2) / 2, high = (n - 1) / 2;

	return (struct nt_stats_middle){.low = sorted[low],
					.low_next = sorted[low + 1],
					.high = sorted[high],
					.high_next = sorted[high + 1]};
}

struct nt_stats_middle nt_stats_middle_of(double *value, size_t n)
{
	nt_sort_select(value, n, (n - 2) / 2, (n - 1) / 2 + 1);
	return nt_stats_middle(value, n);
}

double nt_stats_middle_without(const struct nt_stats_middle *middle, double value)
{
	/* If the omitted value comes before, the next one takes its place. */
	const double low = middle->low < value ? middle->low : middle->low_next;
	const double high = middle->high < value ? middle->high : middle->high_next;

	return low / 2.0 + high / 2.0;
}

double nt_stats_median_of(double *value, size_t n)
{
	if (n)
		nt_sort_select(value, n, (n - 1) / 2, n / 2);
	return nt_stats_median(value, n);
}

double nt_stats_mad(double *value, size_t n, double centre)
{
	for (size_t i = 0; i < n; i++)
		value[i] = fabs(value[i] - centre);
	return NT_STATS_SIGMA_OF_MAD * nt_stats_median_of(value, n);
}

void nt_stats_mean(const double *value, size_t n, double *ret_mean, double *ret_sigma)
{
	double mean = 0.0, squares = 0.0;

	for (size_t i = 0; i < n; i++)
		mean += value[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (value[i] - mean) * (value[i] - mean) / (double)n;
	*ret_mean = mean;
	*ret_sigma = sqrt(squares);
}

double nt_stats_shortest(const double *sorted, size_t n, size_t hold)
{
	double shortest = INFINITY;

	if (hold < 2 || hold > n)
		return 0.0;
	for (size_t i = 0; i + hold <= n; i++)
		shortest = nt_stats_min(shortest, sorted[i + hold - 1] - sorted[i]);
	return shortest;
}

double nt_stats_width(const double *sorted, size_t n)
{
	const double factor = n < SMALL ? width_small[n] : 1.0 - 0.82 / sqrt((double)n);

	return nt_stats_shortest(sorted, n, n / 2 + 1) / 1.35 / factor;
}

double nt_stats_core(const double *sorted, size_t n)
{
	const double factor = n < SMALL ? core_small[n] : 1.0 - 1.3 / sqrt((double)n);

	return nt_stats_shortest(sorted, n, (n + 1) / 2) / 1.35 / factor;
}

double nt_stats_largest(double n)
{
	const double far = sqrt(2.0 * log(fmax(n, 1.0)));

	return n > 1.0 ? fmax(0.5, far - 1.5 / far) : 0.0;
}

double nt_stats_clip(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

uint64_t nt_stats_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint32_t nt_stats_lower_mode(const double *sorted, uint32_t n, uint32_t some, double least)
{
	uint32_t lower = n;
	double widest = 0.0;

	for (uint32_t i = some; i < n; i++) {
		const double gap = sorted[i] - sorted[i - 1];

		if (sorted[i] >= least && gap >= sorted[i] / 2.0 && gap > widest) {
			widest = gap;
			lower = i;
		}
	}
	return lower;
}
