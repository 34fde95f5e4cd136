/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank's own past. */
#include "detect/time.h"

#include <math.h>
#include <string.h>

#include "detect/stats.h"

void nt_past_clear(struct nt_past *past)
{
	*past = (struct nt_past){0};
}

void nt_past_learn(struct nt_past *past, struct nt_lesson *lesson, double kpi, double value,
		   uint64_t frame)
{
	double copy[NT_PAST_WINDOWS];

	if (past->ready)
		return;
	lesson->kpi[past->count] = kpi;
	lesson->value[past->count] = value;
	lesson->frame[past->count++] = frame;
	if (past->count < NT_PAST_WINDOWS)
		return;
	past->ready = true;
	memcpy(copy, lesson->kpi, sizeof(copy));
	past->kpi_centre = nt_stats_median_of(copy, NT_PAST_WINDOWS);
	past->kpi_width = nt_stats_mad(copy, NT_PAST_WINDOWS, past->kpi_centre);
	memcpy(copy, lesson->value, sizeof(copy));
	past->value_centre = nt_stats_median_of(copy, NT_PAST_WINDOWS);
	past->value_width = nt_stats_mad(copy, NT_PAST_WINDOWS, past->value_centre);
	past->value_width = past->value_centre > 0.0 ? past->value_width / past->value_centre : 0.0;
}

static double most_deviation(const double *value, uint32_t n, double centre)
{
	double most = 0.0;

	for (uint32_t i = 0; i < n; i++)
		most = nt_stats_max(most, fabs(value[i] - centre));
	return most;
}

bool nt_past_so_far(const struct nt_past *past, const struct nt_lesson *lesson,
		    struct nt_past *ret_past)
{
	const uint32_t n = past->count;
	double copy[NT_PAST_WINDOWS];

	if (past->ready || n < NT_PAST_SOME)
		return false;
	*ret_past = (struct nt_past){.count = n};
	memcpy(copy, lesson->kpi, n * sizeof(copy[0]));
	ret_past->kpi_centre = nt_stats_median_of(copy, n);
	ret_past->kpi_width = most_deviation(copy, n, ret_past->kpi_centre);
	memcpy(copy, lesson->value, n * sizeof(copy[0]));
	ret_past->value_centre = nt_stats_median_of(copy, n);
	ret_past->value_width = most_deviation(copy, n, ret_past->value_centre);
	ret_past->value_width =
		ret_past->value_centre > 0.0 ? ret_past->value_width / ret_past->value_centre : 0.0;
	return true;
}

void nt_past_unlearn(struct nt_past *past, const struct nt_lesson *lesson, uint64_t frame)
{
	if (past->ready)
		return;
	while (past->count && lesson->frame[past->count - 1] >= frame)
		past->count--;
}

double nt_past_doubt(const struct nt_past *past)
{
	return 2.0 * 1.25 * past->value_width / sqrt(NT_PAST_WINDOWS);
}

double nt_past_floor(const struct nt_past *past, double most)
{
	const double error = 1.25 * past->kpi_width / sqrt(NT_PAST_WINDOWS);

	return nt_stats_max(0.0, past->kpi_centre - nt_stats_min(error, most));
}

bool nt_past_before(const struct nt_past *past, const struct nt_lesson *lesson, uint64_t frame,
		    double *ret_kpi, double *ret_value)
{
	double copy[NT_PAST_WINDOWS];
	uint32_t n = 0;

	if (past->ready) {
		*ret_kpi = past->kpi_centre;
		*ret_value = past->value_centre;
		return true;
	}
	while (n < past->count && lesson->frame[n] < frame)
		n++;
	if (n < NT_PAST_FEW)
		return false;
	memcpy(copy, lesson->kpi, n * sizeof(copy[0]));
	*ret_kpi = nt_stats_median_of(copy, n);
	memcpy(copy, lesson->value, n * sizeof(copy[0]));
	*ret_value = nt_stats_median_of(copy, n);
	return true;
}
