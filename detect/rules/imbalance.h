/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Imbalance: a group with more work than the others, or a different slowest rank in each round. It
 * is informational and accuses no rank.
 */
#ifndef NT_DETECT_RULES_IMBALANCE_H
#define NT_DETECT_RULES_IMBALANCE_H

#include "detect/model/detector_state.h"

/* Raises lasting imbalance. -ENOMEM. */
int nt_imbalance_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
