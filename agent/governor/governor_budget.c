/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The agent's own budget: how many events a second it can handle, and which processes are limited.
 */
#include <stdlib.h>

#include "agent/governor/governor_impl.h"
#include "agent/governor/waterfill.h"
#include "common/system/clock.h"

#define STALE_NS  (5 * NT_SECOND) /* without a sample: counts as without events */
#define FORGET_NS NT_MINUTE /* without a sample */

enum {
	EVENT_LEAST_NS = 200,
	EVENT_MOST_NS = 5000, /* cap: includes a wake-up while events are few */
	/* cap with reads of memory; longer times are preemption */
	EVENT_DEAR_NS = 50000,
	/* of a process, whose cost is not taken: its communicators are read from its memory */
	FIRST_BALANCES = 2,
};

/*
 * The target, as part of the agent's budget. The rest is slack. A process that is granted at least
 * this part of its claim is not limited, since slices would cost more than they save.
 */
static const double event_share = 0.8;

static bool is_stale(const struct nt_governed *process)
{
	return process->unsampled_ns >= STALE_NS;
}

static double within(double ns, double most)
{
	if (ns <= 0 || ns > most)
		return most;
	return ns < EVENT_LEAST_NS ? EVENT_LEAST_NS : ns;
}

/*
 * The cost of its events to the agent, in ns per second observed. event_ns: mean of all processes.
 */
static double cost_of(const struct nt_governed *process, double event_ns)
{
	return process->events *
	       (process->event_ns > 0 ? within(process->event_ns, EVENT_DEAR_NS) : event_ns);
}

/* The agent's time, in ns per second, that a process would take without the agent's limit. */
static double claim_of(const struct nt_governed *process, double event_ns)
{
	if (is_stale(process))
		return 0;
	return cost_of(process, event_ns) * process->own_permille / NT_GOVERNOR_WHOLE;
}

void nt_governor_spend(struct nt_governor *governor, uint32_t pid, uint64_t ns)
{
	struct nt_governed *process = NULL;

	HASH_FIND(hh, governor->process, &pid, sizeof(pid), process);
	if (!process)
		return;
	process->spent++;
	process->spent_ns += ns < EVENT_DEAR_NS ? ns : EVENT_DEAR_NS;
}

/* Updates the cost per event of each process: reads of one's memory do not add to others. */
static void take_costs(struct nt_governor *governor)
{
	for (struct nt_governed *p = governor->process; p; p = p->hh.next) {
		double now_ns = p->spent ? (double)p->spent_ns / (double)p->spent : p->event_ns;

		if (p->balances < FIRST_BALANCES)
			p->balances++;
		else
			p->event_ns = p->event_ns > 0 ? (p->event_ns + now_ns) / 2 : now_ns;
		p->spent = p->spent_ns = 0;
	}
}

static void raise_limit(struct nt_governed *process, bool at_once)
{
	double permille = process->event_permille * 1.25;

	process->event_permille =
		at_once || permille > NT_GOVERNOR_WHOLE ? NT_GOVERNOR_WHOLE : permille;
}

/* Removes processes that ended unnoticed or are not sampled any more. */
static void forget_stale(struct nt_governor *governor, uint64_t elapsed_ns)
{
	struct nt_governed *process, *next;

	HASH_ITER(hh, governor->process, process, next)
	{
		process->unsampled_ns += elapsed_ns;
		if (process->unsampled_ns >= FORGET_NS)
			nt_governor_drop(governor, process);
	}
}

void nt_governor_budget(struct nt_governor *governor, uint64_t event_ns, uint64_t elapsed_ns)
{
	uint64_t events = governor->events;
	nt_autofree struct nt_claim *claim = NULL;
	size_t count = 0, all;
	double most = governor->options.agent_budget * event_share * 1e9, total = 0;
	double cost_ns = within(events ? (double)event_ns / (double)events : 0, EVENT_MOST_NS);

	governor->events = 0;
	take_costs(governor);
	forget_stale(governor, elapsed_ns);
	all = HASH_COUNT(governor->process);
	if (!elapsed_ns || !all || governor->options.agent_budget <= 0)
		return;
	for (const struct nt_governed *p = governor->process; p; p = p->hh.next)
		total += claim_of(p, cost_ns);
	if (total <= most) {
		for (struct nt_governed *p = governor->process; p; p = p->hh.next)
			raise_limit(p, total <= most / 2);
		return;
	}
	claim = calloc(all, sizeof(*claim));
	if (!claim)
		return; /* limits stay unchanged */
	for (struct nt_governed *p = governor->process; p; p = p->hh.next)
		if (!is_stale(p))
			claim[count++] = (struct nt_claim){
				.owner = p->owner,
				.wanted = claim_of(p, cost_ns),
				.data = p,
			};
	if (nt_waterfill(claim, count, most) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		struct nt_governed *process = claim[i].data;

		if (claim[i].granted < claim[i].wanted * event_share)
			process->event_permille =
				claim[i].granted / cost_of(process, cost_ns) * NT_GOVERNOR_WHOLE;
		else
			raise_limit(process, false);
	}
}
