/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Ratings of single windows: the distance of each rank from its peers, and whether the space
 * detector marks it. A mark is no verdict: the detection accumulates evidence over windows.
 */
#ifndef NT_CLI_REPLAY_RATING_H
#define NT_CLI_REPLAY_RATING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "detect/detect.h"

struct nt_rating {
	uint32_t rank, node; /* node: as in the frame */
	bool judged; /* against peers, in this window; otherwise the rest is undefined */
	bool marked; /* outside the largest cluster, on the harmful side, by the metric shown */
	bool host; /* the metric is host work, not own work: the one with the larger excess */
	double value_ns, peers_ns; /* per step */
	double excess; /* (value - peers) ÷ step */
};

struct nt_rater;

NT_MUST_CHECK int nt_rater_new(const struct nt_rules *rules, struct nt_rater **ret_rater);
void nt_rater_free(struct nt_rater *rater);
NT_DEFINE_AUTO(nt_rater, nt_rater_free)

/*
 * Rates the frame that the detector has just processed: one rating for each of its ranks, in their
 * order, valid until the next call. One rater gets all frames of one job. -ENOMEM.
 */
NT_MUST_CHECK int nt_rater_rate(struct nt_rater *rater, const struct nt_detect *detect,
				const struct nt_frame *frame, const struct nt_rating **ret_rating);

#endif
