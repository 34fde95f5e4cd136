/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Shares a quantity out among owners, and the part of each owner among its claims, by water-filling:
 * who wants less than an equal part has all of it, and what that leaves is shared out among the others.
 */
#ifndef NT_AGENT_GOVERNOR_WATERFILL_H
#define NT_AGENT_GOVERNOR_WATERFILL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_claim {
	uint64_t owner;
	double wanted; /* not negative */
	double granted;
	void *data; /* the caller's */
};

/* Grants at most `most` in all. The claims change their order. -ENOMEM: nothing is granted or changed. */
NT_MUST_CHECK int nt_waterfill(struct nt_claim *claim, size_t count, double most);

#endif
