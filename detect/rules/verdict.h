/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Verdicts: whether a high sum is a finding, and its class. */
#ifndef NT_DETECT_RULES_VERDICT_H
#define NT_DETECT_RULES_VERDICT_H

#include "detect/model/detector_state.h"

/* Judges every rank whose group was judged in this frame and blames the culprits. -ENOMEM. */
int nt_verdict_slow(struct nt_detect *detect, const struct nt_frame *frame);

#endif
