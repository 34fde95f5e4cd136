/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts the windows in which a rank is far behind its peers. */
#include "detect/baseline/far_count.h"

#include <math.h>

#include "detect/math/cusum.h"
#include "detect/math/far_rate.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* How far behind it is: see nt_far_size(). */
static uint8_t size_of(const struct nt_contest *c, const struct nt_past *past,
		       const struct nt_cusum_window *window)
{
	const double width = past->ready
				     ? nt_stats_max(c->residual_width, past->peer_deviation_width)
				     : c->residual_width;

	if (window->peer_deviation <= NT_FAR_WIDTHS * width ||
	    window->cost < c->detect->rules.size_floor)
		return 0;
	return nt_far_size(window->peer_deviation / width);
}

/* The step at which it ended, of the job. */
static double place_of(const struct nt_contest *c, const struct nt_cusum_window *window)
{
	const struct nt_history *history = &c->detect->step.history;
	const double frames = (double)(c->detect->frames - window->frame);

	return history->steps + 1.0 - frames * nt_history_last_steps(history);
}

/*
 * Where work overlaps with collectives, others work less while they wait: the rank itself must have grown
 * by a part of its deviation, ns. `usual`: its past, NULL if it is not known.
 */
static bool is_left_behind(const struct nt_contest *c, const struct nt_past *usual, double value,
			   double deviation_ns)
{
	return c->foremost && usual && value - usual->value_centre < NT_LEFT_BEHIND * deviation_ns;
}

void nt_far_count_add(struct nt_contest *c, struct nt_track *track, const struct nt_past *past,
		      struct nt_cusum_window window)
{
	struct nt_far_rate *rate = &c->group->far_rate[c->series], others = *rate;
	struct nt_far_rate rest = c->detect->scratch.far_rate[c->series];
	const uint8_t size = size_of(c, past, &window);
	double gain = 0.0;
	uint8_t least;
	bool is_far;

	nt_far_rate_fade(&track->far_given);
	nt_far_rate_minus(&others, &track->far_given);
	nt_far_rate_minus(&rest, rate);
	least = nt_far_rate_least(&others, &rest);
	is_far = size >= least;
	/* In most of its windows the job waits for others: that it is a little faster then makes up for nothing. */
	if (!is_far)
		window.cost = 0.0;
	track->marked += (is_far - track->marked) / NT_MARKED_WINDOWS;
	if (track->far_fresh != nt_default_pending_windows) {
		if (track->rate.sum <= 0.0) {
			nt_far_rate_add(rate, size);
			nt_far_rate_add(&track->far_given, size);
			track->far_own = (struct nt_far_own){0};
		}
		gain = nt_far_rate_gain(&others, &rest, &track->far_own, least, size);
		/* The threshold allows for a start in any window. Sums start in far ones only. */
		if (is_far && track->rate.sum <= 0.0 && !c->foremost)
			gain += nt_far_rate_start();
		track->far_own.windows[is_far ? size : 0]++;
		if (is_far)
			nt_far_rhythm_add(&track->rhythm, place_of(c, &window),
					  nt_history_last_steps(&c->detect->step.history),
					  window.cost);
	}
	if (is_far)
		track->far_fresh = nt_default_pending_windows;
	else
		track->far_fresh -= track->far_fresh > 0;
	nt_cusum_grow(&track->rate, &c->detect->rules, &window, gain);
}

void nt_far_count_before(struct nt_contest *c, const struct nt_detect_rank *rank,
			 struct nt_track *track, const struct nt_past *so_far, double base,
			 struct nt_cusum_window window)
{
	const struct nt_lesson *lesson = nt_detect_rank_lesson(c->detect, rank, c->series);
	/* Of the first frame of its round. */
	const uint64_t waited_ns = c->detect->start_ns - window.start_ns;

	for (uint32_t i = 0; i < track->past.count; i++) {
		double excess;

		window.frame = lesson->frame[i];
		window.start_ns = nt_detect_began_ns(c->detect, window.frame);
		window.start_ns -= window.start_ns > waited_ns ? waited_ns : window.start_ns;
		window.peer_deviation = lesson->peer_deviation[i] -
					nt_stats_max(0.0, so_far->peer_deviation_centre);
		excess = window.peer_deviation * base;
		if (is_left_behind(c, so_far, lesson->value[i], excess))
			window.peer_deviation = excess = 0.0;
		window.cost = excess / (c->step + nt_stats_max(0.0, excess));
		nt_far_count_add(c, track, &track->past, window);
	}
}

double nt_far_count_deviation(const struct nt_contest *c, const struct nt_past *usual,
			      bool is_known, double value, double peer_deviation, double base)
{
	const double deviation = peer_deviation - nt_stats_max(0.0, usual->peer_deviation_centre);

	return is_left_behind(c, is_known ? usual : NULL, value, deviation * base) ? 0.0
										   : deviation;
}
