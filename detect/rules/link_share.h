/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the link that slow communicators share and the others do not use. */
#ifndef NT_DETECT_RULES_LINK_SHARE_H
#define NT_DETECT_RULES_LINK_SHARE_H

#include <stdbool.h>

struct nt_culprit_link;
struct nt_detect;

/* The NIC, or else the path, that at least two slow communicators share. False: ambiguous. */
bool nt_detect_link_share(struct nt_detect *detect, struct nt_culprit_link *ret_link);

#endif
