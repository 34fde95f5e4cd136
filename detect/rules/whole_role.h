/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The work of a whole role, such as a pipeline stage, grew at once, and no node explains it: one
 * incident that names the role. What grows gradually, or was there from the start, is imbalance.
 */
#ifndef NT_DETECT_RULES_WHOLE_ROLE_H
#define NT_DETECT_RULES_WHOLE_ROLE_H

#include "detect/model/detector_state.h"

/* Raises what lasts. -ENOMEM. */
int nt_whole_role_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
