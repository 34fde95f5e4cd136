/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Jobs that stand still. A hang needs a witness: a rank inside a collective that another has not
 * entered, or all inside and none out. Nobody inside anything is a pause.
 */
#ifndef NT_DETECT_HANG_H
#define NT_DETECT_HANG_H

#include "detect/core.h"

/* Raises what stands still at the end of this frame. -ENOMEM. */
int nt_hang_check(struct nt_detect *detect, const struct nt_frame *frame);
/* Ranks that are gone while others wait on them; closes everything when all are gone. -ENOMEM. */
int nt_hang_missing(struct nt_detect *detect, const struct nt_frame *frame);
/* Remembers what the rank is in the middle of. */
void nt_hang_note(struct nt_detect *detect, struct nt_rank *rank, const struct nt_frame_rank *seen);
/* How long the rank has been in the call that it is in; 0 of who is in none, is gone or not heard of. */
uint64_t nt_hang_waited(const struct nt_detect *detect, const struct nt_rank *rank);

#endif
