/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The straggler floor. */
#include "detect/incidents/straggler_floor.h"

#include <math.h>

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

bool nt_straggler_floor_take_off(const struct nt_detect *detect, const struct nt_group *group,
				 uint8_t series, uint32_t culprits, double cost, double *part)
{
	const struct nt_detect_rank *rank = &detect->rank[detect->roles.member[group->first]];
	const double all = group->members, slow = fmin(culprits, all);
	double spread, once, at_each, likely;

	if (!group->past || group->median[series] < 0.0)
		return true;
	/* Spread of a rank's step, as part of the step. */
	spread = nt_ring_median(&group->past->width[series]) * group->median[series] /
		 fmax(1.0, group->step_ns);
	once = spread * fmax(0.0, nt_stats_largest(all - slow) - nt_stats_largest(slow));
	/* Each call is preceded by a part of the step's work, and of its variance. */
	at_each = once * sqrt(fmax(1.0, rank->step_metric[NT_STEP_METRIC_CALLS]));
	likely = sqrt(once * at_each);
	*part -= likely;
	return at_each - likely <= NT_WAIT_CLOSE * cost;
}
