/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the ranks of one role did a step, in one round, side by side. */
#ifndef NT_DETECT_BASELINE_STEP_METRICS_H
#define NT_DETECT_BASELINE_STEP_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/math/stats.h"
#include "detect/model/detector_state.h"

struct nt_step_metrics {
	const uint32_t *index; /* of these ranks, in nt_detect.rank */
	uint32_t n;
	double *const *column; /* by pace: of these ranks, in their order */
	/* Calls and step as they use to be, of those that have a habit. */
	double *calls_then, *step_then;
	uint32_t known;
	double *took; /* all steps of each together, ns; until something is compared */
	double calls; /* of all ranks, that synchronise */
	uint32_t tiers[NT_FRAME_T3 + 1]; /* of each so many ranks */
	uint32_t hosts; /* so many show what their hosts do */
};

/* The middle of each pace among the ranks, once it is asked for. */
struct nt_step_metric_middles {
	bool known;
	uint8_t own_tier; /* whose own work is compared, 0: of none */
	uint32_t held[NT_STEP_METRIC_END]; /* of so many ranks */
	struct nt_stats_middle of[NT_STEP_METRIC_END];
};

/* The ranks' sums become paces. They are in scratch, until the next are taken. */
struct nt_step_metrics nt_step_metrics_take(struct nt_detect *detect, const uint32_t *index,
					    uint32_t n);
/* Of a rank at another tier this is not known, and not zero. */
static inline bool nt_step_metric_is_own(int item)
{
	return item == NT_STEP_METRIC_OWN || item == NT_STEP_METRIC_OWN_BLOCKED;
}

/*
 * Of two ranks or more; of own work, of those of middles->own_tier, which the caller sets. The
 * columns are in another order afterwards.
 */
void nt_step_metrics_middles(const struct nt_detect *detect,
			     const struct nt_step_metrics *step_metrics,
			     struct nt_step_metric_middles *middles);

#endif
