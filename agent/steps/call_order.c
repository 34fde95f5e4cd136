/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/call_order.h"

#include <stdbool.h>

#define HELD_NS 10000000000U /* then its communicator is taken to be gone */

enum {
	MISSES = 3, /* in a row: numbers are skipped, not late */
	NONE = NT_CALL_ORDER_DUE,
};

/* The held call of this communicator with the lowest number, or NONE. */
static uint32_t find_lowest(const struct nt_call_order *order, uint64_t comm)
{
	uint32_t found = NONE;

	for (uint32_t i = 0; i < order->held; i++)
		if (order->call[i].call.comm == comm &&
		    (found == NONE || order->call[i].number < order->call[found].number))
			found = i;
	return found;
}

/* Whether a call with this number waits for the one that is expected. */
static bool waits(const struct nt_call_order *order, const struct nt_call_series *series,
		  uint64_t number)
{
	return series->next && series->misses < MISSES && number > series->next &&
	       number - series->next <= NT_CALL_ORDER_HELD && order->held <= NT_CALL_ORDER_HELD;
}

static void take(struct nt_call_order *order, struct nt_call_series *series, uint32_t at,
		 struct nt_ordered_call *ret_call)
{
	struct nt_step_call *call = &ret_call->call;
	uint64_t number = order->call[at].number;

	*ret_call = order->call[at];
	order->call[at] = order->call[--order->held];
	if (call->entry_ns < order->last_ns)
		call->entry_ns = order->last_ns;
	if (call->ret_ns && call->ret_ns < call->entry_ns)
		call->ret_ns = call->entry_ns;
	order->last_ns = call->entry_ns;
	if (number == series->next)
		series->misses = 0;
	else if (number > series->next && number - series->next <= NT_CALL_ORDER_HELD)
		series->misses += series->misses < MISSES;
	if (number >= series->next)
		series->next = number + 1;
}

static void drop_old(struct nt_call_order *order, uint64_t now_ns)
{
	for (uint32_t i = order->held; i-- > 0;)
		if (now_ns > order->call[i].call.entry_ns &&
		    now_ns - order->call[i].call.entry_ns > HELD_NS)
			order->call[i] = order->call[--order->held];
}

uint32_t nt_call_order_add(struct nt_call_order *order, struct nt_call_series *series,
			   const struct nt_ordered_call *call,
			   struct nt_ordered_call ret_due[NT_CALL_ORDER_DUE])
{
	uint32_t due = 0, at;

	drop_old(order, call->call.entry_ns);
	order->call[order->held++] = *call;
	for (at = find_lowest(order, call->call.comm); at != NONE;
	     at = find_lowest(order, call->call.comm)) {
		if (waits(order, series, order->call[at].number))
			break;
		take(order, series, at, &ret_due[due++]);
	}
	return due;
}

void nt_call_order_gap(struct nt_call_order *order)
{
	order->held = 0;
	order->last_ns = 0;
}
