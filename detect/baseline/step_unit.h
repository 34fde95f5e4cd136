/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a step is, is learned by each rank alone. Ranks of one role that hold other parts of the same
 * work for a step are compared as if their steps were equal, and a change of mind is no change of
 * pace: where the calls of a step and its time change alike, only the unit has changed.
 */
#ifndef NT_DETECT_BASELINE_STEP_UNIT_H
#define NT_DETECT_BASELINE_STEP_UNIT_H

#include <stdint.h>

struct nt_detect;
struct nt_group;
struct nt_frame_rank;
struct nt_step_metrics;

/*
 * Calls of the rank in the frame, of which members of one role make equally many: those that
 * synchronise, and sends and receives.
 */
uint64_t nt_step_unit_calls(const struct nt_frame_rank *seen);

/*
 * Scales the paces of the ranks of one role to the steps of the middle one. What was normal is
 * forgotten where that is another unit now, three rounds in a row. Returns the median step.
 */
double nt_step_unit_align(struct nt_detect *detect, struct nt_group *group,
			  const struct nt_step_metrics *step_metrics);

#endif
