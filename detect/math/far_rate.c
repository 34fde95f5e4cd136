/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rate of windows far behind the peers. */
#include "detect/math/far_rate.h"

#include <math.h>

#include "detect/math/cusum.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

uint8_t nt_far_size(double widths)
{
	double most = 2.0 * NT_FAR_WIDTHS;
	uint8_t size = 1;

	while (size < NT_FAR_SIZES && widths >= most) {
		size++;
		most *= 2.0;
	}
	return size;
}

void nt_far_rate_fade(struct nt_far_rate *rate)
{
	rate->windows *= NT_FAR_RATE_KEPT;
	for (int i = 1; i <= NT_FAR_SIZES; i++)
		rate->far[i] *= NT_FAR_RATE_KEPT;
}

void nt_far_rate_add(struct nt_far_rate *rate, uint8_t size)
{
	rate->windows += 1.0;
	if (size)
		rate->far[size] += 1.0;
}

static double count_of(const struct nt_far_rate *rate, uint8_t least)
{
	double far = 0.0;

	for (int i = least; i <= NT_FAR_SIZES; i++)
		far += rate->far[i];
	return far;
}

void nt_far_rate_plus(struct nt_far_rate *sum, const struct nt_far_rate *rate)
{
	sum->windows += rate->windows;
	for (int i = 1; i <= NT_FAR_SIZES; i++)
		sum->far[i] += rate->far[i];
}

void nt_far_rate_minus(struct nt_far_rate *sum, const struct nt_far_rate *rate)
{
	sum->windows = nt_stats_max(0.0, sum->windows - rate->windows);
	for (int i = 1; i <= NT_FAR_SIZES; i++)
		sum->far[i] = nt_stats_max(0.0, sum->far[i] - rate->far[i]);
}

/* Its windows of this size or more; 0: all of them. */
static double own_of(const struct nt_far_own *own, uint8_t least)
{
	double windows = 0.0;

	for (int i = least; i <= NT_FAR_SIZES; i++)
		windows += own->windows[i];
	return windows;
}

bool nt_far_own_suffices(const struct nt_far_own *own)
{
	return own_of(own, 1) >= NT_FAR_STARTS;
}

/*
 * Part of healthy far windows that are of this size, before any of the other ranks is known: of a
 * Pareto tail of exponent 1, or of what made the rank itself far.
 */
static double prior_part(const struct nt_far_own *own, uint8_t size)
{
	const double tail = ldexp(1.0, size < NT_FAR_SIZES ? -size : 1 - NT_FAR_SIZES);

	return (NT_FAR_SIZES_PRIOR * tail + own->windows[size]) /
	       (NT_FAR_SIZES_PRIOR + own_of(own, 1));
}

/* Share of the healthy windows of a group that are of this size, in most jobs. */
static double usual_share(const struct nt_far_rate *others, const struct nt_far_rate *rest,
			  const struct nt_far_own *own, uint8_t size)
{
	const double of_rest =
		(rest->far[size] + prior_part(own, size)) / (rest->windows + NT_FAR_RATE_PRIOR);

	return (others->far[size] + NT_FAR_RATE_PRIOR * of_rest) /
	       (others->windows + NT_FAR_RATE_PRIOR);
}

/* The same in a job whose healthy ranks are far often. */
static double often_share(const struct nt_far_rate *others, const struct nt_far_own *own,
			  uint8_t size)
{
	return (others->far[size] +
		NT_FAR_RATE_OFTEN_PRIOR * NT_FAR_RATE_OFTEN * prior_part(own, size)) /
	       (others->windows + NT_FAR_RATE_OFTEN_PRIOR);
}

/* Probability that healthy ranks of this job are far often, by all windows. */
static double often_chance(const struct nt_far_rate *others, const struct nt_far_rate *rest,
			   const struct nt_far_own *own, uint8_t least)
{
	const double far = count_of(others, least) + count_of(rest, least) + own_of(own, least);
	const double windows = others->windows + rest->windows + own_of(own, 0);
	const double often = NT_FAR_RATE_OFTEN, usual = 1.0 / NT_FAR_RATE_PRIOR;
	const double odds =
		NT_FAR_RATE_OFTEN_JOBS *
		exp(far * log(often / usual) +
		    nt_stats_max(0.0, windows - far) * log((1.0 - often) / (1.0 - usual)));

	return isfinite(odds) ? odds / (1.0 + odds) : 1.0;
}

/* Share of the healthy windows of a group that are of this size or more, in most jobs. */
static double usual_share_from(const struct nt_far_rate *others, const struct nt_far_rate *rest,
			       uint8_t least)
{
	const struct nt_far_own none = {0};
	double share = 0.0;

	for (uint8_t i = least; i <= NT_FAR_SIZES; i++)
		share += usual_share(others, rest, &none, i);
	return share;
}

uint8_t nt_far_rate_least(const struct nt_far_rate *others, const struct nt_far_rate *rest)
{
	if (NT_FAR_RATE_TIMES * usual_share_from(others, rest, 1) <= NT_FAR_RATE_FAULTY)
		return 1;
	for (uint8_t least = 2; least <= NT_FAR_SIZES; least++)
		if (usual_share_from(others, rest, least) <= 1.0 / NT_FAR_RATE_PRIOR)
			return least;
	return 1;
}

double nt_far_rate_gain(const struct nt_far_rate *others, const struct nt_far_rate *rest,
			const struct nt_far_own *own, uint8_t least, uint8_t size)
{
	const double chance = often_chance(others, rest, own, least);
	const double sizes = NT_FAR_SIZES - least + 1, far = own_of(own, least);
	double healthy[NT_FAR_SIZES + 1] = {1.0}, faulty[NT_FAR_SIZES + 1] = {1.0};

	for (uint8_t i = least; i <= NT_FAR_SIZES; i++) {
		healthy[i] = chance * often_share(others, own, i) +
			     (1.0 - chance) * usual_share(others, rest, own, i);
		faulty[i] = nt_stats_max(
			NT_FAR_RATE_FAULTY * (own->windows[i] + 1.0) / (far + sizes), healthy[i]);
		healthy[0] -= healthy[i];
		faulty[0] -= faulty[i];
	}
	if (faulty[0] <= NT_FAR_RATE_FAULTY)
		return 0.0;
	size = size < least ? 0 : size;
	return log(faulty[size] / healthy[size]) / nt_cusum_exponent();
}

double nt_far_rate_start(void)
{
	return -log(NT_FAR_RATE_FAULTY) / nt_cusum_exponent();
}

static double tolerance_of(double window)
{
	return nt_stats_max(1.0, window);
}

/*
 * How many times the last gap this one is: one or two, or a half of the first. Of two far windows next to
 * each other only the first is added: one may be missed, now or before.
 */
static double nearest_beats(const struct nt_far_rhythm *rhythm, double gap)
{
	static const double other[] = {2.0, 0.5};
	const size_t others = rhythm->times < 2 ? 2 : 1;
	double best = 1.0;

	for (size_t i = 0; i < others; i++)
		if (fabs(gap - other[i] * rhythm->gap) < fabs(gap - best * rhythm->gap))
			best = other[i];
	return best;
}

/* Something else: if it costs as much as what is regular, that is regular no more. */
static bool is_replaced(struct nt_far_rhythm *rhythm, double cost)
{
	rhythm->off += cost;
	return rhythm->off >= rhythm->on;
}

void nt_far_rhythm_add(struct nt_far_rhythm *rhythm, double step, double window, double cost)
{
	const double gap = step - rhythm->at;
	double beats;

	if (NT_RHYTHM_ANOTHER * cost < rhythm->cost) {
		rhythm->off += rhythm->on > 0.0 ? cost : 0.0;
		return;
	}
	rhythm->on *= NT_RHYTHM_KEPT;
	rhythm->off *= NT_RHYTHM_KEPT;
	if (rhythm->at <= 0.0 || cost > NT_RHYTHM_ANOTHER * rhythm->cost) {
		if (rhythm->times < NT_RHYTHM_TIMES || is_replaced(rhythm, cost))
			*rhythm = (struct nt_far_rhythm){.at = step, .cost = cost};
		return;
	}
	beats = nearest_beats(rhythm, gap);
	if (rhythm->gap > 0.0 && fabs(gap - beats * rhythm->gap) > tolerance_of(window)) {
		/* One distance is no proof then. */
		if (is_replaced(rhythm, cost))
			*rhythm = (struct nt_far_rhythm){.at = step, .cost = cost, .off = cost};
		return;
	}
	rhythm->times = beats > 1.0 ? 1 : rhythm->times + (rhythm->times < UINT8_MAX);
	rhythm->gap = gap / nt_stats_max(1.0, beats);
	rhythm->on += cost;
	rhythm->at = step;
	rhythm->cost = cost;
}

bool nt_far_rhythm_is_regular(const struct nt_far_rhythm *rhythm, double window)
{
	const double least = rhythm->times < NT_RHYTHM_TIMES ? NT_RHYTHM_LEAST : NT_RHYTHM_SHORT;

	return rhythm->on > NT_RHYTHM_ANOTHER * rhythm->off &&
	       rhythm->gap >= least * tolerance_of(window);
}
