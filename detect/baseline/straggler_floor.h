/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a job waits for anyhow. No two ranks need the same time for a step, and all wait for the slowest:
 * had a culprit been as fast as its peers, they would still wait for the slowest of these.
 */
#ifndef NT_DETECT_BASELINE_STRAGGLER_FLOOR_H
#define NT_DETECT_BASELINE_STRAGGLER_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/detector_state.h"

/*
 * Takes it off *part, the part of a step by which `culprits` ranks of the group are slower than the middle
 * of their peers. False: it is not known well enough for a fault of that `cost`, as it is not known
 * whether all wait for each other once a step or at each of its calls.
 */
bool nt_straggler_floor_take_off(const struct nt_detect *detect, const struct nt_group *group,
				 uint8_t series, uint32_t culprits, double cost, double *part);

#endif
