/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/level_target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/parse_number.h"

static const char *const prefixes[] = {
	[NT_LEVEL_NODE] = "node:",
	[NT_LEVEL_JOB] = "job:",
	[NT_LEVEL_RANK] = "rank:",
};

/* A key may contain slashes itself: the last one precedes the number. */
static int split_rank(struct nt_level_target *target)
{
	char *slash = strrchr(target->name, '/');

	if (!slash || nt_parse_u32(slash + 1, strlen(slash + 1), 0, UINT32_MAX, &target->rank) < 0)
		return -EINVAL;
	*slash = '\0';
	return 0;
}

int nt_level_target_parse(const char *text, struct nt_level_target *ret_target)
{
	for (int kind = NT_LEVEL_NODE; kind <= NT_LEVEL_RANK; kind++) {
		const size_t prefix = strlen(prefixes[kind]), size = strlen(text);
		struct nt_level_target target = {.kind = kind};

		if (strncmp(text, prefixes[kind], prefix) != 0)
			continue;
		if (size >= NT_LEVEL_TARGET)
			return -EINVAL;
		memcpy(target.name, text + prefix, size - prefix + 1);
		if (kind == NT_LEVEL_RANK && split_rank(&target) < 0)
			return -EINVAL;
		if (!*target.name)
			return -EINVAL;
		*ret_target = target;
		return 0;
	}
	return -EINVAL;
}

bool nt_level_target_format(const struct nt_level_target *target, char ret_text[NT_LEVEL_TARGET])
{
	char number[16] = "";
	int written;

	if (target->kind == NT_LEVEL_RANK)
		(void)snprintf(number, sizeof(number), "/%u", target->rank);
	written = snprintf(ret_text, NT_LEVEL_TARGET, "%s%s%s", prefixes[target->kind],
			   target->name, number);
	return written > 0 && written < NT_LEVEL_TARGET;
}
