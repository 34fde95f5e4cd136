/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a level or another request to agents is for: "node:NAME", "job:KEY" or "rank:KEY/NUMBER". */
#ifndef NT_CONTROL_LEVEL_TARGET_H
#define NT_CONTROL_LEVEL_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_LEVEL_MAX = 3,
	NT_LEVEL_TARGET = 224, /* size of a target's text; with the request it fits a bus key */
};

enum nt_level_kind {
	NT_LEVEL_NODE,
	NT_LEVEL_JOB,
	NT_LEVEL_RANK,
};

struct nt_level_target {
	enum nt_level_kind kind;
	char name[NT_LEVEL_TARGET]; /* of the node, or key of the job */
	uint32_t rank; /* of a rank */
};

/* -EINVAL: the text has none of the three forms, or is too long. */
NT_MUST_CHECK int nt_level_target_parse(const char *text, struct nt_level_target *ret_target);
/* Its text. False: too long. */
bool nt_level_target_format(const struct nt_level_target *target, char ret_text[NT_LEVEL_TARGET]);

#endif
