/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Two populations of one role since the start, without evidence which one is normal: one incident
 * that accuses no rank. They are counted in peer_deviation.c.
 */
#ifndef NT_DETECT_RULES_TWO_POPULATIONS_H
#define NT_DETECT_RULES_TWO_POPULATIONS_H

#include "detect/model/detector_state.h"

/* Raises what lasts. -ENOMEM. */
int nt_two_populations_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
