/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts the windows in which a rank is far behind its peers: the evidence of a fault in some steps. */
#ifndef NT_DETECT_BASELINE_FAR_COUNT_H
#define NT_DETECT_BASELINE_FAR_COUNT_H

#include <stdbool.h>

#include "detect/math/cusum.h"
#include "detect/model/contest.h"

/*
 * The deviation from peers, less what is permanent. `usual`: the rank's past, or what is known of it so far
 * (is_known). `base`: the divisor of the deviation, ns; `value`: the rank's work, ns.
 */
double nt_far_count_deviation(const struct nt_contest *c, const struct nt_past *usual,
			      bool is_known, double value, double peer_deviation, double base);
/*
 * Adds the windows from which the incomplete past was learned: only now is it known what is permanent about
 * the rank. `window` is the present one, `base` the divisor of its deviation. The job's step is taken to have
 * been longer by what the rank was.
 */
void nt_far_count_before(struct nt_contest *c, const struct nt_detect_rank *rank,
			 struct nt_track *track, const struct nt_past *so_far, double base,
			 struct nt_cusum_window window);
/*
 * Adds the window to the rate of far ones. Only the first of several far windows counts, as a single
 * disturbance may last. While a rank's sum is above zero it does not define what is healthy.
 */
void nt_far_count_add(struct nt_contest *c, struct nt_track *track, const struct nt_past *past,
		      struct nt_cusum_window window);

#endif
