/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The step unit: how much work one step of a rank is. Each rank's agent detects steps on its own,
 * so ranks of one group are scaled to a common unit. If the calls and the time of a step change by
 * the same factor, only the unit has changed.
 */
#ifndef NT_DETECT_BASELINE_STEP_UNIT_H
#define NT_DETECT_BASELINE_STEP_UNIT_H

#include <stdint.h>

struct nt_detect;
struct nt_group;
struct nt_frame_rank;
struct nt_step_metrics;

/*
 * Calls of the rank in the frame whose number is equal among members of a group: synchronising
 * calls, sends and receives.
 */
uint64_t nt_step_unit_calls(const struct nt_frame_rank *seen);

/*
 * Scales the step metrics of a group to the unit of its middle rank. Baselines are reset after
 * three rounds in a row with another unit. Returns the median step, ns.
 */
double nt_step_unit_align(struct nt_detect *detect, struct nt_group *group,
			  const struct nt_step_metrics *step_metrics);

#endif
