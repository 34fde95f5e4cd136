/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Raises slow communicators. */
#ifndef NT_DETECT_RULES_NETWORK_CHECK_H
#define NT_DETECT_RULES_NETWORK_CHECK_H

struct nt_detect;
struct nt_frame;

/* Raises slow communicators, except those that a named link explains (link_check.h). -ENOMEM. */
int nt_network_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
