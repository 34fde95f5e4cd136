/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step of the job as a whole: how long it takes, what it took, and when all ranks change. */
#ifndef NT_DETECT_STEP_H
#define NT_DETECT_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/cusum.h"
#include "detect/time.h"

struct nt_detect;

/* Takes the median step of the ranks judged in this frame. */
void nt_step_learn(struct nt_detect *detect);

struct nt_step {
	double step_ns; /* median of the ranks, of the last frame that had steps; 0: none yet */
	struct nt_past past; /* of step_ns */
};

#endif
