/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chart's side of a refit: what it is made from, and what follows from a new basis. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "detect/anomaly/chart_impl.h"
#include "detect/thresholds/thresholds.h"

bool nt_chart_is_refit_due(const struct nt_chart *chart)
{
	return !chart->refit_begun &&
	       chart->since_refit >=
		       (chart->is_fitted ? NT_ANOMALY_REFIT_ROWS : NT_ANOMALY_WARM_ROWS);
}

/* Units of a metric after its range was renewed. Its residual's envelope follows the unit. */
static void set_unit(struct nt_chart *chart, size_t j)
{
	struct nt_chart_metric *metric = &chart->metric[j];
	double low = chart->range.low[j], width = chart->range.high[j] - low;
	bool varied = metric->varies;
	double before = metric->width;

	metric->varies = nt_envelopes_has(&chart->range, j) &&
			 width > NT_ANOMALY_FLAT * fmax(fabs(low), fabs(chart->range.high[j]));
	metric->base = low;
	metric->width = metric->varies ? width : 1.0;
	chart->at.mean[j] = chart->moments.mean[j];
	nt_chart_set_scale(chart, j);
	if (metric->varies && varied)
		nt_envelopes_scale(&chart->residual_range, j, before / metric->width);
	else if (metric->varies != varied)
		nt_envelopes_forget(&chart->residual_range, j);
}

int nt_chart_begin_refit(struct nt_chart *chart, struct nt_refit **ret_refit)
{
	nt_auto(nt_refit) struct nt_refit *refit = NULL;
	const size_t n = chart->metrics;
	int r = nt_refit_new(n, &refit);

	if (r < 0)
		return r;
	refit->share = NT_ANOMALY_SHARE;
	chart->since_refit = 0;
	chart->refit_begun = true;
	nt_envelopes_renew(&chart->range);
	nt_envelopes_renew(&chart->residual_range);
	for (size_t j = 0; j < n; j++)
		set_unit(chart, j);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++)
			if (chart->metric[i].varies && chart->metric[j].varies)
				refit->covariance[i * n + j] =
					nt_moments_covariance(&chart->moments, i, j) /
					(chart->metric[i].width * chart->metric[j].width);
	*ret_refit = nt_take(refit);
	return 0;
}

void nt_chart_end_refit(struct nt_chart *chart, const struct nt_refit *refit)
{
	for (size_t k = 0; k < refit->directions; k++)
		for (size_t j = 0; j < chart->metrics; j++)
			chart->basis[k * chart->stride + j] =
				(float)refit->basis[k * chart->metrics + j];
	/* Fewer than metrics, so that a row is left; scoring takes directions by two. */
	memset(chart->basis + refit->directions * chart->stride, 0,
	       chart->stride * sizeof(*chart->basis));
	chart->directions = refit->directions;
	chart->is_fitted = true;
	chart->refit_begun = false;
}

void nt_chart_drop_refit(struct nt_chart *chart)
{
	chart->refit_begun = false;
}

int nt_chart_refit(struct nt_chart *chart)
{
	nt_auto(nt_refit) struct nt_refit *refit = NULL;
	int r;

	r = nt_chart_begin_refit(chart, &refit);
	if (r < 0)
		return r;
	r = nt_refit_solve(refit);
	if (r == 0)
		nt_chart_end_refit(chart, refit);
	else
		nt_chart_drop_refit(chart);
	return r;
}
