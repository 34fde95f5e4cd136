/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The period of a sequence of calls: which of them form one step, if the trace does not state it.
 */
#ifndef NT_CLI_READERS_PERIOD_H
#define NT_CLI_READERS_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_period {
	uint32_t calls; /* of a step, at least 1 */
	/* Four of five calls are of one kind, and the period repeats few times: it may be several steps. */
	bool doubtful;
	bool has_anchor;
	uint32_t anchor; /* a kind of call: a step ends with one, or with a run of them */
	uint32_t anchor_run; /* shorter runs end no step; 0: each call of the anchor ends one */
};

/*
 * Calls of `kinds` kinds in program order. shape[kind] has the bytes of a call in its upper half, at
 * most UINT32_MAX, 0: unknown. Of several anchors it is the one of lowest shape[kind]: an order equal on all
 * ranks, whose communicators have different names. idle_ns: before each call the time in which no other one
 * runs, or NULL. Without a period each call is a step. -ENOMEM.
 */
NT_MUST_CHECK int nt_period_find(const uint32_t *call, size_t calls, const uint64_t *idle_ns,
				 const uint64_t *shape, uint32_t kinds,
				 struct nt_period *ret_period);
/* Whether the i-th call ends a step: it is the anchor, or the last one of a run of it. */
bool nt_period_ends(const struct nt_period *period, const uint32_t *call, size_t calls, size_t i);

#endif
