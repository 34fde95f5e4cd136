/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of a chart. What follows from thresholds is not stored. */
#include "detect/anomaly/chart_impl.h"

static void code_metric(struct nt_codec *codec, struct nt_chart *chart, size_t j)
{
	struct nt_chart_metric *metric = &chart->metric[j];
	struct nt_chart_values *at = &chart->at;

	nt_code_bool(codec, &metric->in_use);
	nt_code_bool(codec, &metric->varies);
	nt_code_bool(codec, &metric->is_trouble);
	nt_code_bool(codec, &metric->is_missing);
	nt_code_bool(codec, &metric->is_muted);
	nt_code_u32(codec, &metric->learn, UINT32_MAX);
	nt_code_u32(codec, &metric->learn_residual, UINT32_MAX);
	nt_code_real(codec, &metric->first);
	nt_code_real(codec, &at->level[j]);
	nt_code_real(codec, &metric->base);
	nt_code_real(codec, &metric->width);
	nt_code_real(codec, &at->mean[j]);
	nt_code_real(codec, &at->novelty[j]);
	nt_code_real(codec, &at->residual_novelty[j]);
	nt_code_real(codec, &at->part[j]);
	nt_code_fail(codec, !(metric->width > 0.0) || at->novelty[j] < 0.0 ||
				    at->residual_novelty[j] < 0.0 || at->part[j] < 0.0);
	if (codec->loads && !codec->error)
		nt_chart_set_scale(chart, j);
}

/* A component of a unit vector. */
static void code_lane(struct nt_codec *codec, float *value)
{
	nt_code_float(codec, value);
	nt_code_fail(codec, *value > 2.0F || *value < -2.0F);
	if (codec->error)
		*value = 0.0F;
}

void nt_chart_code(struct nt_codec *codec, struct nt_chart *chart)
{
	uint32_t metrics = (uint32_t)chart->metrics, directions = (uint32_t)chart->directions;

	nt_code_u32(codec, &metrics, NT_ANOMALY_METRICS_MAX);
	nt_code_fail(codec, metrics != chart->metrics);
	nt_code_u32(codec, &directions, metrics ? metrics - 1 : 0);
	nt_code_u32(codec, &chart->since_refit, UINT32_MAX);
	nt_code_bool(codec, &chart->is_fitted);
	for (size_t j = 0; j < chart->metrics; j++)
		code_metric(codec, chart, j);
	nt_moments_code(codec, &chart->moments);
	nt_envelopes_code(codec, &chart->range);
	nt_envelopes_code(codec, &chart->residual_range);
	chart->directions = codec->error ? 0 : directions;
	for (size_t k = 0; k < chart->directions; k++)
		for (size_t j = 0; j < chart->metrics; j++)
			code_lane(codec, &chart->basis[k * chart->stride + j]);
	nt_code_real(codec, &chart->score);
	if (codec->loads)
		chart->refit_begun = false;
}
