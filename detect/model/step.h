/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step of the job as a whole: current and normal duration. Plain data. */
#ifndef NT_DETECT_MODEL_STEP_H
#define NT_DETECT_MODEL_STEP_H

#include <stdint.h>

#include "detect/math/cusum.h"
#include "detect/model/history.h"
#include "detect/model/time.h"

struct nt_detect_step {
	double step_ns; /* median of the ranks, of the last frame that had steps; 0: none yet */
	struct nt_past past; /* of step_ns */
	struct nt_lesson lesson;
	struct nt_history_mean first; /* of the rounds of that past */
	uint64_t said_ns; /* when an incident last explained the step's length */
	struct nt_cusum level; /* of step_ns relative to its past */
	struct nt_history history; /* of step_ns, regardless of open incidents */
	/*
	 * Scratch of the step, means of the ranks: completed steps, their time, calls; 0: none
	 * judged.
	 */
	double round_steps, round_ns, round_calls;
	/* excess step time up to here is charged to a resolved incident */
	uint64_t charged_ns;
	/* Slow means of the ranks' mean, ns per step: now, and while nothing was suspicious. */
	double gc_ns, gc_before_ns;
	/* When the job last made progress, and the longest time without. */
	uint64_t moved_ns, longest_pause_ns;
	uint64_t wide_frame; /* last frame in which the growths of most ranks were taken */
	/* Growth that three of four ranks exceed, relative to their own pasts; by series. */
	struct nt_job_wide {
		struct nt_cusum level;
		double growth; /* when last taken; 0 where too few ranks have a past */
		bool known; /* enough had one */
		/*
		 * The same for their slow costs: detects pauses that ranks make at different times.
		 */
		double slow_cost;
		double drop; /* decrease that three of four exceed: at most 0 */
		uint64_t dropped_ns; /* since when; 0: not */
	} job_wide[2];
};

#endif
