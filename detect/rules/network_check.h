/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Raises communicators that are slow. */
#ifndef NT_DETECT_RULES_NETWORK_CHECK_H
#define NT_DETECT_RULES_NETWORK_CHECK_H

struct nt_detect;
struct nt_frame;

/* Raises those that are slow, but for those that a link explains (link_check.h). -ENOMEM. */
int nt_network_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
