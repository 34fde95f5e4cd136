/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How far ranks differ beyond what is permanent about each. */
#ifndef NT_DETECT_BASELINE_RESIDUAL_WIDTH_H
#define NT_DETECT_BASELINE_RESIDUAL_WIDTH_H

#include "detect/baseline/peer_deviation.h"

/*
 * Spread of the deviations from peers, each less the centre of the rank's past: the median of the last rounds,
 * and at least that of this one. Ranks that differ by nature have a wide contest, in which a change of one of
 * them is small. The width of the contest while few ranks have a past or few rounds are known. Adds to the
 * group's past.
 */
double nt_residual_width(const struct nt_contest *c, const struct nt_step_metrics *step_metrics);

#endif
