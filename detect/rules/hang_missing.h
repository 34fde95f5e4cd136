/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Missing ranks: processes that ended while their job still needs them. */
#ifndef NT_DETECT_RULES_HANG_MISSING_H
#define NT_DETECT_RULES_HANG_MISSING_H

struct nt_detect;
struct nt_frame;

/*
 * Raises ended ranks that others wait for. When every rank has ended, it closes all incidents, and
 * raises the rank whose end ended the job. -ENOMEM.
 */
int nt_hang_missing(struct nt_detect *detect, const struct nt_frame *frame);

#endif
