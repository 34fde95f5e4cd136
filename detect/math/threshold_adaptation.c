/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adapts the alarm threshold to the tail of healthy windows. */
#include "detect/math/threshold_adaptation.h"

#include <math.h>

#include "detect/math/cusum.h"
#include "detect/thresholds/thresholds.h"

bool nt_adaptation_is_far(double z)
{
	return z >= NT_ADAPTATION_FAR;
}

void nt_adaptation_fade(struct nt_adaptation *tail)
{
	tail->windows *= NT_ADAPTATION_KEPT;
	tail->entries *= NT_ADAPTATION_KEPT;
	tail->after *= NT_ADAPTATION_KEPT;
	tail->stayed *= NT_ADAPTATION_KEPT;
}

void nt_adaptation_add(struct nt_adaptation *tail, bool was_far, bool is_far)
{
	if (was_far)
		return;
	tail->windows += 1.0;
	tail->entries += is_far;
}

void nt_adaptation_add_run(struct nt_adaptation *tail, uint32_t run)
{
	if (!run)
		return;
	tail->after += run;
	tail->stayed += run - 1;
}

/* Laplace's rule of succession: without data each far window is followed by another one or not. */
static double succession(double yes, double all)
{
	return (yes + 1.0) / (all + 2.0);
}

double nt_adaptation_rarity(const struct nt_adaptation *tail, uint32_t run)
{
	if (!run)
		return 0.0;
	return -log(succession(tail->entries, tail->windows)) -
	       (run - 1) * log(succession(tail->stayed, tail->after));
}

bool nt_adaptation_explains(const struct nt_adaptation *tail, uint32_t windows, uint32_t far)
{
	const double p = fmin(1.0, tail->entries / fmax(1.0, tail->windows));
	const double mean = p * windows;

	return far <= mean + NT_ADAPTATION_SIGMA * sqrt(mean * (1.0 - p));
}

/*
 * E[exp(t × increment)] - 1, for increments that are the largest step with probability p, and
 * otherwise normal minus the drift. Its positive root is the decay rate of the tail: P(sum > h) ~
 * exp(-t h). For p = 0 it is nt_cusum_exponent().
 */
static double excess(double p, double t)
{
	return p * exp(nt_cusum_step() * t) + (1.0 - p) * exp(t * t / 2.0 - nt_default_drift * t) -
	       1.0;
}

double nt_adaptation_factor(const struct nt_adaptation *tail)
{
	/* One entry is the culprit's own, which would weigh heavily with few ranks and windows. */
	const double more = tail->entries - 1.0 - NT_ADAPTATION_NORMAL * tail->windows;
	const double p = more / fmax(1.0, tail->windows);
	double low = nt_cusum_exponent() / NT_ADAPTATION_MOST, high = nt_cusum_exponent();

	if (p <= 0.0)
		return 1.0;
	if (excess(p, low) >= 0.0)
		return nt_cusum_exponent() / low;
	for (int i = 0; i < 24; i++) {
		const double middle = (low + high) / 2.0;

		if (excess(p, middle) < 0.0)
			low = middle;
		else
			high = middle;
	}
	return nt_cusum_exponent() / low;
}
