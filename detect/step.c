/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step of the job as a whole. */
#include "detect/step.h"

#include "detect/core.h"
#include "detect/stats.h"

void nt_step_learn(struct nt_detect *detect)
{
	struct nt_step *step = &detect->step;
	double *value = detect->scratch.a;
	uint32_t n = 0;

	for (uint32_t i = 0; i < detect->ranks; i++)
		if (detect->rank[i].round_frame == detect->frames)
			value[n++] = detect->rank[i].pace[NT_PACE_STEP];
	if (!n)
		return;
	step->step_ns = nt_stats_median_of(value, n);
	if (!detect->incidents.opens)
		nt_past_learn(&step->past, 0.0, step->step_ns, detect->frames);
}
