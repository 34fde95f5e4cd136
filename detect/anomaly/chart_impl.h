/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Private to chart*.c and state_chart.c. */
#ifndef NT_DETECT_ANOMALY_CHART_IMPL_H
#define NT_DETECT_ANOMALY_CHART_IMPL_H

#include "detect/anomaly/chart.h"
#include "detect/anomaly/envelope.h"
#include "detect/anomaly/moments.h"

/* What a row changes seldom, of one metric, in its unit. */
struct nt_chart_metric {
	bool in_use; /* it had a value */
	bool varies; /* its range was not empty at the last refit */
	bool is_trouble;
	bool is_missing; /* in the last row */
	bool is_out; /* in the last row, it was outside of its range; not saved */
	bool is_wild; /* in this row, it left its range so far that the next row has to agree; not saved */
	bool is_muted; /* it changed for the first time, and is learned before it counts */
	uint32_t learn; /* rows for which the metric is still learned */
	uint32_t learn_residual; /* at least, for its residual */
	double withheld; /* its term of the last row, which this row has to agree with; not saved */
	double first; /* its value as long as it is constant */
	double base, width; /* of the last refit: lower end and width of its range */
};

/*
 * What each row reads or changes of all metrics: arrays, so that a row reads little memory and in order.
 * Novelty and part are in widths, the others in the metric's unit.
 */
struct nt_chart_values {
	double *level; /* smoothed value */
	double *near; /* a level that is so near its value is the value */
	double *clip_low,
		*clip_high; /* what a smoothed row takes a value for at most; infinite if constant */
	double *mean; /* of the last refit */
	double *per_width; /* 1 ÷ width; 0: it does not vary */
	double *novelty,
		*residual_novelty; /* mean distance outside the envelope; they follow each other */
	double *part; /* its term of the score, smoothed; the next array follows it */
	double *range_part; /* of that, what its own range gives; not saved, as it is of minutes */
};

/* Several floats at once, as every machine of the supported ones has. */
typedef float nt_chart_lanes __attribute__((vector_size(16)));

struct nt_chart {
	size_t metrics, directions;
	uint32_t learn_rows, since_refit;
	uint32_t settle; /* rows until relations are judged again; not saved */
	bool is_fitted, refit_begun;
	struct nt_chart_metric *metric; /* owned */
	double *store; /* of the values; owned */
	struct nt_chart_values at;
	struct nt_moments moments;
	struct nt_envelopes range, residual_range;
	size_t stride; /* metrics, rounded up to pairs of vectors; what is beyond them is 0 */
	float *basis; /* directions × stride, and a row of zeros; owned */
	float *residual; /* stride; scratch, owned */
	double *learned; /* scratch, owned */
	double score;
	/* Rates of the moving averages; follow from thresholds. */
	double smooth_rate, score_rate, creep_rate, novelty_rate, keep;
};

/* Sets what follows from a metric's mean and width. */
void nt_chart_set_scale(struct nt_chart *chart, size_t metric);

#endif
