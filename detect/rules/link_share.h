/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The link that slow communicators share, and the others do not touch. */
#ifndef NT_DETECT_RULES_LINK_SHARE_H
#define NT_DETECT_RULES_LINK_SHARE_H

#include <stdbool.h>

struct nt_culprit_link;
struct nt_detect;

/* What slow communicators share, at least two: one node's NIC, or else one path. False: not clear. */
bool nt_detect_link_share(struct nt_detect *detect, struct nt_culprit_link *ret_link);

#endif
