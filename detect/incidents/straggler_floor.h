/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The straggler floor: the delay that remains when the culprit runs at the speed of its peers.
 * Healthy ranks differ, and a synchronous job always waits for the slowest of them.
 */
#ifndef NT_DETECT_INCIDENTS_STRAGGLER_FLOOR_H
#define NT_DETECT_INCIDENTS_STRAGGLER_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/detector_state.h"

/*
 * Subtracts the floor from *part, the part of a step by which `culprits` ranks exceed the middle of
 * their peers. False: the floor is too uncertain for a fault of that `cost`, because ranks may
 * synchronise once a step or at each call.
 */
bool nt_straggler_floor_take_off(const struct nt_detect *detect, const struct nt_group *group,
				 uint8_t series, uint32_t culprits, double cost, double *part);

#endif
