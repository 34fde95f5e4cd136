/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step of the job as a whole: how long it takes, what it took. Plain data. */
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
	struct nt_cusum level; /* of step_ns against that: also what no rank's own work shows */
	struct nt_history history; /* of step_ns, whatever is open */
	/* Scratch of the step, means of the ranks: how many ended, their time, and calls; 0: none judged. */
	double round_steps, round_ns, round_calls;
	/* until then some incident, which is over, was charged for longer steps */
	uint64_t charged_ns;
	/* Slow means of the ranks' mean, a step: now, and while nothing was suspicious. */
	double gc_ns, gc_habit_ns;
	/* When anything last moved, and the longest time without. */
	uint64_t moved_ns, longest_pause_ns;
	/* What three of four ranks grew by at least, against their own pasts; by series. */
	struct nt_wide {
		struct nt_cusum level;
		double growth; /* of the last frame; 0 where too few ranks have a past */
		/* The same of their slow costs: of pauses that all make, but each in its own time. */
		double slow_cost;
		double drop; /* what three of four fell by at least: not above 0 */
		uint64_t dropped_ns; /* since when, 0: not */
	} wide[2];
};

#endif
