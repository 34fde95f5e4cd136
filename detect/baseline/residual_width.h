/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How far ranks differ beyond what is permanent about each. */
#ifndef NT_DETECT_BASELINE_RESIDUAL_WIDTH_H
#define NT_DETECT_BASELINE_RESIDUAL_WIDTH_H

#include "detect/baseline/peer_deviation.h"

/*
 * Spread of the deviations from peers, each less the centre of the rank's past: the median of those of the
 * last rounds. Ranks that differ by nature have a wide contest, in which a change of one of them is small.
 * Returns the width of the contest while too few ranks have a past. Adds to the group's past.
 */
double nt_residual_width(const struct nt_contest *c, const struct nt_step_metrics *step_metrics);

#endif
