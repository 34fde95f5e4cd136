/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rate of windows far behind the peers. */
#include "detect/math/far_rate.h"

#include <math.h>

#include "detect/math/cusum.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

void nt_far_rate_fade(struct nt_far_rate *rate)
{
	rate->windows *= NT_FAR_RATE_KEPT;
	rate->far *= NT_FAR_RATE_KEPT;
}

void nt_far_rate_add(struct nt_far_rate *rate, bool is_far)
{
	rate->windows += 1.0;
	rate->far += is_far;
}

struct nt_far_rate nt_far_rate_without(const struct nt_far_rate *rate, uint32_t windows)
{
	const double own = pow(NT_FAR_RATE_KEPT, windows);

	return (struct nt_far_rate){
		.windows = nt_stats_max(0.0, rate->windows - own),
		.far = nt_stats_max(0.0, rate->far - own),
	};
}

double nt_far_rate_gain(const struct nt_far_rate *rate, bool is_far)
{
	const double healthy = (rate->far + 1.0) / (rate->windows + NT_FAR_RATE_PRIOR);
	const double faulty = nt_stats_max(NT_FAR_RATE_FAULTY, NT_FAR_RATE_TIMES * healthy);

	if (faulty >= 1.0 - NT_FAR_RATE_FAULTY)
		return 0.0;
	return log(is_far ? faulty / healthy : (1.0 - faulty) / (1.0 - healthy)) /
	       nt_cusum_exponent();
}

static double tolerance_of(double window)
{
	return nt_stats_max(1.0, window);
}

void nt_far_rhythm_add(struct nt_far_rhythm *rhythm, double step, double window, double cost)
{
	double gap = rhythm->at > 0.0 ? step - rhythm->at : 0.0;

	if (2.0 * cost < rhythm->cost)
		return;
	if (cost > 2.0 * rhythm->cost)
		gap = rhythm->gap = 0.0;
	rhythm->cost = cost;
	rhythm->is_equal = rhythm->gap > 0.0 && fabs(gap - rhythm->gap) <= tolerance_of(window);
	rhythm->gap = gap;
	rhythm->at = step;
}

bool nt_far_rhythm_is_regular(const struct nt_far_rhythm *rhythm, double window)
{
	return rhythm->is_equal && rhythm->gap >= NT_RHYTHM_LEAST * tolerance_of(window);
}
