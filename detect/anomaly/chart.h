/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The subspace residual control chart: one score per row of a node's metrics.
 *
 * The metrics of a healthy machine move together. A refit finds the directions that hold most of
 * their variance (principal components); what a row has beside them is its residual. The chart's
 * limits are envelopes: the range in which each metric, and each smoothed residual, has been. The
 * score is the mean distance from the envelopes, in widths, smoothed over rows. A metric that leaves
 * its envelope often counts little (novelty). The terms of the mean are the explanation.
 *
 * After Jackson and Mudholkar, "Control procedures for residuals associated with principal component
 * analysis", Technometrics 21 (1979), and Lowry et al., "A multivariate exponentially weighted moving
 * average control chart", Technometrics 34 (1992). Ranges in place of variances follow the sensor
 * range deviation of Sarfraz et al., "Position: Quo Vadis, Unsupervised Time Series Anomaly
 * Detection?", ICML 2024.
 *
 * Scoring a row takes O(metrics × (metrics + directions)) and allocates nothing.
 */
#ifndef NT_DETECT_ANOMALY_CHART_H
#define NT_DETECT_ANOMALY_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/codec.h"
#include "detect/anomaly/metric.h"
#include "detect/anomaly/refit.h"

struct nt_chart;

/* learn_rows: how many rows each metric is learned for. -ENOMEM; -EINVAL for too many metrics. */
NT_MUST_CHECK int nt_chart_new(size_t metrics, uint32_t learn_rows, struct nt_chart **ret_chart);
void nt_chart_free(struct nt_chart *chart);
NT_DEFINE_AUTO(nt_chart, nt_chart_free)

/*
 * A counter of trouble counts from its first change on. Other metrics that have always been constant
 * are learned when they first change.
 */
void nt_chart_mark_trouble(struct nt_chart *chart, size_t metric);

/*
 * Scores a row and learns from it. A value that is no finite number is missing. `learns`: the row is
 * known history, so its ranges are taken in as they are. Returns the score: 0 inside of all
 * envelopes, and before the first refit.
 */
double nt_chart_take(struct nt_chart *chart, const double *value, bool learns);

/*
 * The share of each metric in the last score, and the part of it by which the metric left its own range;
 * the rest is an unusual relation to the others. All 0 for score 0.
 */
void nt_chart_shares(const struct nt_chart *chart, double *ret_share, double *ret_range);
/* A metric's envelope. False: it has none yet. */
bool nt_chart_range(const struct nt_chart *chart, size_t metric, double *ret_low, double *ret_high);

/* Whether all metrics in use are learned. */
bool nt_chart_is_learned(const struct nt_chart *chart);

/* Whether enough rows came since the last refit. */
bool nt_chart_is_refit_due(const struct nt_chart *chart);
/*
 * The three steps of a refit; nt_refit_solve() between them may run on another thread, while rows are
 * scored on. Rows that came meanwhile count for the next refit.
 */
NT_MUST_CHECK int nt_chart_begin_refit(struct nt_chart *chart, struct nt_refit **ret_refit);
void nt_chart_end_refit(struct nt_chart *chart, const struct nt_refit *refit);
/* Instead of the third step: the old basis stays. */
void nt_chart_drop_refit(struct nt_chart *chart);
/* All three. -ENOMEM, -EDOM: the old basis stays. */
NT_MUST_CHECK int nt_chart_refit(struct nt_chart *chart);

/* What the chart keeps in memory. */
size_t nt_chart_bytes(const struct nt_chart *chart);

/* The state, both directions. Loading into a chart of another number of metrics is -EBADMSG. */
void nt_chart_code(struct nt_codec *codec, struct nt_chart *chart);

#endif
