/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How heavy the tail of healthy windows is. */
#include "detect/tail.h"

#include <math.h>

/* A z from here on is far; of a normal distribution 2.3 % are. */
static const double far_z = 2.0, normal_part = 0.025;
/* What a far window adds to a sum at most, and its drift. */
static const double far_step = 2.0, drift = 1.0;
/* Of a round's windows this part is left after the next: a hundred rounds are remembered. */
static const double kept = 0.99;
static const double chance_sigma = 3.0;
static const double normal_exponent = 2.0, least_exponent = 0.125;

bool nt_tail_is_far(double z)
{
	return z >= far_z;
}

void nt_tail_fade(struct nt_tail *tail)
{
	tail->windows *= kept;
	tail->entries *= kept;
}

void nt_tail_add(struct nt_tail *tail, bool was_far, bool is_far)
{
	if (was_far)
		return;
	tail->windows += 1.0;
	tail->entries += is_far;
}

bool nt_tail_explains(const struct nt_tail *tail, uint32_t windows, uint32_t far)
{
	const double p = fmin(1.0, tail->entries / fmax(1.0, tail->windows));
	const double mean = p * windows;

	return far <= mean + chance_sigma * sqrt(mean * (1.0 - p));
}

/*
 * E[exp(t × increment)] - 1, of increments that are far_step with the chance p and normal less the
 * drift otherwise. Its positive root is the rate at which the chance of high sums falls:
 * P(sum > h) ~ exp(-t h). For p = 0 it is 2.
 */
static double excess(double p, double t)
{
	return p * exp(far_step * t) + (1.0 - p) * exp(t * t / 2.0 - drift * t) - 1.0;
}

double nt_tail_factor(const struct nt_tail *tail)
{
	/* One entry is a culprit's own: where ranks and windows are few it would weigh much. */
	const double more = tail->entries - 1.0 - normal_part * tail->windows;
	const double p = more / fmax(1.0, tail->windows);
	double low = least_exponent, high = normal_exponent;

	if (p <= 0.0)
		return 1.0;
	if (excess(p, low) >= 0.0)
		return normal_exponent / low;
	for (int i = 0; i < 24; i++) {
		const double middle = (low + high) / 2.0;

		if (excess(p, middle) < 0.0)
			low = middle;
		else
			high = middle;
	}
	return normal_exponent / low;
}
