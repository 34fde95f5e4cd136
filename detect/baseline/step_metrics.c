/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Step metrics of the ranks of one group. */
#include "detect/baseline/step_metrics.h"

#include <string.h>

/*
 * Divides sums by steps; thread metrics, whose window is not cut at steps, are scaled to one step.
 */
static void set_step_metric(struct nt_detect_rank *rank)
{
	const double steps = rank->steps;
	const double step = (double)rank->sum[NT_STEP_METRIC_STEP] / steps;

	for (int i = 0; i < NT_STEP_METRIC_THREAD; i++)
		rank->step_metric[i] = (double)rank->sum[i] / steps;
	for (int i = NT_STEP_METRIC_THREAD; i < NT_STEP_METRIC_END; i++)
		rank->step_metric[i] =
			rank->window_ns ? (double)rank->sum[i] * step / (double)rank->window_ns
					: 0.0;
	memset(rank->sum, 0, sizeof(rank->sum));
	rank->window_ns = 0;
	rank->steps = 0;
}

struct nt_step_metrics nt_step_metrics_take(struct nt_detect *detect, const uint32_t *index,
					    uint32_t n)
{
	struct nt_step_metrics step_metrics = {
		.index = index,
		.n = n,
		.column = detect->scratch.column,
		.calls_then = detect->scratch.d,
		.step_then = detect->scratch.e,
		.took = detect->scratch.f,
	};

	for (uint32_t i = 0; i < n; i++) {
		struct nt_detect_rank *rank = &detect->rank[index[i]];

		if (i + NT_RANKS_AHEAD < n) {
			const struct nt_detect_rank *next =
				&detect->rank[index[i + NT_RANKS_AHEAD]];

			nt_detect_rank_expect(next->sum,
					      offsetof(struct nt_detect_rank, track) -
						      offsetof(struct nt_detect_rank, sum));
		}
		step_metrics.took[i] = (double)rank->sum[NT_STEP_METRIC_STEP];
		step_metrics.calls += (double)rank->sum[NT_STEP_METRIC_CALLS];
		if (rank->steps)
			set_step_metric(rank);
		for (int j = 0; j < NT_STEP_METRIC_END; j++)
			step_metrics.column[j][i] = rank->step_metric[j];
		step_metrics.tiers[rank->tier]++;
		step_metrics.hosts += nt_detect_rank_shows_host(rank);
		if (!rank->has_metric_mean)
			continue;
		step_metrics.calls_then[step_metrics.known] =
			rank->metric_mean[NT_STEP_METRIC_CALLS];
		step_metrics.step_then[step_metrics.known++] =
			rank->metric_mean[NT_STEP_METRIC_STEP];
	}
	return step_metrics;
}

static bool is_of_host(int item)
{
	return item == NT_STEP_METRIC_HOST || item == NT_STEP_METRIC_BLOCKED ||
	       item == NT_STEP_METRIC_COMM;
}

/* Keeps only the ranks of the column for which the metric is observable. */
static void keep(const struct nt_detect *detect, const struct nt_step_metrics *step_metrics,
		 uint8_t own_tier, int item)
{
	double *column = step_metrics->column[item];

	for (uint32_t i = 0, kept = 0; i < step_metrics->n; i++) {
		const struct nt_detect_rank *rank = &detect->rank[step_metrics->index[i]];

		if (nt_step_metric_is_own(item) ? rank->tier == own_tier
						: nt_detect_rank_shows_host(rank))
			column[kept++] = column[i];
	}
}

void nt_step_metrics_middles(const struct nt_detect *detect,
			     const struct nt_step_metrics *step_metrics,
			     struct nt_step_metric_middles *middles)
{
	for (int i = 0; i < NT_STEP_METRIC_END; i++) {
		uint32_t held = is_of_host(i) ? step_metrics->hosts : step_metrics->n;

		if (nt_step_metric_is_own(i))
			held = middles->own_tier ? step_metrics->tiers[middles->own_tier] : 0;
		middles->held[i] = held;
		if (held < step_metrics->n)
			keep(detect, step_metrics, middles->own_tier, i);
		if (held >= 2)
			middles->of[i] = nt_stats_middle_of(step_metrics->column[i], held);
	}
	middles->known = true;
}
