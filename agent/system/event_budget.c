/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/system/event_budget.h"

#include "common/system/clock.h"

#define FIRST_PAUSE_NS NT_MINUTE
#define PAUSE_MAX_NS   (30 * NT_MINUTE)
#define SHORTEST_NS    (100 * NT_MILLISECOND) /* less says nothing about a rate */

static double since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0.0;
}

static double cost_of(const struct nt_event_budget *budget, const struct nt_event_budget_load *load)
{
	const struct nt_event_budget_load *before = &budget->before;
	const struct nt_event_budget_costs *costs = &budget->costs;

	return since(load->switches, before->switches) * (double)costs->switch_ns +
	       since(load->sides, before->sides) * (double)costs->side_ns +
	       since(load->hits, before->hits) * (double)costs->hit_ns;
}

static void let_go(struct nt_event_budget *budget, uint64_t now_ns)
{
	budget->sheds++;
	if (budget->state == NT_EVENT_BUDGET_ALL) {
		budget->state = NT_EVENT_BUDGET_NO_INTERRUPTS;
		return;
	}
	budget->pause_ns = budget->pause_ns ? 2 * budget->pause_ns : FIRST_PAUSE_NS;
	if (budget->pause_ns > PAUSE_MAX_NS)
		budget->pause_ns = PAUSE_MAX_NS;
	budget->retry_ns = now_ns + budget->pause_ns;
	budget->state = NT_EVENT_BUDGET_NOTHING;
}

enum nt_event_budget_state nt_event_budget_take(struct nt_event_budget *budget,
						const struct nt_event_budget_load *load)
{
	const double cores = load->busy_cores > 1.0 ? load->busy_cores : 1.0;

	if (budget->state == NT_EVENT_BUDGET_NOTHING) {
		budget->cost = 0.0;
		/* With interrupts the next excess would be one of two. */
		if (load->now_ns >= budget->retry_ns)
			budget->state = NT_EVENT_BUDGET_NO_INTERRUPTS;
		return budget->state;
	}
	if (budget->has_before && load->now_ns < budget->before.now_ns + SHORTEST_NS)
		return budget->state;
	if (budget->has_before) {
		budget->cost = cost_of(budget, load) * (double)NT_SECOND /
			       since(load->now_ns, budget->before.now_ns);
		if (budget->budget > 0.0 &&
		    budget->cost > budget->budget * cores * (double)NT_SECOND)
			let_go(budget, load->now_ns);
	}
	budget->before = *load;
	budget->has_before = true;
	return budget->state;
}

void nt_event_budget_changed(struct nt_event_budget *budget)
{
	budget->has_before = false;
}
