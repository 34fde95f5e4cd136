/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Jobs that stand still. A hang needs a witness: a rank inside a collective that another has not
 * entered, or all inside and none out. Nobody inside anything is a pause.
 */
#ifndef NT_DETECT_RULES_HANG_CHECK_H
#define NT_DETECT_RULES_HANG_CHECK_H

struct nt_detect;
struct nt_frame;

/* Raises what stands still at the end of this frame. -ENOMEM. */
int nt_hang_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
