/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Uneven work: a role that has more to do than the others, or another rank that is slowest each
 * time. Information, never an accusation.
 */
#ifndef NT_DETECT_RULES_IMBALANCE_H
#define NT_DETECT_RULES_IMBALANCE_H

#include "detect/model/detector_state.h"

/* Raises imbalance where it lasts. -ENOMEM. */
int nt_imbalance_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
