/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Water-filling: divides a quantity among owners, and the part of each owner among its claims.
 * Claims below an equal part are granted in full; the remainder is divided among the others.
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

/* Grants at most `most` in all, and reorders the claims. -ENOMEM: nothing is granted or changed. */
NT_MUST_CHECK int nt_waterfill(struct nt_claim *claim, size_t count, double most);

#endif
