/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compressed sensing of a node's metrics: a window of rows is reconstructed from a sample of them, and
 * what the reconstruction does not explain is anomalous.
 *
 * Metrics of the same shape form a group (shape_cluster.h). The sample prefers ordinary rows
 * (lesinn.h). The reconstruction has the least sum of cosine coefficients among all windows that agree
 * with the sample, found by the alternating direction method of multipliers: as the transform is
 * orthonormal, each projection overwrites the sampled rows.
 *
 * After Ma et al., "Jump-Starting multivariate time series anomaly detection for online service
 * systems", USENIX ATC 2021, and Boyd et al., "Distributed optimization and statistical learning via
 * the alternating direction method of multipliers", 2011. Unlike the former, nothing reads rows that
 * are yet to come, and values are scaled by the past alone.
 */
#ifndef NT_DETECT_ANOMALY_COMPRESSED_SENSING_H
#define NT_DETECT_ANOMALY_COMPRESSED_SENSING_H

#include <stdbool.h>
#include <stddef.h>

#include "detect/anomaly/metric.h"

struct nt_sensing;

/* -ENOMEM; -EINVAL for too many metrics. */
NT_MUST_CHECK int nt_sensing_new(size_t metrics, struct nt_sensing **ret_sensing);
void nt_sensing_free(struct nt_sensing *sensing);
NT_DEFINE_AUTO(nt_sensing, nt_sensing_free)

/* Adds a row. Missing values repeat the last ones. */
void nt_sensing_add(struct nt_sensing *sensing, const double *value);

/* Whether rows enough for a reconstruction are there, and so many came since the last one. */
bool nt_sensing_is_due(const struct nt_sensing *sensing);

/*
 * Reconstructs the last rows. *ret_score: the residual of the newest ones, in ranges of the past.
 * ret_error: the residual of each metric; may be NULL. -EAGAIN: too few rows; -ENOMEM.
 */
NT_MUST_CHECK int nt_sensing_solve(struct nt_sensing *sensing, double *ret_score,
				   double *ret_error);

size_t nt_sensing_bytes(const struct nt_sensing *sensing);

#endif
