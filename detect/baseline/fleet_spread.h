/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Healthy ranks differ permanently. How much is known from the windows of the other ranks so far, of
 * five windows or more: the rank's own past need not be complete.
 */
#ifndef NT_DETECT_BASELINE_FLEET_SPREAD_H
#define NT_DETECT_BASELINE_FLEET_SPREAD_H

#include "detect/model/detector_state.h"

/* Whether a level present from the start exceeds a fleet's healthy spread. */
bool nt_fleet_spread_is_exceeded(struct nt_detect *detect, const struct nt_detect_rank *rank,
				 enum nt_series series, const struct nt_cusum *sum);

#endif
