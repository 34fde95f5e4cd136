/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Step metrics: values per step of the ranks of one group, in one round. */
#ifndef NT_DETECT_BASELINE_STEP_METRICS_H
#define NT_DETECT_BASELINE_STEP_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/math/stats.h"
#include "detect/model/detector_state.h"

struct nt_step_metrics {
	const uint32_t *index; /* of these ranks, in nt_detect.rank */
	uint32_t n;
	double *const *column; /* by step metric: of these ranks, in their order */
	/* Mean calls and step time, of the ranks that have a mean. */
	double *calls_then, *step_then;
	uint32_t known;
	double *took; /* total step time of each, ns; valid until the first comparison */
	double calls; /* synchronising calls of all ranks */
	uint32_t tiers[NT_FRAME_T3 + 1]; /* number of ranks by tier */
	uint32_t hosts; /* number of ranks whose host work is observable */
};

/* The middle of each step metric among the ranks, computed on first use. */
struct nt_step_metric_middles {
	bool known;
	uint8_t own_tier; /* tier whose own work is compared, 0: none */
	uint32_t held[NT_STEP_METRIC_END]; /* number of ranks */
	struct nt_stats_middle of[NT_STEP_METRIC_END];
};

/* Divides the ranks' sums by their steps. The result lies in scratch until the next call. */
struct nt_step_metrics nt_step_metrics_take(struct nt_detect *detect, const uint32_t *index,
					    uint32_t n);
/* Metrics of own work: unknown, not zero, for a rank at another tier. */
static inline bool nt_step_metric_is_own(int item)
{
	return item == NT_STEP_METRIC_OWN || item == NT_STEP_METRIC_OWN_BLOCKED ||
	       item == NT_STEP_METRIC_OWN_LONGEST;
}

/*
 * Needs two ranks or more. Own work is taken from ranks of middles->own_tier, which the caller
 * sets. Reorders the columns.
 */
void nt_step_metrics_middles(const struct nt_detect *detect,
			     const struct nt_step_metrics *step_metrics,
			     struct nt_step_metric_middles *middles);

#endif
