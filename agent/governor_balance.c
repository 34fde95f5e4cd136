/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent's own budget: how many events a second it has time for, and which processes give way. */
#include <stdlib.h>

#include "agent/governor_impl.h"
#include "agent/waterfill.h"
#include "common/clock.h"

#define STALE_NS  (5 * NT_SECOND) /* without a sample: it has no events any more */
#define FORGET_NS NT_MINUTE /* without a sample */

enum {
	EVENT_LEAST_NS = 200,
	/*
	 * Each of few events comes with the cost of a wake-up, and one that has the memory of its process read
	 * costs more: that is limited by itself (agent/allowance.h), and must not make all others dearer.
	 */
	EVENT_MOST_NS = 5000,
};

static const double event_share = 0.8; /* of the agent's budget, aimed at */

static bool is_stale(const struct nt_governed *process)
{
	return process->unsampled_ns >= STALE_NS;
}

/* What a process would have of the agent, if it were not limited for the agent's sake: events per second. */
static double claim_of(const struct nt_governed *process)
{
	return is_stale(process) ? 0 : process->events * process->own_permille / NT_GOVERNOR_WHOLE;
}

static void raise_limit(struct nt_governed *process, bool at_once)
{
	double permille = process->event_permille * 1.25;

	process->event_permille =
		at_once || permille > NT_GOVERNOR_WHOLE ? NT_GOVERNOR_WHOLE : permille;
}

/* Processes that ended unnoticed, or that are not watched any more. */
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

/* So many events a second can be handled. */
static double find_most(const struct nt_governor *governor, uint64_t events, uint64_t event_ns)
{
	double cost_ns = events ? (double)event_ns / (double)events : 0;

	if (cost_ns <= 0 || cost_ns > EVENT_MOST_NS)
		cost_ns = EVENT_MOST_NS;
	if (cost_ns < EVENT_LEAST_NS)
		cost_ns = EVENT_LEAST_NS;
	return governor->options.agent_budget * event_share * 1e9 / cost_ns;
}

void nt_governor_balance(struct nt_governor *governor, uint64_t event_ns, uint64_t elapsed_ns)
{
	uint64_t events = governor->events;
	nt_autofree struct nt_claim *claim = NULL;
	size_t count = 0, all;
	double most, total = 0;

	governor->events = 0;
	forget_stale(governor, elapsed_ns);
	all = HASH_COUNT(governor->process);
	if (!elapsed_ns || !all || governor->options.agent_budget <= 0)
		return;
	most = find_most(governor, events, event_ns);
	for (const struct nt_governed *p = governor->process; p; p = p->hh.next)
		total += claim_of(p);
	if (total <= most) {
		for (struct nt_governed *p = governor->process; p; p = p->hh.next)
			raise_limit(p, total <= most / 2);
		return;
	}
	claim = calloc(all, sizeof(*claim));
	if (!claim)
		return; /* limits stay as they are */
	for (struct nt_governed *p = governor->process; p; p = p->hh.next)
		if (!is_stale(p))
			claim[count++] = (struct nt_claim){
				.owner = p->owner,
				.wanted = claim_of(p),
				.data = p,
			};
	if (nt_waterfill(claim, count, most) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		struct nt_governed *process = claim[i].data;

		if (claim[i].granted < claim[i].wanted)
			process->event_permille =
				claim[i].granted / process->events * NT_GOVERNOR_WHOLE;
		else
			raise_limit(process, false);
	}
}
