/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bench/anomaly/methods.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"
#include "detect/anomaly/anomaly.h"
#include "detect/anomaly/compressed_sensing.h"
#include "detect/anomaly/moments.h"
#include "detect/thresholds/thresholds.h"

enum {
	BASELINE_HALF_LIFE = 8, /* rows, of the smoothed baselines */
};

size_t first_judged(const struct nt_metric_table *table)
{
	size_t i = 0;

	if (!table->training)
		return table->rows / 3;
	while (i < table->rows && table->training[i])
		i++;
	return i;
}

static void smooth_scores(const struct nt_metric_table *table, struct scored *scored, double rows)
{
	double mean = 0.0, rate = nt_anomaly_rate(rows);

	for (size_t i = first_judged(table); i < table->rows; i++) {
		mean += rate * (scored->score[i] - mean);
		scored->score[i] = mean;
	}
}

static int run_random(const struct nt_metric_table *table, struct scored *scored)
{
	uint64_t state = 1;

	for (size_t i = 0; i < table->rows; i++) {
		state = state * 6364136223846793005U + 1442695040888963407U;
		scored->score[i] = (double)(state >> 11);
	}
	return 0;
}

static double value_at(const struct nt_metric_table *table, size_t row, size_t j)
{
	double value = table->value[row * table->metrics + j];

	return isnan(value) ? 0.0 : value;
}

static int learn_moments(const struct nt_metric_table *table, struct nt_moments *moments)
{
	double row[NT_ANOMALY_METRICS_MAX];
	int r = nt_moments_new(moments, table->metrics);

	for (size_t i = 0; r == 0 && i < first_judged(table); i++) {
		for (size_t j = 0; j < table->metrics; j++)
			row[j] = value_at(table, i, j);
		nt_moments_add(moments, row, 1.0);
	}
	return r;
}

static double sigma_of(const struct nt_moments *moments, size_t j)
{
	return sqrt(nt_moments_covariance(moments, j, j));
}

/* The largest deviation of a metric from its mean in history, in standard deviations. */
static int run_sigma(const struct nt_metric_table *table, struct scored *scored)
{
	struct nt_moments moments;
	int r = learn_moments(table, &moments);

	if (r < 0)
		return r;
	for (size_t i = first_judged(table); i < table->rows; i++) {
		scored->score[i] = 0.0;
		for (size_t j = 0; j < table->metrics; j++) {
			double sigma = sigma_of(&moments, j);

			if (sigma > 1e-12)
				scored->score[i] =
					fmax(scored->score[i],
					     fabs(value_at(table, i, j) - moments.mean[j]) / sigma);
		}
	}
	nt_moments_release(&moments);
	return 0;
}

static int run_sigma_smooth(const struct nt_metric_table *table, struct scored *scored)
{
	int r = run_sigma(table, scored);

	smooth_scores(table, scored, BASELINE_HALF_LIFE);
	return r;
}

static double residual_of(const struct nt_metric_table *table, size_t i,
			  const struct nt_moments *moments, const struct nt_refit *refit)
{
	double u[NT_ANOMALY_METRICS_MAX], square = 0.0;
	const size_t n = table->metrics;

	for (size_t j = 0; j < n; j++) {
		double sigma = sigma_of(moments, j);

		u[j] = sigma > 1e-12 ? (value_at(table, i, j) - moments->mean[j]) / sigma : 0.0;
	}
	for (size_t k = 0; k < refit->directions; k++) {
		double along = 0.0;

		for (size_t j = 0; j < n; j++)
			along += refit->basis[k * n + j] * u[j];
		for (size_t j = 0; j < n; j++)
			u[j] -= along * refit->basis[k * n + j];
	}
	for (size_t j = 0; j < n; j++)
		square += u[j] * u[j];
	return sqrt(square);
}

/* The residual of a subspace that was fitted once, to the history. */
static int run_pca(const struct nt_metric_table *table, struct scored *scored)
{
	nt_auto(nt_refit) struct nt_refit *refit = NULL;
	const size_t n = table->metrics;
	struct nt_moments moments;
	int r = learn_moments(table, &moments);

	r = r ?: nt_refit_new(n, &refit);
	for (size_t i = 0; r == 0 && i < n; i++)
		for (size_t j = 0; j <= i; j++) {
			double sigmas = sigma_of(&moments, i) * sigma_of(&moments, j);

			refit->covariance[i * n + j] =
				sigmas > 1e-24 ? nt_moments_covariance(&moments, i, j) / sigmas
					       : 0.0;
		}
	if (r == 0) {
		refit->share = NT_ANOMALY_SHARE;
		r = nt_refit_solve(refit);
	}
	for (size_t i = first_judged(table); r == 0 && i < table->rows; i++)
		scored->score[i] = residual_of(table, i, &moments, refit);
	nt_moments_release(&moments);
	smooth_scores(table, scored, BASELINE_HALF_LIFE);
	return r;
}

/* The mean distance outside the ranges of the history. */
static int run_range(const struct nt_metric_table *table, struct scored *scored)
{
	double low[NT_ANOMALY_METRICS_MAX], high[NT_ANOMALY_METRICS_MAX];
	const size_t first = first_judged(table);

	for (size_t j = 0; j < table->metrics; j++) {
		low[j] = INFINITY;
		high[j] = -INFINITY;
		for (size_t i = 0; i < first; i++) {
			low[j] = fmin(low[j], value_at(table, i, j));
			high[j] = fmax(high[j], value_at(table, i, j));
		}
	}
	for (size_t i = first; i < table->rows; i++) {
		scored->score[i] = 0.0;
		for (size_t j = 0; j < table->metrics; j++) {
			double value = value_at(table, i, j);
			double away = fmax(fmax(low[j] - value, value - high[j]), 0.0);
			double width = high[j] > low[j] ? high[j] - low[j] : 1.0;

			scored->score[i] += fmin(away / width, 4.0) / (double)table->metrics;
		}
	}
	smooth_scores(table, scored, BASELINE_HALF_LIFE);
	return 0;
}

static int run_node(const struct nt_metric_table *table, enum nt_anomaly_method method,
		    struct scored *scored)
{
	nt_auto(nt_anomaly_node) struct nt_anomaly_node *node = NULL;
	struct nt_anomaly_options options = nt_anomaly_options_default();
	struct nt_alarm_budget budget;
	struct nt_anomaly_score score;
	struct nt_chart *chart;
	int r;

	options.method = method;
	nt_alarm_budget_init(&budget, NT_ANOMALY_FALSE_ALARMS, NT_ANOMALY_DAY_ROWS);
	r = nt_anomaly_node_new(&options, &node);
	for (size_t i = 0; r == 0 && i < table->rows; i++) {
		struct nt_anomaly_row row = {
			.name = (const char *const *)table->name,
			.value = table->value + i * table->metrics,
			.metrics = table->metrics,
			.training = table->training && table->training[i],
		};

		r = nt_anomaly_node_take(node, &budget, &row, &score);
		if (r < 0)
			break;
		scored->score[i] = score.score;
		scored->alarm[i] = score.is_alarm;
		while ((chart = nt_anomaly_node_refit_due(node)) && r == 0)
			r = nt_chart_refit(chart);
	}
	return r;
}

static int run_both(const struct nt_metric_table *table, struct scored *scored)
{
	return run_node(table, NT_ANOMALY_METHOD_BOTH, scored);
}

static int run_chart(const struct nt_metric_table *table, struct scored *scored)
{
	return run_node(table, NT_ANOMALY_METHOD_CHART, scored);
}

/* Compressed sensing on every row's window; between reconstructions the last score holds. */
static int run_sensing(const struct nt_metric_table *table, struct scored *scored)
{
	nt_auto(nt_sensing) struct nt_sensing *sensing = NULL;
	int r = nt_sensing_new(table->metrics, &sensing);
	double score = 0.0;

	for (size_t i = 0; r == 0 && i < table->rows; i++) {
		nt_sensing_add(sensing, table->value + i * table->metrics);
		if (nt_sensing_is_due(sensing))
			r = nt_sensing_solve(sensing, &score, NULL);
		scored->score[i] = score;
	}
	smooth_scores(table, scored, BASELINE_HALF_LIFE);
	return r;
}

const struct method methods[] = {
	{"random", run_random},
	{"k-sigma", run_sigma},
	{"k-sigma, smoothed", run_sigma_smooth},
	{"PCA residual, smoothed", run_pca},
	{"range deviation, smoothed", run_range},
	{"compressed sensing", run_sensing},
	{"chart (the default)", run_chart},
	{"chart, then sensing", run_both},
};
const size_t method_count = sizeof(methods) / sizeof(methods[0]);
