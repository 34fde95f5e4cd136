/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The agent's event loop, in one thread. A tick of 100 ms reads the ring in any case, as the kernel
 * does not wake the agent at low rates. Slower work (threads inside calls, metrics) is done once a
 * second.
 */
#include "agent/agent_impl.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/host/usage.h"
#include "common/bus/bus_disk_queue.h"
#include "common/system/clock.h"
#include "common/system/log.h"

#define BUS_WELL_NS (10 * NT_SECOND)
#define LAST_NS     NT_SECOND /* the same at shutdown */
#define CONNECT_NS  (10 * NT_SECOND) /* timeout of the first connection */

enum {
	TICKS_A_SECOND = 10,
	NODE_TICKS = 50, /* between two node vectors */
	NICE = -10,
	EVENTS = 8, /* of one epoll_wait() */
	RECALLS = 16, /* per second: each reads a process's mappings */
};

static void on_inside(void *data, uint32_t pid, uint32_t tid, uint16_t row,
		      const struct nt_inside *inside)
{
	struct nt_agent *agent = data;

	nt_tracker_inside(agent->tracker, pid, tid, row, inside, agent->looked_ns);
	nt_own_links_inside(agent->own_links, pid, row, inside->entry_ns, agent->looked_ns);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* The kernel counts losses per process: each concerns that process alone. */
static void take_losses(struct nt_agent *agent)
{
	struct nt_attach_stats stats;
	uint64_t lost;

	nt_attach_stats(agent->attach, &stats);
	lost = nt_self_metrics_lost(&stats);
	if (lost == agent->lost)
		return;
	agent->lost = lost;
	nt_tracker_take_losses(agent->tracker);
}

static void write_metrics(struct nt_agent *agent)
{
	struct nt_self_metrics_reading reading = {
		.attachments_over_cap = nt_attachment_over_cap(agent->attachment),
		.ports_over_cap = agent->nic.ports_over_cap,
		.attach_failures = agent->attach_failures,
		.uncovered_calls = agent->uncovered_calls,
		.detail_failures = agent->detail_failures,
		.detailed = nt_detail_set_count(agent->detail_set),
		.stacks_read = agent->stack_stats.read,
		.stacks_failed = agent->stack_stats.failed,
		.stacks_refused = agent->stack_stats.refused,
		.stacks_unsent = agent->stack_stats.unsent,
		.profiler = *nt_profiler_stats(agent->profiler),
		.profiles_unsent = agent->profiles_unsent,
		.workers_started = agent->workers.started,
		.workers_killed = agent->workers.killed,
		.workers_left = agent->workers.lefts,
		.cpu_ns = nt_usage_cpu_ns(),
		.resident_bytes = nt_usage_resident_bytes(),
	};
	int r;

	if (!agent->config->metrics_file && !agent->health_server)
		return;
	for (int i = 0; i < NT_LIMIT_END; i++)
		reading.left_out[i] = agent->limits.of[i].report.left_out;
	reading.node_devices_over_cap = nt_node_over_cap(&agent->vector);
	reading.port_rates_over_cap = agent->port_rates.ports_over_cap;
	nt_rdma_stats(agent->rdma, &reading.rdma);
	nt_sockets_stats(agent->sockets, &reading.sockets);
	nt_attach_stats(agent->attach, &reading.attach);
	nt_governor_stats(agent->governor, &reading.governor);
	nt_own_links_stats(agent->own_links, &reading.own_links);
	nt_probed_ranks_stats(agent->interpreters, &reading.interpreters);
	nt_probed_ranks_stats(agent->gpu_ranks, &reading.gpu_ranks);
	nt_probed_ranks_stats(agent->nccl_ranks, &reading.nccl_ranks);
	nt_probed_ranks_stats(agent->send_ranks, &reading.send_ranks);
	nt_probed_ranks_stats(agent->query_ranks, &reading.query_ranks);
	nt_discover_stats(agent->discover, &reading.discover);
	nt_process_reader_stats(agent->process_reader, &reading.process_reader);
	nt_quarantine_stats(agent->quarantine, nt_clock_boot_ns(), &reading.quarantine);
	nt_tracker_stats(agent->tracker, &reading.tracker);
	nt_publisher_stats(agent->publisher, &reading.publisher);
	nt_placement_lookup_stats(agent->placement_lookup, &reading.placement_lookup);
	if (agent->enrolment)
		nt_enrolment_stats(agent->enrolment, &reading.enrolment);
	if (agent->gpu_health)
		reading.gpu_health = *nt_gpu_health_stats(agent->gpu_health);
	if (agent->ras)
		nt_ras_stats(agent->ras, &reading.ras);
	if (agent->control_feed)
		nt_control_feed_stats(agent->control_feed, &reading.control_feed);
	reading.levels = *nt_level_table_stats(agent->levels);
	if (agent->system)
		nt_system_stats(agent->system, &reading.system);
	reading.gpu_ends_over_cap = agent->gpu_ends.over_cap;
	nt_bus_stats(agent->bus, &reading.bus);
	if (agent->disk_queue)
		nt_disk_queue_stats(agent->disk_queue, &reading.disk_queue);
	if (agent->health_server)
		nt_health_server_stats(agent->health_server, &reading.http);
	nt_self_metrics_set(agent->metrics, &reading);
	if (!agent->config->metrics_file)
		return;
	r = nt_metrics_file_write(agent->metrics, agent->config->metrics_file);
	if (r < 0 && !agent->warned_metrics) {
		agent->warned_metrics = true;
		(void)nt_warn(r, "write metrics to '%s'", agent->config->metrics_file);
	}
}

static void look_at_tenants(struct nt_agent *agent)
{
	struct nt_tracker_stats stats;

	if (agent->warned_tenants)
		return;
	nt_tracker_stats(agent->tracker, &stats);
	if (!stats.tenants_unknown)
		return;
	agent->warned_tenants = true;
	(void)nt_warn(0, "namespace or user of a process unknown: its pod is a separate job, not "
			 "compared with other pods, until the API server reports it");
}

/* Messages are held until the first key; a later key replaces it. */
static void take_key(struct nt_agent *agent)
{
	struct nt_signer *signer = NULL;
	struct nt_node_key key;

	if (!agent->enrolment || !nt_enrolment_take(agent->enrolment, &key))
		return;
	if (nt_signer_new(&key, &signer) < 0) {
		(void)nt_warn(-ENOMEM, "use the key of node '%s'", agent->node);
		return;
	}
	if (!agent->signer)
		nt_info("messages are signed with the key of node '%s'", agent->node);
	nt_publisher_sign(agent->publisher, signer);
	nt_signer_free(agent->signer);
	agent->signer = signer;
}

static void look_at_enrolment(struct nt_agent *agent)
{
	char text[NT_KUBE_REASON];

	if (!agent->enrolment)
		return;
	nt_enrolment_fault_notice(agent->enrolment, text);
	if (nt_fault_notice_look(&agent->enrolment_fault_notice, *text != '\0',
				 nt_clock_mono_ns()) == NT_FAULT_NOTICE_BEGINS)
		(void)nt_warn(0, "request to '%s' for the key of node '%s': %s%s",
			      agent->config->enrol_url, agent->node, text,
			      agent->signer ? "" : ": messages are held");
}

static void flush(struct nt_agent *agent)
{
	int r = nt_publisher_flush(agent->publisher);

	if (r < 0 && r != -ETIMEDOUT) {
		if (!agent->bus_failed_ns)
			(void)nt_warn(
				r, "write to the bus '%s': messages are lost until there is room",
				agent->config->bus);
		agent->bus_failed_ns = nt_clock_boot_ns();
	} else if (agent->bus_failed_ns &&
		   nt_clock_boot_ns() - agent->bus_failed_ns > BUS_WELL_NS) {
		/* An empty flush succeeds too, so only a period without failures counts. */
		nt_info("the bus '%s' accepts messages again", agent->config->bus);
		agent->bus_failed_ns = 0;
	}
}

static void look_at_disk_queue(struct nt_agent *agent)
{
	struct nt_disk_queue_stats stats;
	struct nt_bus_health health;

	if (!agent->disk_queue)
		return;
	nt_disk_queue_stats(agent->disk_queue, &stats);
	if (agent->is_bus_away == (stats.is_away != 0))
		return;
	agent->is_bus_away = stats.is_away != 0;
	nt_bus_health(agent->bus, &health);
	if (agent->is_bus_away)
		(void)nt_warn(0, "the bus '%s' is unreachable: messages are queued in '%s': %s",
			      agent->config->bus, agent->config->disk_queue,
			      health.text[0] ? health.text : "brokers acknowledge nothing");
	else
		nt_info("the bus '%s' reconnected: sending the queue", agent->config->bus);
}

/* Faults while the bus is connected, above all a topic that is missing or too small. */
static void look_at_bus(struct nt_agent *agent)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	const bool was_bus_away = agent->is_bus_away;
	struct nt_bus_health health;
	enum nt_fault_notice_news news;

	look_at_disk_queue(agent);
	nt_bus_health(agent->bus, &health);
	if (health.cause == NT_BUS_CONNECTING && now_ns - health.since_mono_ns < CONNECT_NS)
		return;
	news = nt_fault_notice_look(&agent->bus_fault_notice, health.cause, now_ns);
	if (agent->is_bus_away && !was_bus_away && health.cause != NT_BUS_WELL)
		return; /* just logged */
	if (news == NT_FAULT_NOTICE_BEGINS) {
		agent->is_bus_fault_logged = true;
		(void)nt_warn(0, "the bus '%s': %s: %s", agent->config->bus,
			      nt_bus_cause_name(health.cause), health.text);
	} else if (news == NT_FAULT_NOTICE_ENDS && agent->is_bus_fault_logged) {
		agent->is_bus_fault_logged = false;
		nt_info("the bus '%s' recovered", agent->config->bus);
	}
}

static void look_at_limits(struct nt_agent *agent)
{
	const struct nt_share *const share[NT_LIMIT_END] = {
		[NT_LIMIT_DISCOVERY] = nt_discover_share(agent->discover),
		[NT_LIMIT_PROCESSES] = nt_tracker_share(agent->tracker),
		[NT_LIMIT_KEYS] = nt_tracker_key_share(agent->tracker),
		[NT_LIMIT_COMMS] = nt_tracker_comm_share(agent->tracker),
		[NT_LIMIT_ORPHANS] = nt_tracker_orphan_share(agent->tracker),
		[NT_LIMIT_ATTACHMENTS] = nt_attachment_share(agent->attachment),
	};
	char text[NT_LIMIT_TEXT];

	for (int i = 0; i < NT_LIMIT_END; i++) {
		enum nt_limit_news news;

		if (i == NT_LIMIT_DISCOVERY && nt_discover_is_scanning(agent->discover))
			continue; /* as last logged */
		news = nt_limits_look(&agent->limits, i, share[i], nt_clock_mono_ns());
		if (news == NT_LIMIT_BEGINS)
			(void)nt_warn(0, "the cap '%s' is reached: %s", nt_limit_name(i),
				      nt_limit_text(&agent->limits, i, text));
		else if (news == NT_LIMIT_ENDS)
			nt_info("the cap '%s' is no longer reached", nt_limit_name(i));
	}
	nt_attachment_hold(agent->attachment,
			   agent->limits.of[NT_LIMIT_DISCOVERY].report.left_out > 0);
	nt_health_server_limits(agent->health_server, &agent->limits);
	agent->recalls = RECALLS;
}

/* Evicted processes that call now. */
static void recall(struct nt_agent *agent)
{
	uint32_t pid[RECALLS];
	size_t pids;

	if (!agent->limits.of[NT_LIMIT_DISCOVERY].report.left_out)
		return;
	pids = nt_tracker_unknown(agent->tracker, pid, agent->recalls);
	for (size_t i = 0; i < pids; i++)
		nt_discover_recall(agent->discover, pid[i]);
	agent->recalls -= (uint32_t)pids;
}

/* Reads events first, so that a process's calls precede its end. */
static void catch_up(struct nt_agent *agent)
{
	int r;

	nt_agent_read_events(agent);
	nt_attach_settle(agent->attach);
	nt_tracker_discovering(agent->tracker);
	r = nt_discover_run(agent->discover);
	if (r < 0)
		(void)nt_warn(r, "scan for processes");
	recall(agent);
	nt_tracker_discovered(agent->tracker, r == 0 && nt_discover_is_complete(agent->discover));
}

static void look_inside(struct nt_agent *agent)
{
	int r;

	agent->looked_ns = nt_clock_boot_ns();
	nt_tracker_look(agent->tracker);
	r = nt_attach_inside(agent->attach, on_inside, nt_agent_outside, agent);
	if (r < 0)
		(void)nt_warn(r, "list the threads inside calls");
	nt_own_links_looked(agent->own_links, agent->looked_ns);
	nt_agent_read_events(agent); /* removed since */
}

static void tick(struct nt_agent *agent)
{
	uint64_t boot_ns, real_ns, read_ns;

	if (agent->ticks++ % TICKS_A_SECOND == 0) {
		look_inside(agent);
		nt_agent_read_nic(agent);
		nt_attachment_tick(agent->attachment, nt_clock_boot_ns());
		nt_agent_detach_ended_ranks(agent);
		agent->has_new_levels = true;
		nt_agent_turn_ras(agent);
		if (agent->gpu_health)
			nt_gpu_health_tick(agent->gpu_health, nt_clock_mono_ns());
	}
	if (agent->has_new_levels)
		nt_agent_turn_details(agent);
	nt_agent_end_processes(agent, nt_clock_mono_ns());
	nt_profiler_tick(agent->profiler, nt_clock_mono_ns());
	nt_clock_pair(&boot_ns, &real_ns);
	nt_agent_turn_ranks(agent, real_ns);
	nt_rdma_tick(agent->rdma, boot_ns, real_ns);
	nt_sockets_tick(agent->sockets, boot_ns);
	nt_agent_poll_system(agent);
	nt_publisher_set_time(agent->publisher, boot_ns, real_ns);
	catch_up(agent);
	take_losses(agent);
	nt_agent_govern(agent, boot_ns, real_ns);
	take_key(agent);
	/* The ring's remaining events are newer: no window ends before they are read. */
	read_ns = agent->has_unread && agent->read_until_ns < boot_ns ? agent->read_until_ns
								      : boot_ns;
	nt_tracker_tick(agent->tracker, read_ns);
	nt_agent_keep_memory(agent);
	if (agent->ticks % NODE_TICKS == 0)
		nt_agent_send_node(agent);
	flush(agent);
	if (agent->disk_queue)
		nt_disk_queue_turn(agent->disk_queue, nt_clock_mono_ns(), real_ns);
	if (agent->ticks % TICKS_A_SECOND == 0) {
		nt_agent_budget(agent, boot_ns);
		nt_agent_turn_system(agent, boot_ns);
		look_at_bus(agent);
		look_at_limits(agent);
		nt_placement_lookup_tick(agent->placement_lookup, nt_clock_mono_ns());
		look_at_tenants(agent);
		look_at_enrolment(agent);
		nt_agent_turn_level(agent, real_ns);
		write_metrics(agent);
	}
	nt_health_server_turned(agent->health_server, nt_clock_mono_ns());
}

static void take_signal(struct nt_agent *agent)
{
	struct signalfd_siginfo info;

	while (read(agent->signals, &info, sizeof(info)) == sizeof(info))
		agent->ends = true;
}

static int wait_and_work(struct nt_agent *agent)
{
	struct epoll_event events[EVENTS];
	bool ticked = false;
	bool woken = agent->has_unread || nt_discover_is_behind(agent->discover);
	uint64_t expired;
	int n;

	/* After a partial read no descriptor becomes readable for the rest. */
	n = epoll_wait(agent->epoll, events, EVENTS, woken ? 0 : -1);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == agent->signals)
			take_signal(agent);
		else if (events[i].data.fd == agent->timer)
			ticked = read(agent->timer, &expired, sizeof(expired)) > 0;
		else
			woken = true;
	}
	agent->reread_ns = 0;
	if (ticked) {
		tick(agent);
	} else if (woken) {
		catch_up(agent);
		nt_own_links_settle(agent->own_links); /* a slice is short */
	}
	return 0;
}

/* Held messages without a key. */
static void warn_held(const struct nt_agent *agent)
{
	struct nt_publisher_stats stats;

	nt_publisher_stats(agent->publisher, &stats);
	if (stats.held_bytes)
		(void)nt_warn(0,
			      "%llu bytes of messages are lost: no key was received to sign them",
			      (unsigned long long)stats.held_bytes);
}

static void drain(struct nt_agent *agent)
{
	uint64_t boot_ns, real_ns, spent_ns = 0;

	nt_clock_pair(&boot_ns, &real_ns);
	nt_publisher_set_time(agent->publisher, boot_ns, real_ns);
	(void)nt_agent_read_all_within(agent, &spent_ns, LAST_NS);
	catch_up(agent);
	take_losses(agent);
	take_key(agent);
	nt_agent_end_processes(agent, UINT64_MAX);
	nt_tracker_drain(agent->tracker, boot_ns);
	warn_held(agent);
	flush(agent);
	write_metrics(agent);
}

int nt_agent_run(struct nt_agent *agent)
{
	uint64_t boot_ns, real_ns;
	int r = 0;

	nt_clock_pair(&boot_ns, &real_ns);
	nt_publisher_set_time(agent->publisher, boot_ns, real_ns);
	/* A flood of calls must not starve the agent. Best effort without the privilege. */
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	nt_info("watching node '%s' with probes by %s, messages go to '%s'", agent->node,
		nt_attach_mode_name(nt_attach_mode(agent->attach)), agent->config->bus);
	catch_up(agent); /* attaches to processes that already run */
	while (!agent->ends && r == 0)
		r = wait_and_work(agent);
	drain(agent);
	nt_info("ended");
	return r < 0 ? nt_err(r, "wait for events") : 0;
}
