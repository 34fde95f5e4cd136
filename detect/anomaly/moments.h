/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Mean and covariance of rows, with exponential forgetting: what a refit reads in place of old rows.
 * Updated by Welford's method, so that large values with a small variance lose no digits.
 */
#ifndef NT_DETECT_ANOMALY_MOMENTS_H
#define NT_DETECT_ANOMALY_MOMENTS_H

#include <stddef.h>

#include "common/base/codec.h"

struct nt_moments {
	size_t metrics;
	double weight; /* of all rows */
	double *mean; /* metrics, owned */
	double *sum; /* lower triangle by rows: the products of deviations; owned */
	double *away, *after; /* scratch */
};

/* -ENOMEM. */
NT_MUST_CHECK int nt_moments_new(struct nt_moments *moments, size_t metrics);
void nt_moments_release(struct nt_moments *moments);
/* Of memory, without the structure. */
size_t nt_moments_bytes(const struct nt_moments *moments);

/* Adds a row of finite values; what was added before counts `keep` times as much. */
void nt_moments_add(struct nt_moments *moments, const double *row, double keep);

/* The covariance of two metrics. */
double nt_moments_covariance(const struct nt_moments *moments, size_t i, size_t j);

void nt_moments_code(struct nt_codec *codec, struct nt_moments *moments);

#endif
