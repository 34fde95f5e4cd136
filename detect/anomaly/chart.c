/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/chart.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detect/anomaly/chart_impl.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

enum {
	LANES = sizeof(nt_chart_lanes) / sizeof(float),
	STRIDE = 2 * LANES,
};

/* Zeroed and aligned. */
static float *new_lanes(size_t n)
{
	float *values = aligned_alloc(sizeof(nt_chart_lanes), n * sizeof(*values));

	if (values)
		memset(values, 0, n * sizeof(*values));
	return values;
}

int nt_chart_new(size_t metrics, uint32_t learn_rows, struct nt_chart **ret_chart)
{
	nt_auto(nt_chart) struct nt_chart *chart = NULL;
	int r;

	if (!metrics || metrics > NT_ANOMALY_METRICS_MAX)
		return -EINVAL;
	chart = calloc(1, sizeof(*chart));
	if (!chart)
		return -ENOMEM;
	chart->metrics = metrics;
	chart->learn_rows = learn_rows;
	chart->metric = calloc(metrics, sizeof(*chart->metric));
	chart->stride = (metrics + STRIDE - 1) / STRIDE * STRIDE;
	chart->basis = new_lanes(metrics * chart->stride);
	chart->residual = new_lanes(chart->stride);
	chart->learned = calloc(metrics, sizeof(*chart->learned));
	if (!chart->metric || !chart->basis || !chart->residual || !chart->learned)
		return -ENOMEM;
	r = nt_moments_new(&chart->moments, metrics);
	r = r ?: nt_envelopes_new(&chart->range, metrics);
	r = r ?: nt_envelopes_new(&chart->residual_range, metrics);
	if (r < 0)
		return r;
	chart->smooth_rate = nt_anomaly_rate(NT_ANOMALY_SMOOTH_ROWS);
	chart->score_rate = nt_anomaly_rate(NT_ANOMALY_SCORE_ROWS);
	chart->creep_rate = nt_anomaly_rate(NT_ANOMALY_CREEP_ROWS);
	chart->novelty_rate = nt_anomaly_rate(NT_ANOMALY_NOVELTY_ROWS);
	chart->keep = 1.0 - nt_anomaly_rate(NT_ANOMALY_MEMORY_ROWS / NT_ANOMALY_MOMENT_ROWS);
	for (size_t j = 0; j < metrics; j++) {
		chart->metric[j].learn = learn_rows;
		chart->metric[j].learn_residual = NT_ANOMALY_RELEARN_ROWS;
		chart->metric[j].width = chart->metric[j].per_width = 1.0;
	}
	*ret_chart = nt_take(chart);
	return 0;
}

void nt_chart_free(struct nt_chart *chart)
{
	if (!chart)
		return;
	nt_moments_release(&chart->moments);
	nt_envelopes_release(&chart->range);
	nt_envelopes_release(&chart->residual_range);
	free(chart->metric);
	free(chart->basis);
	free(chart->residual);
	free(chart->learned);
	free(chart);
}

void nt_chart_mark_trouble(struct nt_chart *chart, size_t metric)
{
	chart->metric[metric].is_trouble = true;
}

/* Takes what lies along a direction out of the residual. */
static void remove_direction(const nt_chart_lanes *direction, nt_chart_lanes *residual, size_t n)
{
	nt_chart_lanes even = {0}, odd = {0};
	float along = 0.0F;

	for (size_t i = 0; i < n; i += 2) {
		even += direction[i] * residual[i];
		odd += direction[i + 1] * residual[i + 1];
	}
	even += odd;
	for (size_t i = 0; i < LANES; i++)
		along += even[i];
	for (size_t i = 0; i < n; i++)
		residual[i] -= along * direction[i];
}

static void remove_subspace(const struct nt_chart *chart, float *residual)
{
	const nt_chart_lanes *direction = (const nt_chart_lanes *)(const void *)chart->basis;
	const size_t n = chart->stride / LANES;

	/* The directions are orthonormal, so each can be removed once it is known. */
	for (size_t k = 0; k < chart->directions; k++)
		remove_direction(direction + k * n, (nt_chart_lanes *)(void *)residual, n);
}

/*
 * What is missing is taken to be what the others suggest: then it has no residual. Its level follows
 * that, so that it goes on from there when it returns. A level of one raw value would deviate more
 * than the smoothed ones that the envelopes know.
 */
static void fill_missing(struct nt_chart *chart)
{
	nt_chart_lanes lanes[NT_ANOMALY_METRICS_MAX / LANES];
	float *row = (float *)(void *)lanes;

	memcpy(row, chart->residual, chart->stride * sizeof(*row));
	for (int i = 0; i < NT_ANOMALY_FILL_ROUNDS; i++) {
		memcpy(chart->residual, row, chart->stride * sizeof(*row));
		remove_subspace(chart, chart->residual);
		for (size_t j = 0; j < chart->metrics; j++)
			if (chart->metric[j].is_missing)
				row[j] -= chart->residual[j];
	}
	memcpy(chart->residual, row, chart->stride * sizeof(*row));
	for (size_t j = 0; j < chart->metrics; j++) {
		struct nt_chart_metric *metric = &chart->metric[j];

		if (metric->varies && metric->is_missing)
			metric->level = metric->mean + (double)row[j] * metric->width;
	}
}

/* The residual of the smoothed row beside the subspace, in widths. */
static void find_residual(struct nt_chart *chart)
{
	bool any_missing = false;

	for (size_t j = 0; j < chart->metrics; j++) {
		const struct nt_chart_metric *metric = &chart->metric[j];

		chart->residual[j] =
			metric->varies && !metric->is_missing
				? (float)((metric->level - metric->mean) * metric->per_width)
				: 0.0F;
		any_missing |= metric->varies && metric->is_missing;
	}
	if (any_missing)
		fill_missing(chart);
	remove_subspace(chart, chart->residual);
}

/* A distance outside an envelope as a term of the score: in widths, limited, less if frequent. */
static double weigh(double distance, double width, double rate, double *novelty)
{
	double weight, term;

	if (distance <= 0.0) {
		*novelty -= rate * *novelty;
		return 0.0;
	}
	weight = NT_ANOMALY_NOVELTY / (NT_ANOMALY_NOVELTY + *novelty);
	term = distance < NT_ANOMALY_CLIP * width ? distance / width : NT_ANOMALY_CLIP;
	*novelty += rate * (term - *novelty);
	return weight * term;
}

/* *ret_range: the part of it that the metric's own range gives. */
static double find_term(struct nt_chart *chart, size_t j, double value, double *ret_range)
{
	struct nt_chart_metric *metric = &chart->metric[j];
	const struct nt_envelopes *range = &chart->range, *own = &chart->residual_range;
	double term = 0.0, width;

	*ret_range = 0.0;
	if (metric->is_missing || metric->is_muted)
		return 0.0;
	width = range->high[j] - range->low[j];
	if (metric->varies)
		term = weigh(nt_envelopes_distance(range, j, value), width, chart->novelty_rate,
			     &metric->novelty);
	else if (metric->is_trouble && value > range->high[j] && nt_envelopes_has(range, j))
		term = 1.0;
	*ret_range = term;
	width = own->high[j] - own->low[j];
	if (metric->varies && width > 0.0)
		term += NT_ANOMALY_RESIDUAL *
			weigh(nt_envelopes_distance(own, j, chart->residual[j]), width,
			      chart->novelty_rate, &metric->residual_novelty);
	return term;
}

/* A constant metric that changes for the first time is learned before it counts. */
static void note_change(struct nt_chart *chart, struct nt_chart_metric *metric, double value)
{
	if (!metric->in_use) {
		metric->in_use = true;
		metric->first = metric->level = value;
		return;
	}
	if (metric->varies || value == metric->first || !chart->is_fitted || metric->is_trouble ||
	    metric->is_muted || metric->learn > NT_ANOMALY_RELEARN_ROWS)
		return;
	metric->is_muted = true;
	metric->learn = metric->learn_residual = NT_ANOMALY_RELEARN_ROWS;
}

static void smooth(struct nt_chart *chart, struct nt_chart_metric *metric, double value)
{
	if (metric->varies) {
		double most = NT_ANOMALY_CLIP * metric->width, away = value - metric->mean;

		value = away > most    ? metric->mean + most
			: away < -most ? metric->mean - most
				       : value;
	}
	metric->level += chart->smooth_rate * (value - metric->level);
}

static void learn(struct nt_chart *chart, size_t j, double value, bool learns)
{
	struct nt_chart_metric *metric = &chart->metric[j];

	if (metric->is_missing) {
		chart->learned[j] = chart->moments.mean[j];
		return;
	}
	chart->learned[j] = nt_envelopes_take(&chart->range, j, value,
					      learns || metric->learn ? 1.0 : chart->creep_rate);
	metric->learn -= metric->learn > 0;
	if (!metric->learn)
		metric->is_muted = false;
	if (!metric->varies)
		return;
	/* The residual is there later than the metric, which may be learned by then. */
	(void)nt_envelopes_take(
		&chart->residual_range, j, chart->residual[j],
		learns || metric->learn || metric->learn_residual ? 1.0 : chart->creep_rate);
	metric->learn_residual -= metric->learn_residual > 0;
}

double nt_chart_take(struct nt_chart *chart, const double *value, bool learns)
{
	double score = 0.0;
	size_t in_use = 0;

	for (size_t j = 0; j < chart->metrics; j++) {
		struct nt_chart_metric *metric = &chart->metric[j];
		bool was_missing = metric->is_missing;

		metric->is_missing = !nt_anomaly_is_value(value[j]);
		if (metric->is_missing)
			continue;
		note_change(chart, metric, value[j]);
		if (was_missing && !metric->varies) /* the level is of another time */
			metric->level = value[j];
		smooth(chart, metric, value[j]);
	}
	if (chart->is_fitted)
		find_residual(chart);
	for (size_t j = 0; j < chart->metrics; j++) {
		struct nt_chart_metric *metric = &chart->metric[j];
		double of_range = 0.0;
		double term = chart->is_fitted ? find_term(chart, j, value[j], &of_range) : 0.0;

		metric->part += chart->score_rate * (term - metric->part);
		metric->range_part += chart->score_rate * (of_range - metric->range_part);
		score += metric->part;
		in_use += metric->in_use;
		learn(chart, j, value[j], learns);
	}
	nt_envelopes_step(&chart->range);
	nt_envelopes_step(&chart->residual_range);
	/* Rows that follow each other are alike: some of them are enough for the covariances. */
	if (chart->since_refit % NT_ANOMALY_MOMENT_ROWS == 0)
		nt_moments_add(&chart->moments, chart->learned, chart->keep);
	chart->since_refit += chart->since_refit < UINT32_MAX;
	chart->score = in_use ? score / (double)in_use : 0.0;
	return chart->score;
}

void nt_chart_shares(const struct nt_chart *chart, double *ret_share, double *ret_range)
{
	double sum = 0.0;

	for (size_t j = 0; j < chart->metrics; j++)
		sum += chart->metric[j].part;
	for (size_t j = 0; j < chart->metrics; j++) {
		const struct nt_chart_metric *metric = &chart->metric[j];

		ret_share[j] = sum > 0.0 ? metric->part / sum : 0.0;
		ret_range[j] = sum > 0.0 ? metric->range_part / sum : 0.0;
	}
}

bool nt_chart_range(const struct nt_chart *chart, size_t metric, double *ret_low, double *ret_high)
{
	if (!nt_envelopes_has(&chart->range, metric))
		return false;
	*ret_low = chart->range.low[metric];
	*ret_high = chart->range.high[metric];
	return true;
}

bool nt_chart_is_learned(const struct nt_chart *chart)
{
	bool any = false;

	for (size_t j = 0; j < chart->metrics; j++) {
		if (!chart->metric[j].in_use || chart->metric[j].is_muted)
			continue;
		any = true;
		if (!chart->metric[j].learn)
			return true;
	}
	return !any && chart->is_fitted;
}

size_t nt_chart_bytes(const struct nt_chart *chart)
{
	const size_t n = chart->metrics, value = sizeof(double);

	return sizeof(*chart) + n * sizeof(*chart->metric) +
	       (n + 1) * chart->stride * sizeof(float) + n * value +
	       (n * (n + 1) / 2 + 2 * n + n) * value +
	       2 * (2 * n * value + 2 * n * NT_ANOMALY_BLOCKS * sizeof(float));
}
