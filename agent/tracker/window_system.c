/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/tracker/window_system.h"

#include <string.h>

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* By the thread that was read both times. */
static void fill_thread(const struct nt_host_times *was, const struct nt_host_times *is,
			bool has_quota, struct nt_host_evidence *host)
{
	uint64_t wait_ns[NT_HOST_WAITS];

	for (int i = 0; i < NT_HOST_WAITS; i++)
		wait_ns[i] = less(is->wait_ns[i], was->wait_ns[i]);
	host->off_cpu_file_ns = wait_ns[NT_HOST_WAIT_NETWORK_FILE];
	host->off_cpu_io_ns = wait_ns[NT_HOST_WAIT_BLOCK_IO] + host->off_cpu_file_ns;
	host->off_cpu_lock_ns = wait_ns[NT_HOST_WAIT_LOCK];
	host->off_cpu_net_ns = wait_ns[NT_HOST_WAIT_NETWORK];
	host->off_cpu_sleep_ns = wait_ns[NT_HOST_WAIT_SLEEP];
	host->off_cpu_other_ns = wait_ns[NT_HOST_WAIT_OTHER];
	host->off_cpu_fault_ns = wait_ns[NT_HOST_WAIT_FAULT];
	host->off_cpu_device_ns = wait_ns[NT_HOST_WAIT_DEVICE];
	if (!has_quota)
		host->quota_ns = wait_ns[NT_HOST_WAIT_QUOTA];
	/* The scheduler's own sum contains the quota; where it is not read, the tracepoints' does. */
	if (!host->run_queue_ns)
		host->run_queue_ns = wait_ns[NT_HOST_WAIT_RUN_QUEUE] + host->quota_ns;
	host->reclaim_ns = less(is->reclaim_ns, was->reclaim_ns);
	host->compaction_ns = less(is->compaction_ns, was->compaction_ns);
	host->interrupt_ns = less(is->irq_ns, was->irq_ns);
	host->on_cpu_ns = less(host->on_cpu_ns, host->interrupt_ns);
	host->voluntary_switches = less(is->blocked, was->blocked);
	host->involuntary_switches = less(is->preempted, was->preempted);
	host->migrations = less(is->migrations, was->migrations);
	host->numa_moves = less(is->numa_moves, was->numa_moves);
}

static uint64_t of_all(const struct nt_system_total *total, enum nt_host_wait reason)
{
	return total->wait_ns[reason] + total->helper_wait_ns[reason];
}

static void fill_process(const struct nt_system_total *was, const struct nt_system_total *is,
			 struct nt_host_evidence *host)
{
	host->taken_ns = is->taken_ns;
	host->taker_ns = is->taker.ns;
	host->taker_pid = is->taker.tgid;
	host->taker = is->taker.comm;
	host->process_io_ns =
		less(of_all(is, NT_HOST_WAIT_BLOCK_IO) + of_all(is, NT_HOST_WAIT_NETWORK_FILE),
		     of_all(was, NT_HOST_WAIT_BLOCK_IO) + of_all(was, NT_HOST_WAIT_NETWORK_FILE));
	host->process_fault_ns =
		less(of_all(is, NT_HOST_WAIT_FAULT), of_all(was, NT_HOST_WAIT_FAULT));
	host->process_reclaim_ns = less(is->reclaim_ns, was->reclaim_ns);
	host->block_requests = less(is->requests, was->requests);
	host->block_ns = less(is->request_ns, was->request_ns);
	host->block_device = is->device;
	/* Of another device than before, the sums so far are not the window's. */
	if (strcmp(is->device, was->device) == 0 || !was->device[0]) {
		host->block_device_requests = less(is->device_requests, was->device_requests);
		host->block_device_ns = less(is->device_ns, was->device_ns);
	}
	host->tcp_retransmits = less(is->retransmits, was->retransmits);
	host->tcp_resets = less(is->resets, was->resets);
	host->oom_kills = less(is->oom_kills, was->oom_kills);
}

/*
 * Without tracepoints, or with estimates from them: the pauses of the thread's groups. They are a sum over processors, and the thread
 * was runnable in those that held it up.
 */
static void fill_quota(const struct nt_host_sample *before, const struct nt_host_sample *now,
		       struct nt_host_evidence *host)
{
	const uint64_t paused_ns = less(now->quota_ns, before->quota_ns);

	if (now->has_quota && before->has_quota)
		host->quota_ns = paused_ns < host->run_queue_ns ? paused_ns : host->run_queue_ns;
}

void nt_window_system_fill(const struct nt_host_sample *before, const struct nt_host_sample *now,
			   struct nt_host_evidence *host)
{
	fill_quota(before, now, host);
	if (!now->has_system || !before->has_system)
		return;
	host->system_ns = less(now->system.observed_ns, before->system.observed_ns);
	if (!host->system_ns)
		return;
	fill_thread(&before->system.thread, &now->system.thread,
		    now->system.is_estimated && now->has_quota && before->has_quota, host);
	fill_process(&before->system, &now->system, host);
}

uint32_t nt_window_system_shed(const struct nt_host_sample *now)
{
	if (!now->has_system)
		return 0;
	return (now->system.is_shed ? NT_WIRE_SHED_SYSTEM : 0) |
	       (now->system.is_estimated ? NT_WIRE_SHED_SWITCHES : 0);
}
