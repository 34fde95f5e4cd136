/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Robust statistics over plain arrays. Nothing here allocates; the values are finite. */
#ifndef NT_DETECT_MATH_STATS_H
#define NT_DETECT_MATH_STATS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Standard error of a median ÷ that of a mean, for normal values: sqrt(pi / 2). */
#define NT_STATS_MEDIAN_ERROR 1.25
/* Of a normal distribution: its sigma by the median of the absolute deviations. */
#define NT_STATS_SIGMA_OF_MAD 1.4826

/* Inline fmax() and fmin(), for loops over ranks. */
static inline double nt_stats_max(double a, double b)
{
	return a > b || isnan(b) ? a : b;
}

static inline double nt_stats_min(double a, double b)
{
	return a < b || isnan(b) ? a : b;
}

/* Ascending, in place. */
void nt_stats_sort(double *value, size_t n);
/* Of ascending values; 0 of none. The lower of the two in the middle where the count is even. */
double nt_stats_median_low(const double *sorted, size_t n);
double nt_stats_median(const double *sorted, size_t n);
/* Of values in any order; reorders them. */
double nt_stats_quantile_of(double *value, size_t n, double q);
/* Median of ascending values, leaving out one that equals `value`. */
double nt_stats_median_without(const double *sorted, size_t n, double value);
/* The middle of two values or more: gives nt_stats_median_without() in constant time. */
struct nt_stats_middle {
	double low, low_next, high, high_next; /* the middle two, and their outer neighbours */
};
struct nt_stats_middle nt_stats_middle(const double *sorted, size_t n);
/* Of values in any order; reorders them. */
struct nt_stats_middle nt_stats_middle_of(double *value, size_t n);
double nt_stats_middle_without(const struct nt_stats_middle *middle, double value);
/* Reorders `value`. */
double nt_stats_median_of(double *value, size_t n);
/* 1.4826 × the median absolute deviation from `centre`; destroys `value`. */
double nt_stats_mad(double *value, size_t n, double centre);
void nt_stats_mean(const double *value, size_t n, double *ret_mean, double *ret_sigma);

/* Length of the shortest interval that holds `hold` of the ascending values; 0 for hold below 2. */
double nt_stats_shortest(const double *sorted, size_t n, size_t hold);
/*
 * The spread of a normal population, estimated from its shortest half and divided by 1.35. For
 * width, that is the shortest interval that holds more than half of the values. For core it holds
 * exactly half, which is robust to half of the values being slow. The small-sample bias is
 * corrected.
 */
double nt_stats_width(const double *sorted, size_t n);
double nt_stats_core(const double *sorted, size_t n);

/* Expected maximum of n standard normal values. */
double nt_stats_largest(double n);

/*
 * How many of the ascending values are of the lower of two modes: those below the widest gap that is
 * half as wide as the value above it, which is `least` or more; n if there is none. A mode holds
 * `some` values or more.
 */
uint32_t nt_stats_lower_mode(const double *sorted, uint32_t n, uint32_t some, double least);

double nt_stats_clip(double value, double low, double high);
/* Saturating sum. */
uint64_t nt_stats_add(uint64_t a, uint64_t b);

#endif
