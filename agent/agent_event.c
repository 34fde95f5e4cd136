/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads kernel events and passes each to the parts of the agent that it concerns. */
#include "agent/agent_impl.h"

#include <errno.h>
#include <time.h>

#include "common/system/clock.h"
#include "common/system/log.h"

#define REREAD_NS (100 * NT_MILLISECOND) /* per turn: reading all events before something */

enum {
	MEMORY_EVENTS = 16, /* kernel events, between two memory checks */
};

/*
 * Nothing is kept of processes that discovery has not reported, such as children that call once and
 * end: their end would not be reported either.
 */
static void hit(struct nt_agent *agent, const struct nt_event_call *call)
{
	const struct nt_probe *probe = nt_probe_row(call->h.row);

	/* A call that frees memory and waits has two records, which are one hit. */
	if (probe && probe->memory != NT_MEMORY_NONE && !(call->h.flags & NT_CALL_MEMORY))
		return;
	if (!nt_governor_hit(agent->governor, call->h.pid, call->h.row) &&
	    agent->config->budget > 0 && nt_own_links_has(agent->own_links, call->h.pid))
		nt_governor_meet(agent->governor, call->h.pid);
}

static void on_event(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	struct nt_agent *agent = data;
	enum nt_own_links_verdict verdict = nt_own_links_judge(agent->own_links, call);
	uint64_t event_ns = call->h.flags & NT_CALL_RETURNED ? call->ret_ns : call->h.entry_ns;

	if (event_ns > agent->event_ns)
		agent->event_ns = event_ns;
	if (verdict != NT_OWN_LINKS_DROP)
		hit(agent, call);
	if (verdict == NT_OWN_LINKS_TAKE)
		nt_tracker_event(agent->tracker, call, id);
	if (++agent->taken % MEMORY_EVENTS == 0)
		nt_agent_keep_memory(agent);
	nt_agent_charge(agent, call->h.pid);
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

void nt_agent_read_events(struct nt_agent *agent)
{
	uint64_t start_ns = thread_cpu_ns(), now_ns = nt_clock_boot_ns();
	int r;

	agent->event_since_ns = nt_clock_mono_ns();
	r = nt_attach_poll(agent->attach, on_event, agent);
	nt_agent_read_details(agent);
	agent->event_cpu_ns += thread_cpu_ns() - start_ns;
	agent->has_unread = r > 0;
	if (agent->has_unread && now_ns > agent->event_ns)
		now_ns = agent->event_ns; /* the ring is ordered by time */
	if (now_ns > agent->read_until_ns)
		agent->read_until_ns = now_ns;
	if (r < 0 && r != -EINTR && r != -EAGAIN)
		(void)nt_warn(r, "read the events of the kernel");
}

bool nt_agent_read_all_within(struct nt_agent *agent, uint64_t *spent_ns, uint64_t max_ns)
{
	do {
		uint64_t start_ns = nt_clock_mono_ns();

		if (*spent_ns >= max_ns)
			return false;
		nt_agent_read_events(agent);
		*spent_ns += nt_clock_mono_ns() - start_ns;
	} while (agent->has_unread);
	return true;
}

bool nt_agent_read_all_events(struct nt_agent *agent)
{
	return nt_agent_read_all_within(agent, &agent->reread_ns, REREAD_NS);
}
