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
	VALUES = sizeof(struct nt_chart_values) / sizeof(double *),
};

/*
 * An average never reaches the value that it moves towards, and ends as a denormal number, on which work
 * takes a hundred times as long. What is nearer than this, in widths, or next to nothing, counts as there.
 */
static const double NEAR = 0x1p-40, NOTHING = 0x1p-330;

/* Zeroed and aligned. */
static float *new_lanes(size_t n)
{
	float *values = aligned_alloc(sizeof(nt_chart_lanes), n * sizeof(*values));

	if (values)
		memset(values, 0, n * sizeof(*values));
	return values;
}

/* One array after the other. */
static bool new_values(struct nt_chart *chart)
{
	const size_t n = chart->metrics;
	struct nt_chart_values *at = &chart->at;
	double **const array[VALUES] = {
		&at->level, &at->near,       &at->clip_low, &at->clip_high,
		&at->mean,  &at->per_width,  &at->novelty,  &at->residual_novelty,
		&at->part,  &at->range_part,
	};

	chart->store = calloc(VALUES * n, sizeof(*chart->store));
	for (size_t i = 0; chart->store && i < VALUES; i++)
		*array[i] = chart->store + i * n;
	return chart->store;
}

void nt_chart_set_scale(struct nt_chart *chart, size_t metric)
{
	const struct nt_chart_values *at = &chart->at;
	const bool varies = chart->metric[metric].varies;
	const double width = chart->metric[metric].width;

	at->near[metric] = varies ? NEAR * width : NOTHING;
	at->per_width[metric] = varies ? 1.0 / width : 0.0;
	at->clip_low[metric] = varies ? at->mean[metric] - NT_ANOMALY_CLIP * width : -INFINITY;
	at->clip_high[metric] = varies ? at->mean[metric] + NT_ANOMALY_CLIP * width : INFINITY;
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
	if (!new_values(chart) || !chart->metric || !chart->basis || !chart->residual ||
	    !chart->learned)
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
		chart->metric[j].width = 1.0;
		nt_chart_set_scale(chart, j);
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
	free(chart->store);
	free(chart->basis);
	free(chart->residual);
	free(chart->learned);
	free(chart);
}

void nt_chart_mark_trouble(struct nt_chart *chart, size_t metric)
{
	chart->metric[metric].is_trouble = true;
}

/* What lies along two directions. */
static void find_along(const nt_chart_lanes *restrict a, const nt_chart_lanes *restrict b,
		       const nt_chart_lanes *restrict row, size_t n, float *restrict ret_along)
{
	nt_chart_lanes a_even = {0}, a_odd = {0}, b_even = {0}, b_odd = {0};

	for (size_t i = 0; i < n; i += 2) {
		a_even += a[i] * row[i];
		a_odd += a[i + 1] * row[i + 1];
		b_even += b[i] * row[i];
		b_odd += b[i + 1] * row[i + 1];
	}
	a_even += a_odd;
	b_even += b_odd;
	ret_along[0] = (a_even[0] + a_even[1]) + (a_even[2] + a_even[3]);
	ret_along[1] = (b_even[0] + b_even[1]) + (b_even[2] + b_even[3]);
}

static void take_out(const nt_chart_lanes *restrict a, const nt_chart_lanes *restrict b,
		     const float *restrict along, nt_chart_lanes *restrict row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		row[i] -= along[0] * a[i] + along[1] * b[i];
}

/* The directions are orthonormal: what lies along each is known before any is taken out. */
static void remove_subspace(const struct nt_chart *chart, float *residual)
{
	const nt_chart_lanes *direction = (const nt_chart_lanes *)(const void *)chart->basis;
	nt_chart_lanes *row = (nt_chart_lanes *)(void *)residual;
	const size_t n = chart->stride / LANES;
	float along[NT_ANOMALY_METRICS_MAX + 1];

	/* After the last direction there are zeros. */
	for (size_t k = 0; k < chart->directions; k += 2)
		find_along(direction + k * n, direction + (k + 1) * n, row, n, along + k);
	for (size_t k = 0; k < chart->directions; k += 2)
		take_out(direction + k * n, direction + (k + 1) * n, along + k, row, n);
}

static bool is_unknown(const struct nt_chart_metric *metric)
{
	return metric->is_missing || metric->is_wild;
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
			if (is_unknown(&chart->metric[j]))
				row[j] -= chart->residual[j];
	}
	memcpy(chart->residual, row, chart->stride * sizeof(*row));
	for (size_t j = 0; j < chart->metrics; j++) {
		const struct nt_chart_metric *metric = &chart->metric[j];

		if (metric->varies && is_unknown(metric))
			chart->at.level[j] = chart->at.mean[j] + (double)row[j] * metric->width;
	}
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

/* What a metric's own range gives. A wild value's term waits for the next row. */
static double find_range_term(struct nt_chart *chart, size_t j, double value)
{
	struct nt_chart_metric *metric = &chart->metric[j];
	const struct nt_envelopes *range = &chart->range;
	const double away = nt_envelopes_distance(range, j, value);
	double term = weigh(away, range->high[j] - range->low[j], chart->novelty_rate,
			    &chart->at.novelty[j]);
	double withheld = away > 0.0 ? metric->withheld : 0.0;

	metric->is_out = away > 0.0;
	metric->withheld = metric->is_wild ? term : 0.0;
	return metric->is_wild ? 0.0 : term + withheld;
}

/* *ret_range: the part of it that the metric's own range gives. */
static double find_term(struct nt_chart *chart, size_t j, double value, double *ret_range)
{
	struct nt_chart_metric *metric = &chart->metric[j];
	const struct nt_envelopes *range = &chart->range, *own = &chart->residual_range;
	double term = 0.0, width, away;

	*ret_range = 0.0;
	if (!chart->is_fitted || metric->is_missing || metric->is_muted) {
		metric->is_out = false;
		metric->withheld = 0.0;
		return 0.0;
	}
	if (metric->varies)
		term = find_range_term(chart, j, value);
	else if (metric->is_trouble && value > range->high[j] && nt_envelopes_has(range, j))
		term = 1.0;
	*ret_range = term;
	away = nt_envelopes_distance(own, j, chart->residual[j]);
	width = own->high[j] - own->low[j];
	if (metric->varies && width > 0.0 && !chart->settle)
		term += NT_ANOMALY_RESIDUAL * weigh(away > NT_ANOMALY_ROUNDING ? away : 0.0, width,
						    chart->novelty_rate,
						    &chart->at.residual_novelty[j]);
	return term;
}

/* A constant metric that changes for the first time is learned before it counts. */
static void note_change(struct nt_chart *chart, size_t j, double value)
{
	struct nt_chart_metric *metric = &chart->metric[j];

	if (!metric->in_use) {
		metric->in_use = true;
		metric->first = chart->at.level[j] = value;
		return;
	}
	if (metric->varies || value == metric->first || !chart->is_fitted || metric->is_trouble ||
	    metric->is_muted || metric->learn > NT_ANOMALY_RELEARN_ROWS)
		return;
	metric->is_muted = true;
	metric->learn = metric->learn_residual = NT_ANOMALY_RELEARN_ROWS;
}

static inline void smooth(const struct nt_chart_values *at, size_t j, double value, double rate)
{
	double away;

	value = value > at->clip_high[j] ? at->clip_high[j] : value;
	value = value < at->clip_low[j] ? at->clip_low[j] : value;
	away = value - at->level[j];
	at->level[j] = fabs(away) > at->near[j] ? at->level[j] + rate * away : value;
}

static void learn(struct nt_chart *chart, size_t j, double value, bool learns)
{
	struct nt_chart_metric *metric = &chart->metric[j];
	bool wholly = learns || metric->learn;

	if (is_unknown(metric)) {
		chart->learned[j] = chart->moments.mean[j];
		return;
	}
	chart->learned[j] =
		nt_envelopes_take(&chart->range, j, value, wholly ? 1.0 : chart->creep_rate);
	metric->learn -= metric->learn > 0;
	if (!metric->learn)
		metric->is_muted = false;
	if (!metric->varies || chart->settle)
		return;
	/* The residual is there later than the metric, which may be learned by then. */
	wholly |= metric->learn || metric->learn_residual;
	(void)nt_envelopes_take(&chart->residual_range, j, chart->residual[j],
				wholly ? 1.0 : chart->creep_rate);
	metric->learn_residual -= metric->learn_residual > 0;
}

/* Nearly every value: the metric was there before, and its first change is none of this row. */
static inline bool goes_on(const struct nt_chart_metric *metric, double value)
{
	return metric->in_use && !metric->is_missing && nt_anomaly_is_value(value) &&
	       (metric->varies || value == metric->first);
}

/* Any value. Returns whether it is to be estimated. */
static bool take_value(struct nt_chart *chart, size_t j, double value)
{
	struct nt_chart_metric *metric = &chart->metric[j];
	bool was_missing = metric->is_missing;

	metric->is_missing = !nt_anomaly_is_value(value);
	if (metric->is_missing)
		return metric->varies;
	note_change(chart, j, value);
	if (was_missing && (!metric->varies || chart->settle)) /* the level is of another time */
		chart->at.level[j] = value;
	smooth(&chart->at, j, value, chart->smooth_rate);
	return false;
}

/* A value far outside of its range, which it was inside of before. */
static inline bool is_wild(const struct nt_chart *chart, size_t j, double value)
{
	const struct nt_chart_metric *metric = &chart->metric[j];
	const double low = chart->range.low[j], high = chart->range.high[j];
	const double most = NT_ANOMALY_WILD * (high - low);

	return metric->varies && !metric->is_out && !metric->learn && low <= high &&
	       (value > high + most || value < low - most);
}

/*
 * A single metric that jumps may be wrong, so it counts when the next row agrees. Where several do so at
 * once, something happened.
 */
static bool mark_wild(struct nt_chart *chart, const double *value)
{
	size_t wild = 0, last = 0;

	for (size_t j = 0; j < chart->metrics; j++) {
		if (!nt_anomaly_is_value(value[j]) || !is_wild(chart, j, value[j]))
			continue;
		wild++;
		last = j;
	}
	if (wild && wild < NT_ANOMALY_WILD_LEAST)
		chart->metric[last].is_wild = true;
	return wild && wild < NT_ANOMALY_WILD_LEAST;
}

/* Whether enough metrics are known that the others can be estimated, lately. */
static void count_known(struct nt_chart *chart)
{
	size_t varying = 0, known = 0;

	for (size_t j = 0; j < chart->metrics; j++) {
		varying += chart->metric[j].varies;
		known += chart->metric[j].varies && !chart->metric[j].is_missing;
	}
	if ((double)known < NT_ANOMALY_KNOWN * (double)varying)
		chart->settle = NT_ANOMALY_SETTLE_ROWS;
}

/* The residual of the smoothed row beside the subspace, in widths. */
static void take_row(struct nt_chart *chart, const double *value)
{
	const struct nt_chart_values at = chart->at;
	const double rate = chart->smooth_rate;
	bool any_unknown = chart->is_fitted && mark_wild(chart, value), any_missing = false;

	chart->settle -= chart->settle > 0;
	for (size_t j = 0; j < chart->metrics; j++)
		if (goes_on(&chart->metric[j], value[j]))
			smooth(&at, j, value[j], rate);
		else
			any_missing |= take_value(chart, j, value[j]);
	if (any_missing)
		count_known(chart);
	if (!chart->is_fitted || chart->settle)
		return;
	for (size_t j = 0; j < chart->metrics; j++)
		chart->residual[j] = (float)((at.level[j] - at.mean[j]) * at.per_width[j]);
	if (any_unknown || any_missing) {
		for (size_t j = 0; j < chart->metrics; j++)
			if (is_unknown(&chart->metric[j]))
				chart->residual[j] = 0.0F;
		fill_missing(chart);
	}
	remove_subspace(chart, chart->residual);
}

/* Nearly every metric of a row: there and inside of its envelopes, which stay as they are. */
static inline bool is_usual(const struct nt_chart *chart, size_t j, double value)
{
	const struct nt_chart_metric *metric = &chart->metric[j];

	return chart->is_fitted && !chart->settle && !metric->is_missing && !metric->is_muted &&
	       !metric->is_out && nt_envelopes_stay(&chart->range, j, value) &&
	       (!metric->varies ||
		nt_envelopes_stay(&chart->residual_range, j, (double)chart->residual[j]));
}

/* The moving averages of a metric, kept while those of all are worked on. */
struct averages {
	double novelty, residual_novelty, part, range_part;
};

static struct averages keep_averages(const struct nt_chart_values *at, size_t j)
{
	return (struct averages){at->novelty[j], at->residual_novelty[j], at->part[j],
				 at->range_part[j]};
}

/* Towards 0. `n` is even. */
static void fade(double *value, size_t n, double rate)
{
	for (size_t i = 0; i < n; i += 2) {
		nt_anomaly_pair *at = (nt_anomaly_pair *)(void *)(value + i);
		const nt_anomaly_pair rest = *at - rate * *at;

		*at = (nt_anomaly_pair)((nt_anomaly_mask)rest & (rest > NOTHING));
	}
}

/* A metric that is not usual in this row. */
static void take_unusual(struct nt_chart *chart, size_t j, double value, bool learns,
			 const struct averages *before)
{
	const struct nt_chart_values *at = &chart->at;
	double term, of_range;

	at->novelty[j] = before->novelty;
	at->residual_novelty[j] = before->residual_novelty;
	term = find_term(chart, j, value, &of_range);
	at->part[j] = before->part + chart->score_rate * (term - before->part);
	at->range_part[j] =
		before->range_part + chart->score_rate * (of_range - before->range_part);
	learn(chart, j, value, learns);
	chart->metric[j].is_wild = false;
}

/* Scores the metrics, and learns from them. Returns how many are in use. */
static size_t take_metrics(struct nt_chart *chart, const double *value, bool learns)
{
	const struct nt_chart_values at = chart->at;
	struct averages before[NT_ANOMALY_METRICS_MAX];
	uint8_t unusual[NT_ANOMALY_METRICS_MAX];
	size_t n = 0, in_use = 0;

	for (size_t j = 0; j < chart->metrics; j++) {
		struct nt_chart_metric *metric = &chart->metric[j];

		in_use += metric->in_use;
		if (!is_usual(chart, j, value[j])) {
			before[n] = keep_averages(&at, j);
			unusual[n++] = (uint8_t)j;
			continue;
		}
		chart->learned[j] = value[j];
		if (metric->learn || metric->learn_residual) {
			metric->learn -= metric->learn > 0;
			metric->learn_residual -= metric->varies && metric->learn_residual > 0;
		}
	}
	/* Two arrays each, which follow each other. */
	fade(at.novelty, 2 * chart->metrics, chart->novelty_rate);
	fade(at.part, 2 * chart->metrics, chart->score_rate);
	for (size_t i = 0; i < n; i++)
		take_unusual(chart, unusual[i], value[unusual[i]], learns, &before[i]);
	return in_use;
}

double nt_chart_take(struct nt_chart *chart, const double *value, bool learns)
{
	const double *part = chart->at.part;
	double score = 0.0, odd = 0.0;
	size_t in_use;

	take_row(chart, value);
	in_use = take_metrics(chart, value, learns);
	for (size_t j = 0; j + 1 < chart->metrics; j += 2) {
		score += part[j];
		odd += part[j + 1];
	}
	score += odd + (chart->metrics % 2 ? part[chart->metrics - 1] : 0.0);
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
		sum += chart->at.part[j];
	for (size_t j = 0; j < chart->metrics; j++) {
		ret_share[j] = sum > 0.0 ? chart->at.part[j] / sum : 0.0;
		ret_range[j] = sum > 0.0 ? chart->at.range_part[j] / sum : 0.0;
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
	const size_t n = chart->metrics;

	return sizeof(*chart) + n * sizeof(*chart->metric) + VALUES * n * sizeof(*chart->store) +
	       (n + 1) * chart->stride * sizeof(*chart->basis) + n * sizeof(*chart->learned) +
	       nt_moments_bytes(&chart->moments) + nt_envelopes_bytes(&chart->range) +
	       nt_envelopes_bytes(&chart->residual_range);
}
