/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Notes on what deviates although no rule names a culprit, and why none does. */
#ifndef NT_DETECT_RULES_UNDECIDED_H
#define NT_DETECT_RULES_UNDECIDED_H

#include "detect/model/detector_state.h"

int nt_undecided_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
