/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that are gone while their job needs them. */
#ifndef NT_DETECT_RULES_HANG_MISSING_H
#define NT_DETECT_RULES_HANG_MISSING_H

struct nt_detect;
struct nt_frame;

/* Ranks that are gone while others wait on them; closes everything when all are gone. -ENOMEM. */
int nt_hang_missing(struct nt_detect *detect, const struct nt_frame *frame);

#endif
