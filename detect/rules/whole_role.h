/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The work of a whole role, such as a pipeline stage, grew, and no node explains it: one incident that
 * names the role. What was there from the start is imbalance.
 */
#ifndef NT_DETECT_RULES_WHOLE_ROLE_H
#define NT_DETECT_RULES_WHOLE_ROLE_H

#include "detect/model/detector_state.h"

/*
 * Whether the growth of a rank against its own past is that of its role: at least half of it is the
 * least growth of the ranks. Of a role that grew it is the mean growth of its median, and the
 * rank's is that of its evidence: in a single round its work may be much longer than theirs.
 */
bool nt_whole_role_explains(struct nt_detect *detect, const struct nt_detect_rank *rank,
			    const struct nt_track *track);
/* Raises what lasts. -ENOMEM. */
int nt_whole_role_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
