/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step unit of the ranks of a group. */
#include "detect/baseline/step_unit.h"

#include <math.h>
#include <string.h>

#include "detect/baseline/baseline_reset.h"
#include "detect/baseline/step_metrics.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

uint64_t nt_step_unit_calls(const struct nt_frame_rank *seen)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < seen->comms; i++) {
		const struct nt_frame_comm *comm = &seen->comm[i];

		for (size_t j = 0; j < comm->ops; j++)
			if (comm->op[j].kind == NT_FRAME_SYNCHRONISING ||
			    comm->op[j].kind == NT_FRAME_ALL_TO_ALL ||
			    comm->op[j].kind == NT_FRAME_POINT_TO_POINT)
				calls = nt_stats_add(calls, comm->op[j].calls);
	}
	return calls;
}

/* The upper median: a value that a rank has, and the longer unit is more likely the step. */
struct middle {
	double upper, median;
};

static struct middle middle_of(struct nt_detect *detect, const double *value, uint32_t n)
{
	double *copy = detect->scratch.c;
	double median;

	memcpy(copy, value, n * sizeof(*copy));
	median = nt_stats_median_of(copy, n);
	return (struct middle){.upper = copy[n / 2], .median = median};
}

/* Whether calls and time changed by the same factor. */
static bool is_another(double calls, double step, double calls_then, double step_then)
{
	double by_calls, by_time;

	if (calls <= 0.0 || step <= 0.0 || calls_then <= 0.0 || step_then <= 0.0)
		return false;
	by_calls = calls / calls_then;
	by_time = step / step_then;
	return (by_calls >= NT_STEP_UNIT_ANOTHER || by_calls <= 1.0 / NT_STEP_UNIT_ANOTHER) &&
	       fabs(by_time / by_calls - 1.0) <= NT_STEP_UNIT_ALIKE;
}

/* The same, or both grew so much that the previous unit was wrong. */
static bool is_anew(double calls, double step, double calls_then, double step_then)
{
	if (is_another(calls, step, calls_then, step_then))
		return true;
	return calls_then > 0.0 && step_then > 0.0 && calls >= NT_STEP_UNIT_WHOLE * calls_then &&
	       step >= NT_STEP_UNIT_WHOLE * step_then;
}

/* Whether most ranks have no baseline, so that the job has none. */
static bool is_new_to_most(const struct nt_detect *detect)
{
	uint32_t fresh = 0;

	for (uint32_t i = 0; i < detect->ranks; i++)
		fresh += !detect->rank[i].track[NT_SERIES_HOST].past.ready;
	return 2 * fresh > detect->ranks;
}

/*
 * After a restart an agent detects the steps of its own ranks again. Baselines of the other ranks
 * and of the job's step are kept.
 */
static void forget(struct nt_detect *detect, struct nt_group *group)
{
	struct nt_history *history = &detect->step.history;
	const double calls = history->calls;
	const uint64_t begin_ns = history->begin_ns;

	nt_normal_forget_group(detect, group);
	if (!is_new_to_most(detect))
		return;
	nt_normal_forget(detect, false);
	/* Early on the step was misdetected; later the job itself has changed. */
	if (detect->frames > NT_PAST_WINDOWS)
		return;
	history->calls = calls;
	history->begin_ns = begin_ns;
}

/*
 * Whether the rank's step is of another unit than the group's. Where steps are the device's, calls
 * are counted when the host makes them, and time when the device is done: in a window of a host that
 * runs ahead both may differ by the same factor, so that the difference must last.
 */
static bool has_another(struct nt_detect_rank *rank, double calls, double step)
{
	if (!is_another(rank->step_metric[NT_STEP_METRIC_CALLS],
			rank->step_metric[NT_STEP_METRIC_STEP], calls, step)) {
		rank->unit_rounds = 0;
		return false;
	}
	rank->unit_rounds += rank->unit_rounds < UINT8_MAX;
	return (rank->tier != NT_FRAME_T3 && !rank->own_by_device) || !rank->has_metric_mean ||
	       rank->unit_rounds >= NT_STEP_UNIT_ROUNDS;
}

/* Scales to the common unit; returns whether any rank had another one. */
static bool scale(struct nt_detect *detect, const struct nt_step_metrics *step_metrics,
		  double calls, double step)
{
	double *const *column = step_metrics->column;
	bool scaled = false;

	for (uint32_t i = 0; i < step_metrics->n; i++) {
		struct nt_detect_rank *rank = &detect->rank[step_metrics->index[i]];
		const double mine = rank->step_metric[NT_STEP_METRIC_STEP];

		if (!has_another(rank, calls, step))
			continue;
		for (int j = 0; j < NT_STEP_METRIC_END; j++)
			column[j][i] = rank->step_metric[j] *= step / mine;
		scaled = true;
	}
	return scaled;
}

double nt_step_unit_align(struct nt_detect *detect, struct nt_group *group,
			  const struct nt_step_metrics *step_metrics)
{
	const double *step = step_metrics->column[NT_STEP_METRIC_STEP];
	const struct middle calls_now =
		middle_of(detect, step_metrics->column[NT_STEP_METRIC_CALLS], step_metrics->n);
	struct middle step_now = middle_of(detect, step, step_metrics->n);
	uint32_t changed = 0;

	for (uint32_t i = 0; i < step_metrics->known; i++)
		changed += is_anew(calls_now.upper, step_now.upper, step_metrics->calls_then[i],
				   step_metrics->step_then[i]);
	if (scale(detect, step_metrics, calls_now.upper, step_now.upper))
		step_now = middle_of(detect, step, step_metrics->n);
	/* Windows that end between steps may be off by a call, so one round is not enough. */
	group->unit_rounds = step_metrics->known && changed * 2 > step_metrics->known
				     ? group->unit_rounds + 1
				     : 0;
	if (group->unit_rounds >= NT_STEP_UNIT_ROUNDS) {
		group->unit_rounds = 0;
		forget(detect, group);
	}
	return step_now.median;
}
