/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Input and output of the governor: hits and CPU time in, plans out to the links of the processes,
 * pauses from there to the tracker.
 */
#include <errno.h>
#include <time.h>

#include "agent/agent_impl.h"
#include "agent/probes/bpf_loader.h"
#include "common/system/clock.h"
#include "common/system/log.h"

enum {
	SAMPLES_MIN = 64, /* processes per tick */
	SAMPLES_PART = 4, /* or this part of all: each is sampled within as many ticks */
	SAMPLES_MAX = 4096,
};

/* ---- from the links to the tracker ---------------------------------------------------------- */

static void on_paused(void *data, uint32_t pid, uint64_t boot_ns)
{
	struct nt_agent *agent = data;

	/* Calls from before the pause must be processed first; later ones would cut a step. */
	if (!nt_agent_read_all_events(agent))
		nt_tracker_lost_of(agent->tracker, pid, 1);
	nt_tracker_paused(agent->tracker, pid, boot_ns);
}

static void on_resumed(void *data, uint32_t pid, uint64_t boot_ns)
{
	struct nt_agent *agent = data;

	nt_tracker_resumed(agent->tracker, pid, boot_ns);
}

static void on_missed(void *data, uint32_t pid)
{
	struct nt_agent *agent = data;

	nt_tracker_lost_of(agent->tracker, pid, 1);
}

/* If such a call is not observed, its time counts as own work. */
static bool communicates(const struct nt_probe *probe)
{
	return probe->role == NT_ROLE_COLLECTIVE || probe->role == NT_ROLE_START ||
	       probe->role == NT_ROLE_WAIT;
}

static uint32_t shed_of(const struct nt_governor_plan *plan)
{
	static const struct {
		enum nt_subject subject;
		uint32_t shed;
	} bits[] = {
		{NT_SUBJECT_LAUNCH, NT_WIRE_SHED_LAUNCHES},
		{NT_SUBJECT_DRIVER, NT_WIRE_SHED_LAUNCHES},
		{NT_SUBJECT_COPY, NT_WIRE_SHED_COPIES},
		{NT_SUBJECT_ALLOC, NT_WIRE_SHED_ALLOCATIONS},
		{NT_SUBJECT_SYNC, NT_WIRE_SHED_SYNCS},
		{NT_SUBJECT_ORDER, NT_WIRE_SHED_ORDER},
		{NT_SUBJECT_GEMM, NT_WIRE_SHED_GEMMS},
	};
	uint32_t shed = plan->hot_count ? NT_WIRE_SHED_FUNCTIONS : 0;

	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (plan->shed >> bits[i].subject & 1)
			shed |= bits[i].shed;
	/* A hot launch is not counted, for any subject. */
	for (uint16_t row = 0; plan->hot_count && row < nt_probe_rows(); row++) {
		if (!nt_governor_is_hot(plan, row))
			continue;
		if (communicates(nt_probe_row(row)))
			shed |= NT_WIRE_SHED_COMMUNICATION;
		for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
			if (nt_probe_row(row)->subject == bits[i].subject)
				shed |= bits[i].shed;
	}
	return shed;
}

static void obey(struct nt_agent *agent, uint32_t pid)
{
	const struct nt_governor_plan *plan = nt_governor_plan(agent->governor, pid);

	if (!plan)
		return;
	nt_agent_govern_rdma(agent, pid, plan);
	if (!nt_bpf_loader_has_own_links(nt_attach_loader(agent->attach))) {
		if (plan->governed && !agent->warned_budget)
			(void)nt_warn(
				0,
				"the probes exceed the budget of process %u: this kernel cannot "
				"detach a single process (Linux 6.10 or later can)",
				pid);
		agent->warned_budget = agent->warned_budget || plan->governed;
		return;
	}
	nt_own_links_plan(agent->own_links, pid, plan);
	nt_debug("process %u: %u permille of its calls are observed, %u functions not", pid,
		 plan->permille, plan->hot_count);
}

/* At each sample: a process that was dropped in between and is watched again has no shed bits. */
static void report_shed(struct nt_agent *agent, uint32_t pid)
{
	const struct nt_governor_plan *plan = nt_governor_plan(agent->governor, pid);

	if (plan && nt_bpf_loader_has_own_links(nt_attach_loader(agent->attach)))
		nt_tracker_shed(agent->tracker, pid, shed_of(plan));
}

static void on_looked(void *data, uint32_t pid, uint64_t look_ns)
{
	struct nt_agent *agent = data;
	struct nt_process_counters counters;
	bool counts;

	if (!nt_agent_read_all_events(agent))
		return; /* few of its calls were read, which proves nothing: it stays hot */
	counts = nt_attach_counters(agent->attach, pid, &counters) && !counters.ended;
	if (nt_governor_looked(agent->governor, pid, look_ns, counts ? &counters : NULL))
		obey(agent, pid);
	report_shed(agent, pid);
}

/* ---- samples -------------------------------------------------------------------------------- */

static bool read_cpu(uint32_t pid, uint64_t *ret_ns)
{
	struct timespec now;
	clockid_t clock;

	if (clock_getcpuclockid((pid_t)pid, &clock) != 0 || clock_gettime(clock, &now) < 0)
		return false;
	*ret_ns = (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
	return true;
}

static void sample(struct nt_agent *agent, uint32_t pid)
{
	struct nt_process_counters counters;
	struct nt_governor_sample sample = {0};
	struct nt_tracker_traits traits = {0};
	bool counts = nt_attach_counters(agent->attach, pid, &counters) && !counters.ended;

	/* A process without calls costs nothing. */
	if (!counts && !nt_governor_plan(agent->governor, pid))
		return;
	if (!read_cpu(pid, &sample.cpu_ns))
		return;
	nt_governor_meet(agent->governor, pid);
	(void)nt_tracker_traits(agent->tracker, pid, &traits);
	sample.owner = traits.owner;
	sample.is_rank = traits.is_rank;
	sample.measured = traits.measured;
	sample.whole_ns = traits.whole_ns;
	sample.now_ns = nt_clock_boot_ns();
	sample.observed_ns = nt_own_links_observed_ns(agent->own_links, pid, sample.now_ns);
	sample.counters = counts ? &counters : NULL;
	if (nt_governor_sample(agent->governor, pid, &sample))
		obey(agent, pid);
	report_shed(agent, pid);
}

void nt_agent_govern(struct nt_agent *agent, uint64_t boot_ns, uint64_t real_ns)
{
	static uint32_t pid[SAMPLES_MAX];
	struct nt_own_links_stats stats;
	size_t n;

	nt_own_links_settle(agent->own_links);
	nt_own_links_stats(agent->own_links, &stats);
	n = stats.processes / SAMPLES_PART;
	if (n < SAMPLES_MIN)
		n = SAMPLES_MIN;
	n = nt_own_links_turn(agent->own_links, pid, n < SAMPLES_MAX ? n : SAMPLES_MAX);
	for (size_t i = 0; agent->config->budget > 0 && i < n; i++)
		sample(agent, pid[i]);
	nt_own_links_tick(agent->own_links, boot_ns, real_ns);
}

void nt_agent_budget(struct nt_agent *agent, uint64_t boot_ns)
{
	if (agent->balanced_ns)
		nt_governor_budget(agent->governor, agent->event_cpu_ns - agent->event_cpu_seen_ns,
				   boot_ns - agent->balanced_ns);
	agent->event_cpu_seen_ns = agent->event_cpu_ns;
	agent->balanced_ns = boot_ns;
}

/* ---- opening -------------------------------------------------------------------------------- */

int nt_agent_open_governor(struct nt_agent *agent)
{
	struct nt_bpf_loader_costs costs;
	struct nt_governor_options options = {
		.budget = agent->config->budget / 100,
		.agent_budget = agent->config->agent_budget / 100,
	};
	const struct nt_own_links_hooks hooks = {
		.paused = on_paused,
		.resumed = on_resumed,
		.missed = on_missed,
		.looked = on_looked,
		.data = agent,
	};
	int r;

	nt_bpf_loader_costs(nt_attach_loader(agent->attach), &costs);
	options.count_ns = costs.count_ns;
	options.entry_ns = costs.entry_ns;
	options.pair_ns = costs.pair_ns;
	r = nt_governor_new(&options, &agent->governor);
	r = r ? r : nt_linker_new(nt_attach_loader(agent->attach), &agent->linker);
	r = r ? r : nt_own_links_new(agent->attach, agent->linker, &hooks, &agent->own_links);
	if (r < 0)
		return nt_err(r, "start");
	nt_debug("a call costs %llu ns counted, %llu ns with an event, %llu ns with its return",
		 (unsigned long long)costs.count_ns, (unsigned long long)costs.entry_ns,
		 (unsigned long long)costs.pair_ns);
	return 0;
}
