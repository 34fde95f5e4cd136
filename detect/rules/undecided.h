/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Notes on what deviates although no rule names a culprit, and why none does. */
#ifndef NT_DETECT_RULES_UNDECIDED_H
#define NT_DETECT_RULES_UNDECIDED_H

#include "detect/model/detector_state.h"

int nt_undecided_check(struct nt_detect *detect, const struct nt_frame *frame);
/* At the end of a recording: a rank that costs much in some steps, though too few for a verdict. */
int nt_undecided_remark(struct nt_detect *detect);

#endif
