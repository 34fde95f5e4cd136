/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The members of a JSON object as lines "name  value", with names as in the REST interface. */
#ifndef NT_CLI_LIVE_MEMBERS_H
#define NT_CLI_LIVE_MEMBERS_H

#include <jansson.h>
#include <stdint.h>

#include "common/base/cleanup.h"

/* All zero: none. The texts may have control characters. */
struct nt_member_lines {
	char **text; /* owned */
	uint32_t count, cap;
};

/* Appends them, members in members indented, without those that are null. At most 2000 lines. -ENOMEM. */
NT_MUST_CHECK int nt_member_lines_add(struct nt_member_lines *lines, const json_t *object);
/* Appends one line of text. -ENOMEM. */
NT_MUST_CHECK int nt_member_lines_add_text(struct nt_member_lines *lines, const char *text);
void nt_member_lines_release(struct nt_member_lines *lines);

#endif
