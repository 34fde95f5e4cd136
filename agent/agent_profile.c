/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiles of ranks on request: a worker samples the stacks, and the rank's next window sends them. */
#include "agent/agent_impl.h"

#include <errno.h>
#include <string.h>

static void send_profile(struct nt_agent *agent, const struct nt_profiler_order *order,
			 struct nt_window_profile *profile)
{
	if (!nt_tracker_profile_taken(agent->tracker, order->task.pid, order->task.start_boot_ns,
				      profile))
		agent->profiles_unsent++;
}

static void on_profile(void *data, const struct nt_profiler_order *order,
		       struct nt_window_profile *profile)
{
	send_profile(data, order, profile);
}

static const char *refusal(int error)
{
	switch (error) {
	case -EAGAIN:
		return "other profiles are being taken on the node";
	case -EDQUOT:
		return "other profiles of the same pod, container or user are being taken";
	case -EACCES:
		return "the process is in quarantine: reading it took too long";
	default:
		return "the agent could not start a worker";
	}
}

void nt_agent_want_profile(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns,
			   uint64_t request, const struct nt_profile_wish *wish)
{
	struct nt_profiler_order order = {
		.request = request,
		.task = {.pid = pid,
			 .start_boot_ns = start_boot_ns,
			 .takes_fuse = agent->config->attach_fuse,
			 .wish = *wish},
	};
	struct nt_window_profile *state;
	int r;

	if (nt_owner_read(pid, &order.owner) < 0)
		order.owner = (struct nt_owner){0};
	if (!nt_tracker_stack_threads(agent->tracker, pid, start_boot_ns, order.task.thread))
		return;
	r = nt_profiler_begin(agent->profiler, &order);
	if (nt_window_profile_state(request, wish, r == 0, r < 0 ? refusal(r) : "", &state) == 0)
		send_profile(agent, &order, state);
}

int nt_agent_open_profiler(struct nt_agent *agent)
{
	const struct nt_profiler_hooks hooks = {
		.done = on_profile, .stalled = nt_agent_stalled, .data = agent};

	return nt_profiler_new(&agent->workers, agent->quarantine, &hooks, &agent->profiler);
}
