/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The node vector: metrics of the node, its cards and its ranks, sent every few seconds. */
#include "agent/agent_impl.h"

#include <unistd.h>

#include "agent/gpu/gpu_metrics.h"
#include "common/system/clock.h"

/* Of the init process: the host's, where the agent's pod has its own network namespace. */
#define HOST_SYS   "/proc/1/root/sys"
#define OWN_SYS    "/sys"
#define HOST_SNMP  "/proc/1/net/snmp"
#define INFINIBAND "/sys/class/infiniband"
#define BOOT_ID    "/proc/sys/kernel/random/boot_id"

enum {
	NODE_JOBS = 64,
};

static void add_gpus(struct nt_agent *agent)
{
	struct nt_metric_value metric[NT_GPU_METRICS];
	const size_t n = nt_gpu_metrics(nt_gpu_health_cards(agent->gpu_health), metric);

	nt_node_add(&agent->vector, metric, n);
}

/* What the agent observes of its ranks and of itself. */
static void add_observations(struct nt_agent *agent)
{
	struct nt_metric_value metric[NT_RANK_TIMES_METRICS];
	struct nt_governor_stats governor;
	struct nt_tracker_stats tracker;

	nt_node_add(&agent->vector, metric, nt_rank_times_take(&agent->rank_times, metric));
	nt_tracker_stats(agent->tracker, &tracker);
	nt_governor_stats(agent->governor, &governor);
	nt_node_add_value(&agent->vector, "agent_ranks", (double)tracker.ranks);
	nt_node_add_value(&agent->vector, "agent_processes_sampled", (double)governor.sliced);
	nt_node_add_value(&agent->vector, "agent_events_lost", (double)agent->lost);
}

void nt_agent_open_node(struct nt_agent *agent)
{
	agent->host_sys = access(HOST_SYS "/class/net", R_OK | X_OK) == 0 ? HOST_SYS : OWN_SYS;
	nt_kernel_identity_read(BOOT_ID, &agent->kernel_identity);
}

void nt_agent_read_nic(struct nt_agent *agent)
{
	nt_nic_read(INFINIBAND, HOST_SNMP, &agent->nic);
}

void nt_agent_send_node(struct nt_agent *agent)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	const char *job[NODE_JOBS];
	struct nt_node_limit limit[NT_LIMIT_END];
	struct nt_node_vector vector = {
		.node = agent->node,
		.job = job,
		.limit = limit,
		.boot_id = agent->kernel_identity.boot_id,
		.kernel = agent->kernel_identity.kernel,
	};

	nt_node_read(&agent->vector, "/proc", agent->host_sys, now_ns);
	nt_port_rates_read(INFINIBAND, now_ns, &agent->port_rates);
	nt_node_take_nic(&agent->vector, &agent->nic);
	nt_node_take_ports(&agent->vector, &agent->port_rates);
	if (agent->gpu_health)
		add_gpus(agent);
	add_observations(agent);
	vector.rdma_port = agent->port_rates.port;
	vector.rdma_ports = agent->port_rates.ports;
	vector.metric = agent->vector.metric;
	vector.metrics = agent->vector.metrics;
	vector.jobs = nt_tracker_jobs(agent->tracker, job, NODE_JOBS);
	vector.limits = nt_limits_list(&agent->limits, limit);
	nt_publisher_node(agent->publisher, &vector);
}
