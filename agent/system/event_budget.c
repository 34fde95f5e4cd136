/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/system/event_budget.h"

#include "common/system/clock.h"

#define FIRST_PAUSE_NS NT_MINUTE
#define PAUSE_MAX_NS   (30 * NT_MINUTE)
#define SHORTEST_NS    (100 * NT_MILLISECOND) /* less says nothing about a rate */
/* Between slices. Work in phases must not hide between them. */
#define GAP_MAX_NS (30 * NT_SECOND)
/* After so many slices with less than that part of the budget, switches are observed all the time. */
#define CHEAP_SLICES 3
#define CHEAP_PART   0.8

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

static void let_all_go(struct nt_event_budget *budget, uint64_t now_ns)
{
	budget->sheds++;
	budget->pause_ns = budget->pause_ns ? 2 * budget->pause_ns : FIRST_PAUSE_NS;
	if (budget->pause_ns > PAUSE_MAX_NS)
		budget->pause_ns = PAUSE_MAX_NS;
	budget->retry_ns = now_ns + budget->pause_ns;
	budget->state = NT_EVENT_BUDGET_NOTHING;
}

/* A quarter more or less, so that slices do not keep step with the job. Fibonacci hashing. */
static double jitter_of(uint64_t slice)
{
	return 0.75 + 0.5 * (double)(slice * 0x9e3779b97f4a7c15 >> 32) / 4294967296.0;
}

/* After a slice: as long as the mean cost stays within what is allowed. */
static void end_slice(struct nt_event_budget *budget, double allowed, uint64_t now_ns)
{
	const double left = allowed - budget->work_cost, took = budget->cost - budget->work_cost;
	double gap_ns;

	budget->cheap = budget->cost <= CHEAP_PART * allowed ? budget->cheap + 1 : 0;
	if (budget->cheap == CHEAP_SLICES) {
		budget->cheap = 0;
		budget->state = NT_EVENT_BUDGET_NO_INTERRUPTS;
		return;
	}
	gap_ns = left > 0.0 ? (took / left - 1.0) * (double)NT_SECOND : (double)GAP_MAX_NS;
	if (gap_ns < (double)NT_SECOND)
		gap_ns = (double)NT_SECOND;
	budget->slices++;
	gap_ns *= jitter_of(budget->slices);
	if (gap_ns > (double)GAP_MAX_NS)
		gap_ns = (double)GAP_MAX_NS;
	budget->slice_ns = now_ns + (uint64_t)gap_ns;
	budget->share = (double)NT_SECOND / ((double)NT_SECOND + gap_ns);
	budget->state = NT_EVENT_BUDGET_BETWEEN;
}

/* What follows from the cost of the last second. */
static void decide(struct nt_event_budget *budget, double allowed, uint64_t now_ns)
{
	const bool is_over = budget->budget > 0.0 && budget->cost > allowed;

	switch (budget->state) {
	case NT_EVENT_BUDGET_ALL:
		budget->sheds += is_over;
		if (is_over)
			budget->state = NT_EVENT_BUDGET_NO_INTERRUPTS;
		return;
	case NT_EVENT_BUDGET_NO_INTERRUPTS:
		budget->sheds += is_over;
		if (is_over)
			end_slice(budget, allowed, now_ns);
		return;
	case NT_EVENT_BUDGET_SLICE:
		end_slice(budget, allowed, now_ns);
		return;
	case NT_EVENT_BUDGET_BETWEEN:
		budget->work_cost = budget->cost;
		if (is_over)
			let_all_go(budget, now_ns);
		else if (now_ns >= budget->slice_ns)
			budget->state = NT_EVENT_BUDGET_SLICE;
		return;
	case NT_EVENT_BUDGET_NOTHING:
		return;
	}
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
		decide(budget, budget->budget * cores * (double)NT_SECOND, load->now_ns);
	}
	budget->before = *load;
	budget->has_before = true;
	return budget->state;
}

void nt_event_budget_changed(struct nt_event_budget *budget)
{
	budget->has_before = false;
}
