/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Private to chart*.c and state_chart.c. */
#ifndef NT_DETECT_ANOMALY_CHART_IMPL_H
#define NT_DETECT_ANOMALY_CHART_IMPL_H

#include "detect/anomaly/chart.h"
#include "detect/anomaly/envelope.h"
#include "detect/anomaly/moments.h"

/* One metric. Novelty and part are in widths, the others in the metric's unit. */
struct nt_chart_metric {
	bool in_use; /* it had a value */
	bool varies; /* its range was not empty at the last refit */
	bool is_trouble;
	bool is_missing; /* in the last row */
	bool is_muted; /* it changed for the first time, and is learned before it counts */
	uint32_t learn; /* rows for which the metric is still learned */
	uint32_t learn_residual; /* at least, for its residual */
	double first; /* its value as long as it is constant */
	double level; /* smoothed value */
	double base, width; /* of the last refit: lower end and width of its range */
	double mean; /* of the last refit */
	double per_width; /* 1 ÷ width */
	double novelty, residual_novelty; /* mean distance outside the envelope */
	double part; /* its term of the score, smoothed */
	double range_part; /* of that, what its own range gives; not saved, as it is of minutes */
};

/* Several floats at once, as every machine of the supported ones has. */
typedef float nt_chart_lanes __attribute__((vector_size(16)));

struct nt_chart {
	size_t metrics, directions;
	uint32_t learn_rows, since_refit;
	bool is_fitted, refit_begun;
	struct nt_chart_metric *metric; /* owned */
	struct nt_moments moments;
	struct nt_envelopes range, residual_range;
	size_t stride; /* metrics, rounded up to pairs of vectors; what is beyond them is 0 */
	float *basis; /* directions × stride, owned */
	float *residual; /* stride; scratch, owned */
	double *learned; /* scratch, owned */
	double score;
	/* Rates of the moving averages; follow from thresholds. */
	double smooth_rate, score_rate, creep_rate, novelty_rate, keep;
};

#endif
