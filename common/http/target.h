/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parser of HTTP request targets, split and decoded: "/api/v1/jobs/a%2Fb?limit=3". */
#ifndef NT_COMMON_HTTP_TARGET_H
#define NT_COMMON_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/cleanup.h"

enum {
	NT_TARGET_MAX_BYTES = 4096,
	NT_TARGET_MAX_SEGMENTS = 16,
	NT_TARGET_MAX_QUERY = 16,
};

struct nt_target {
	const char *segment[NT_TARGET_MAX_SEGMENTS]; /* "api", "v1", "jobs", "a/b" */
	size_t segments;
	struct {
		const char *name, *value;
	} query[NT_TARGET_MAX_QUERY];
	size_t queries;
	char text[NT_TARGET_MAX_BYTES + 2 + NT_TARGET_MAX_QUERY]; /* storage of the above */
};

/*
 * -ENAMETOOLONG. -E2BIG: more segments or parameters than the caps. -EEXIST: a repeated parameter.
 * -EADDRNOTAVAIL: an impossible host. -EINVAL: a malformed target, such as broken percent signs,
 * control characters, or text that is not UTF-8.
 */
NT_MUST_CHECK int nt_target_parse(const char *text, size_t len, struct nt_target *ret_target);

/* Whether the text has the form "HOST" or "HOST:PORT". A user name in front is rejected. */
bool nt_target_host_is_sound(const char *text, size_t len);

/* The value of a parameter, or NULL. */
const char *nt_target_query(const struct nt_target *target, const char *name);

#endif
