/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Single calls of ranks at level L1 or above: the rates of their processes, limits of the kernel
 * side within their budgets, and what it has sampled.
 */
#include "agent/agent_impl.h"

#include <errno.h>

#include "agent/probes/bpf_loader.h"
#include "agent/tracker/detail_log.h"
#include "common/system/clock.h"
#include "common/system/log.h"

/* ---- limits --------------------------------------------------------------------------------- */

/* Calls a second that the kernel side may sample of a process with this rate. */
static double sampled_of(uint32_t rate)
{
	double sum = 0;

	for (int class = 0; class < NT_DETAIL_CLASSES; class ++)
		sum += nt_detail_log_kernel_most(rate, class);
	return sum * 1e9 / (double)(1ULL << NT_DETAIL_SHIFT);
}

/* Without a budget for any, calls are not even looked at. */
static void limit(struct nt_agent *agent, struct nt_detailed *process)
{
	struct nt_detail_limits limits = {0};
	bool is_wanted = process->rate > 0 && process->granted > 0;
	int r;

	for (int class = 0; class < NT_DETAIL_CLASSES; class ++)
		limits.most[class] =
			nt_detail_log_kernel_most(process->rate * process->granted, class);
	if (!is_wanted && !process->is_limited)
		return;
	r = nt_attach_set_detail(agent->attach, process->pid, is_wanted ? &limits : NULL);
	if (r < 0 && r != -ESRCH)
		agent->detail_failures++;
	process->is_limited = r == 0 && is_wanted;
}

void nt_agent_count_details(struct nt_agent *agent, uint32_t pid)
{
	struct nt_detail_rates rates;

	if (!nt_detail_set_find(agent->detail_set, pid))
		return;
	if (nt_attach_detail_rates(agent->attach, pid, &rates))
		nt_tracker_detail_rates(agent->tracker, pid, &rates);
	nt_agent_count_system_events(agent, pid);
}

static void turn_process(struct nt_agent *agent, struct nt_detailed *process)
{
	struct nt_bpf_loader_costs costs;

	nt_bpf_loader_costs(nt_attach_loader(agent->attach), &costs);
	process->granted =
		nt_governor_detail_share(agent->governor, process->pid, sampled_of(process->rate),
					 costs.detail_look_ns, costs.detail_ns);
	nt_tracker_set_detail_rate(agent->tracker, process->pid, process->rate, process->granted);
	nt_agent_count_details(agent, process->pid);
	limit(agent, process);
}

void nt_agent_turn_details(struct nt_agent *agent)
{
	uint32_t limited = 0;

	agent->has_new_levels = false;
	nt_detail_set_divide(agent->detail_set);
	for (size_t i = 0; i < nt_detail_set_count(agent->detail_set); i++) {
		struct nt_detailed *process = nt_detail_set_at(agent->detail_set, i);

		turn_process(agent, process);
		limited += process->is_limited;
	}
	nt_attach_set_detailed(agent->attach, limited);
}

/* ---- levels --------------------------------------------------------------------------------- */

static void forget(struct nt_agent *agent, const struct nt_detailed *process)
{
	if (process->is_limited)
		(void)!nt_attach_set_detail(agent->attach, process->pid, NULL);
	(void)nt_detail_set_remove(agent->detail_set, process->pid, process->start_boot_ns);
}

int nt_agent_set_level(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns, uint32_t level)
{
	struct nt_tracker_traits traits = {0};
	struct nt_detailed *process;
	int r;

	/* What was sampled at the former level is still its. */
	nt_agent_read_details(agent);
	nt_agent_count_details(agent, pid);
	r = nt_tracker_set_level(agent->tracker, pid, start_boot_ns, level);
	if (r < 0)
		return r;
	(void)nt_tracker_traits(agent->tracker, pid, &traits);
	process = nt_detail_set_find(agent->detail_set, pid);
	if (level)
		r = nt_detail_set_put(agent->detail_set, pid, start_boot_ns, level, traits.owner);
	else if (process && process->start_boot_ns == start_boot_ns)
		forget(agent, process);
	if (r < 0)
		(void)!nt_tracker_set_level(agent->tracker, pid, start_boot_ns, 0);
	/* Of all that change together, the rates are divided once. */
	agent->has_new_levels = true;
	return r;
}

void nt_agent_forget_level(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns)
{
	const struct nt_detailed *process = nt_detail_set_find(agent->detail_set, pid);

	if (process && process->start_boot_ns == start_boot_ns)
		forget(agent, process);
}

/* ---- events --------------------------------------------------------------------------------- */

void nt_agent_detail(void *data, const struct nt_event_detail *detail)
{
	struct nt_agent *agent = data;
	uint64_t now_ns;

	nt_tracker_detail_event(agent->tracker, detail);
	now_ns = nt_clock_mono_ns();
	nt_governor_spend(agent->governor, detail->h.pid, now_ns - agent->event_since_ns);
	agent->event_since_ns = now_ns;
}

void nt_agent_read_details(struct nt_agent *agent)
{
	int r;

	if (!nt_detail_set_count(agent->detail_set))
		return;
	agent->event_since_ns = nt_clock_mono_ns();
	r = nt_attach_poll_details(agent->attach);
	if (r < 0 && r != -EINTR)
		(void)nt_warn(r, "read the sampled calls of the kernel");
}

int nt_agent_open_details(struct nt_agent *agent)
{
	const struct nt_detail_set_limits limits = {
		.rank = agent->config->detail_rate,
		.owner = agent->config->detail_owner_rate,
		.node = agent->config->detail_node_rate,
	};

	return nt_detail_set_new(&limits, &agent->detail_set);
}
