/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System events: opened with the probes, kept within the budget, read with the other counters. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_impl.h"
#include "common/base/ascii.h"
#include "common/system/clock.h"
#include "common/system/log.h"

enum {
	RING_BYTES = 1 << 20,
	EVENTS_MAX = 1000, /* of one process and second */
};

/* ---- single events --------------------------------------------------------------------------- */

/* How the events of docs/detail.md come about. */
static const struct {
	const char *call;
	enum nt_detail_kind kind;
	bool lasts; /* its value is its duration */
} event_calls[NT_HOST_EVENT_END] = {
	[NT_HOST_EVENT_OUT] = {"sched_out", NT_DETAIL_KIND_SCHED, true},
	[NT_HOST_EVENT_IN] = {"sched_in", NT_DETAIL_KIND_SCHED, true},
	[NT_HOST_EVENT_BLOCK] = {"block_io", NT_DETAIL_KIND_BLOCK, true},
	[NT_HOST_EVENT_RETRANSMIT] = {"tcp_retransmit", NT_DETAIL_KIND_NET, false},
	[NT_HOST_EVENT_RESET] = {"tcp_reset", NT_DETAIL_KIND_NET, false},
	[NT_HOST_EVENT_OOM] = {"oom_kill", NT_DETAIL_KIND_SCHED, false},
};

static void on_system_event(void *data, uint64_t start_boot_ns, const struct nt_host_event *event)
{
	struct nt_agent *agent = data;
	uint64_t word[] = {event->cpu, event->other, event->reason};
	struct nt_detail_call call = {
		.thread = event->tid,
		.entry_boot_ns = event->boot_ns,
		.bytes = event->bytes,
		.probability = 1,
		.word = word,
		.words = sizeof(word) / sizeof(word[0]),
	};

	(void)start_boot_ns;
	if (!event->kind || event->kind >= NT_HOST_EVENT_END)
		return;
	call.kind = event_calls[event->kind].kind;
	call.call = event_calls[event->kind].call;
	if (event->kind == NT_HOST_EVENT_OUT || event->kind == NT_HOST_EVENT_IN)
		call.probability = nt_system_switch_share(agent->system, event->boot_ns);
	if (event_calls[event->kind].lasts && event->value <= event->boot_ns) {
		call.entry_boot_ns -= event->value;
		call.return_boot_ns = event->boot_ns;
	}
	/* Those that belong to no rank are counted. */
	(void)!nt_tracker_detail(agent->tracker, event->tgid, &call, event->boot_ns);
}

void nt_agent_count_system_events(struct nt_agent *agent, uint32_t pid)
{
	if (!agent->system)
		return;
	for (enum nt_host_event_kind kind = NT_HOST_EVENT_OUT; kind < NT_HOST_EVENT_END; kind++) {
		const double calls = nt_system_take_dropped(agent->system, pid, kind);

		if (calls > 0)
			nt_tracker_detail_lost(agent->tracker, pid, event_calls[kind].kind, calls);
	}
}

/* ---- their probes ---------------------------------------------------------------------------- */

static void open_sockets(struct nt_agent *agent)
{
	const int r = nt_sockets_new(&agent->sockets);

	if (r == -ENOTSUP)
		nt_info("TCP connections of ranks are not observed: this kernel does not show them");
	else if (r < 0)
		(void)nt_warn(r, "TCP connections of ranks are not observed");
}

static void open_quotas(struct nt_agent *agent)
{
	const int r = nt_quota_reader_new(&agent->quotas);

	if (r < 0 && r != -ENOTSUP)
		(void)nt_warn(r, "quotas of control groups are not observed");
}

const struct nt_tcp_window *nt_agent_tcp_window(void *data, uint32_t pid)
{
	struct nt_agent *agent = data;

	return nt_sockets_take_window(agent->sockets, pid);
}

/* Without them the agent does the rest of its work. */
void nt_agent_open_system(struct nt_agent *agent)
{
	const struct nt_system_options options = {
		.ring_bytes = RING_BYTES,
		.events_max = EVENTS_MAX,
		.budget = agent->config->budget / 100,
		.event = on_system_event,
		.data = agent,
	};
	struct nt_system_stats stats;
	int r;

	if (!agent->config->system_events)
		return;
	open_sockets(agent);
	open_quotas(agent);
	r = nt_system_new(&options, &agent->system);
	if (r < 0) {
		(void)nt_warn(
			r, "load the tracepoints: what the kernel does for ranks is not observed");
		return;
	}
	nt_system_stats(agent->system, &stats);
	nt_debug("a context switch costs %llu ns, and %llu ns for each thread that is observed",
		 (unsigned long long)stats.switch_ns, (unsigned long long)stats.side_ns);
}

void nt_agent_poll_system(struct nt_agent *agent)
{
	if (agent->system)
		nt_system_poll(agent->system);
}

/* As of the last node vector; 0: none yet. */
static double busy_cores(const struct nt_agent *agent)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);

	for (size_t i = 0; i < agent->vector.metrics; i++)
		if (strcmp(agent->vector.metric[i].name, "cpu_busy") == 0)
			return agent->vector.metric[i].value * (double)(cores > 0 ? cores : 1);
	return 0.0;
}

void nt_agent_turn_system(struct nt_agent *agent, uint64_t boot_ns)
{
	struct nt_system_stats stats;

	if (!agent->system || !nt_system_tick(agent->system, boot_ns, busy_cores(agent)))
		return;
	nt_system_stats(agent->system, &stats);
	if (stats.is_shed)
		(void)nt_warn(0,
			      "system events exceed the budget of the node: they are not observed "
			      "for a while");
	else if (stats.is_sliced)
		nt_debug("context switches exceed the budget of the node: they are observed in "
			 "slices");
	else
		nt_debug("system events are observed, those of interrupts are not");
}

void nt_agent_sample_system(const struct nt_agent *agent, uint32_t pid, uint32_t tid,
			    struct nt_host_sample *sample)
{
	sample->has_system =
		agent->system && nt_system_read(agent->system, pid, tid, &sample->system);
	sample->has_quota =
		agent->quotas && nt_quota_reader_read(agent->quotas, tid, &sample->quota_ns) == 0;
	/* A taker's name may hold any bytes. */
	if (sample->has_system)
		nt_ascii_copy_text(sample->system.taker.comm, sizeof(sample->system.taker.comm),
				   sample->system.taker.comm);
}
