/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Hang detection. The evidence of a hang is a rank in a collective that another has not entered, or
 * all ranks in it and none out. No rank in any call is a pause, not a hang.
 */
#ifndef NT_DETECT_RULES_HANG_CHECK_H
#define NT_DETECT_RULES_HANG_CHECK_H

struct nt_detect;
struct nt_frame;

/* Raises hangs and pauses at the end of a frame. -ENOMEM. */
int nt_hang_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
