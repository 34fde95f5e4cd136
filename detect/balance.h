/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Uneven work: a role that has more to do than the others, or another rank that is slowest each
 * time. Information, never an accusation.
 */
#ifndef NT_DETECT_BALANCE_H
#define NT_DETECT_BALANCE_H

#include "detect/core.h"

/* Raises imbalance where it lasts. -ENOMEM. */
int nt_balance_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
