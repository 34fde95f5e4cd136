/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The past of a series: its baseline. */
#include "detect/model/time.h"

#include <math.h>
#include <string.h>

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

void nt_past_clear(struct nt_past *past)
{
	*past = (struct nt_past){0};
}

static double most_deviation(const double *value, uint32_t n, double centre)
{
	double most = 0.0;

	for (uint32_t i = 0; i < n; i++)
		most = nt_stats_max(most, fabs(value[i] - centre));
	return most;
}

/*
 * Number of windows at the beginning that are far above those that follow: the first steps of a job
 * allocate, compile and fill caches. With them the largest deviation would hide any fault.
 */
static uint32_t windows_of_warm_up(const double *value, uint32_t count)
{
	double least = INFINITY;
	uint32_t found = 0;

	for (uint32_t n = 1; n <= NT_PAST_WARM_UP && n + NT_PAST_SOME <= count; n++) {
		double low = INFINITY, high = -INFINITY;

		least = fmin(least, value[n - 1]);
		for (uint32_t i = n; i < n + NT_PAST_SOME; i++) {
			low = fmin(low, value[i]);
			high = fmax(high, value[i]);
		}
		if (least - high > fmax(NT_STEPPED_UP * high, NT_STEPPED_RANGES * (high - low)))
			found = n;
	}
	return found;
}

/*
 * Number of windows before a lasting step up; all of them: there was none. The window of the step
 * belongs to both sides. Requires `some` windows before it; a few after it are outvoted by the
 * median.
 */
static uint32_t windows_before(const double *value, uint32_t count, uint32_t some)
{
	double low = INFINITY, high = -INFINITY, after[NT_PAST_WINDOWS];

	after[count - 1] = value[count - 1];
	for (uint32_t i = count - 1; i-- > 0;)
		after[i] = fmin(value[i], after[i + 1]);
	for (uint32_t n = 1; n + NT_PAST_FEW < count; n++) {
		double ranges;

		low = fmin(low, value[n - 1]);
		high = fmax(high, value[n - 1]);
		/* The range of a few windows is small by chance. */
		ranges = (n < NT_PAST_SOME ? NT_STEPPED_RANGES_FEW : NT_STEPPED_RANGES) *
			 (high - low);
		if (n >= some && high > 0.0 && value[n] > high &&
		    after[n + 1] - high > fmax(NT_STEPPED_UP * high, ranges))
			return n;
	}
	return count;
}

/*
 * The windows from `first` on in which the rank did not fall behind its peers, if it did so at times
 * only: also if that is most of the time, but for `some` windows. Returns their number.
 */
static uint32_t take_windows(const struct nt_lesson *lesson, uint32_t first, uint32_t n,
			     uint32_t some, double *ret_peer_deviation, double *ret_value)
{
	const double *peer_deviation = lesson->peer_deviation + first;
	double sorted[NT_PAST_WINDOWS], most;
	uint32_t normal, taken = 0;

	memcpy(sorted, peer_deviation, n * sizeof(sorted[0]));
	nt_stats_sort(sorted, n);
	normal = nt_stats_lower_mode(sorted, n, some, NT_STEPPED_UP);
	most = sorted[normal - 1];
	for (uint32_t i = 0; i < n; i++) {
		if (peer_deviation[i] > most)
			continue;
		ret_peer_deviation[taken] = peer_deviation[i];
		ret_value[taken++] = lesson->value[first + i];
	}
	return taken;
}

/* by_peers: the deviation is one from peers, else it is a unit. */
static bool past_so_far(const struct nt_past *past, const struct nt_lesson *lesson, bool by_peers,
			struct nt_past *ret_past)
{
	uint32_t n = past->count, skipped, taken;
	double peer_deviation[NT_PAST_WINDOWS], value[NT_PAST_WINDOWS];

	if (past->ready || n < NT_PAST_SOME)
		return false;
	skipped = windows_of_warm_up(lesson->value, n);
	n = windows_before(lesson->value + skipped, n - skipped, NT_PAST_FEW);
	*ret_past = (struct nt_past){.count = n};
	taken = take_windows(lesson, skipped, n, by_peers ? NT_PAST_FEW : n, peer_deviation, value);
	ret_past->peer_deviation_centre = nt_stats_median_of(peer_deviation, taken);
	ret_past->peer_deviation_width =
		most_deviation(peer_deviation, taken, ret_past->peer_deviation_centre);
	n = take_windows(lesson, skipped, n, by_peers ? NT_PAST_SOME : n, peer_deviation, value);
	ret_past->value_centre = nt_stats_median_of(value, n);
	ret_past->value_width = most_deviation(value, n, ret_past->value_centre);
	ret_past->value_width =
		ret_past->value_centre > 0.0 ? ret_past->value_width / ret_past->value_centre : 0.0;
	return true;
}

bool nt_past_so_far(const struct nt_past *past, const struct nt_lesson *lesson,
		    struct nt_past *ret_past)
{
	return past_so_far(past, lesson, true, ret_past);
}

/* `before`: windows before the step. */
static bool is_same_unit(const struct nt_past *first, const struct nt_lesson *lesson,
			 uint32_t before)
{
	double copy[NT_PAST_WINDOWS], unit;

	memcpy(copy, lesson->peer_deviation, sizeof(copy));
	unit = nt_stats_median_of(copy + before, NT_PAST_WINDOWS - before);
	return fabs(unit - first->peer_deviation_centre) <=
	       NT_STEPPED_UNIT * first->peer_deviation_centre;
}

static void learn(struct nt_past *past, struct nt_lesson *lesson, double peer_deviation,
		  double value, uint64_t frame, bool by_peers)
{
	double normal_deviation[NT_PAST_WINDOWS], normal_value[NT_PAST_WINDOWS];
	uint32_t n;

	if (past->ready)
		return;
	lesson->peer_deviation[past->count] = peer_deviation;
	lesson->value[past->count] = value;
	lesson->frame[past->count++] = frame;
	if (past->count < NT_PAST_WINDOWS)
		return;
	past->ready = true;
	n = take_windows(lesson, 0, NT_PAST_WINDOWS, by_peers ? NT_PAST_SOME : NT_PAST_WINDOWS,
			 normal_deviation, normal_value);
	past->peer_deviation_centre = nt_stats_median_of(normal_deviation, n);
	past->peer_deviation_width = nt_stats_mad(normal_deviation, n, past->peer_deviation_centre);
	past->value_centre = nt_stats_median_of(normal_value, n);
	past->value_width = nt_stats_mad(normal_value, n, past->value_centre);
	past->value_width = past->value_centre > 0.0 ? past->value_width / past->value_centre : 0.0;
}

void nt_past_learn(struct nt_past *past, struct nt_lesson *lesson, double peer_deviation,
		   double value, uint64_t frame)
{
	learn(past, lesson, peer_deviation, value, frame, true);
}

uint64_t nt_past_learn_first(struct nt_past *past, struct nt_lesson *lesson, double unit,
			     double value, uint64_t frame)
{
	struct nt_past before = {0}, first;

	if (past->ready)
		return 0;
	learn(past, lesson, unit, value, frame, false);
	if (!past->ready)
		return 0;
	before.count = windows_before(lesson->value, NT_PAST_WINDOWS, NT_PAST_SOME);
	/* With so few windows the width is the largest deviation. */
	if (before.count == NT_PAST_WINDOWS || !past_so_far(&before, lesson, false, &first) ||
	    !is_same_unit(&first, lesson, before.count))
		return 0;
	*past = first;
	past->count = NT_PAST_WINDOWS;
	past->ready = true;
	return lesson->frame[before.count];
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
	return NT_PAST_ERRORS * NT_STATS_MEDIAN_ERROR * past->value_width / sqrt(NT_PAST_WINDOWS);
}

double nt_past_floor(const struct nt_past *past, double most)
{
	const double error =
		NT_STATS_MEDIAN_ERROR * past->peer_deviation_width / sqrt(NT_PAST_WINDOWS);

	return nt_stats_max(0.0, past->peer_deviation_centre - nt_stats_min(error, most));
}

bool nt_past_before(const struct nt_past *past, const struct nt_lesson *lesson, uint64_t frame,
		    double *ret_peer_deviation, double *ret_value)
{
	double copy[NT_PAST_WINDOWS];
	uint32_t n = 0;

	if (past->ready) {
		*ret_peer_deviation = past->peer_deviation_centre;
		*ret_value = past->value_centre;
		return true;
	}
	while (n < past->count && lesson->frame[n] < frame)
		n++;
	if (n < NT_PAST_FEW)
		return false;
	memcpy(copy, lesson->peer_deviation, n * sizeof(copy[0]));
	*ret_peer_deviation = nt_stats_median_of(copy, n);
	memcpy(copy, lesson->value, n * sizeof(copy[0]));
	*ret_value = nt_stats_median_of(copy, n);
	return true;
}
