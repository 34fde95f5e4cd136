/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls in the order of the numbers that their library gave them. Gloo's are made by a pool of
 * threads: two gradient buckets are reduced at the same time, and either may return first. In the
 * order of their returns the period of the calls would be lost.
 */
#ifndef NT_AGENT_STEPS_CALL_ORDER_H
#define NT_AGENT_STEPS_CALL_ORDER_H

#include <stdint.h>

#include "agent/steps/step.h"

enum {
	NT_CALL_ORDER_HELD = 3, /* calls held for one with a lower number */
	NT_CALL_ORDER_DUE = NT_CALL_ORDER_HELD + 1,
};

/* Of one communicator: zero at the start. */
struct nt_call_series {
	uint64_t next; /* the number expected; 0: none yet */
	uint32_t misses; /* calls held in vain, in a row */
};

struct nt_ordered_call {
	struct nt_step_call call;
	uint64_t number; /* 0: not numbered */
	uint64_t comm_id, epoch; /* of its communicator */
};

/* Of one rank: zero at the start. */
struct nt_call_order {
	uint32_t held;
	uint64_t last_ns; /* entry of the last call that was due */
	struct nt_ordered_call call[NT_CALL_ORDER_DUE];
};

/*
 * Adds a call. Returns how many are due now, which are in ret_due in their order, with times that
 * do not go back. A number that does not come delays others by NT_CALL_ORDER_HELD calls. Where that
 * is the rule, as not all calls are probed, no call is held any more.
 */
uint32_t nt_call_order_add(struct nt_call_order *order, struct nt_call_series *series,
			   const struct nt_ordered_call *call,
			   struct nt_ordered_call ret_due[NT_CALL_ORDER_DUE]);

/* Calls since the last one were not observed: drops those that are held. */
void nt_call_order_gap(struct nt_call_order *order);

#endif
