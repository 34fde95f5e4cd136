/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether the tracepoints of system events stay attached: what they cost the node is kept within a
 * share of the processor time that the node uses, or of one core if it uses less. The cost is the
 * number of hits × the cost of a hit. It has no clock and makes no system call.
 *
 * Over the budget, interrupts are let go first. Then context switches and uses of sockets are
 * observed in slices of a second, as rarely as keeps the mean within the budget. If the rest alone
 * exceeds it, all is let go, and tried again after a minute, and then after twice as long each time,
 * up to half an hour.
 */
#ifndef NT_AGENT_SYSTEM_EVENT_BUDGET_H
#define NT_AGENT_SYSTEM_EVENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Totals of the node at one instant, while something is attached. */
struct nt_event_budget_load {
	uint64_t now_ns; /* any clock that does not go back */
	uint64_t switches, sides, hits; /* as struct nt_host_cpu, of all CPUs */
	double busy_cores; /* processors at work, mean of some seconds */
};

/* ns a hit, measured on this host. */
struct nt_event_budget_costs {
	uint64_t switch_ns; /* a context switch without an observed thread */
	uint64_t side_ns; /* the same for each observed thread in it, in addition */
	uint64_t hit_ns; /* any other tracepoint */
};

enum nt_event_budget_state {
	NT_EVENT_BUDGET_ALL, /* as it begins */
	NT_EVENT_BUDGET_NO_INTERRUPTS,
	NT_EVENT_BUDGET_SLICE, /* the same, for a second */
	NT_EVENT_BUDGET_BETWEEN, /* slices: without switches and uses of sockets */
	NT_EVENT_BUDGET_NOTHING,
};

struct nt_event_budget {
	double budget; /* 0.01 is 1 %; 0: no limit */
	struct nt_event_budget_costs costs;
	enum nt_event_budget_state state;
	struct nt_event_budget_load before;
	bool has_before;
	double cost; /* of the last second, ns a second */
	double work_cost; /* the same, of the last second between slices */
	uint64_t slice_ns; /* when the next slice begins */
	uint32_t cheap; /* slices in a row that the budget would have paid for all the time */
	uint64_t retry_ns, pause_ns; /* when it is tried again; the last pause, 0: none yet */
	uint64_t sheds; /* times that something was let go */
	uint64_t slices; /* so far */
	double share; /* of the time that the last slice was, with what follows it */
};

/*
 * Takes the load once a second. A change of the state is the caller's to carry out; it must then
 * call nt_event_budget_changed().
 */
enum nt_event_budget_state nt_event_budget_take(struct nt_event_budget *budget,
						const struct nt_event_budget_load *load);
/*
 * The counters before do not go on: something was attached or detached. Not to be called for slices,
 * which begin and end at a reading.
 */
void nt_event_budget_changed(struct nt_event_budget *budget);

#endif
