/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Keeps the agent's memory under --memory-max. Beyond it, free memory is returned to the kernel. If
 * that is not enough, owners over their share drop processes, the largest first.
 */
#include <malloc.h>
#include <unistd.h>

#include "agent/agent_impl.h"
#include "agent/host/usage.h"
#include "common/system/clock.h"
#include "common/system/log.h"

enum {
	BASE_BYTES = 24 << 20,
	CPU_BYTES = 512 << 10, /* a processor may be a rank, which takes up to 280 KiB */
	SPARE_PART = 8, /* of the limit: free after processes were dropped */
	GROWTH_BYTES = 1 << 20, /* within GROWTH_NS */
};

/*
 * Between two checks: a flood of new ranks was seen to take 0.9 MB per millisecond. The interval
 * shrinks with what is left of the limit, at that rate.
 */
#define LOOK_LEAST_NS NT_MILLISECOND
#define LOOK_NS       (10 * NT_MILLISECOND)
#define GROWTH_NS     NT_MILLISECOND /* for GROWTH_BYTES */
#define RETURN_NS     NT_SECOND /* between two searches of the heap for free pages */
#define SPARED_NS     (100 * NT_MILLISECOND) /* between two for owners while none exceeds its share */

enum cause {
	CAUSE_NONE,
	CAUSE_PROCESSES, /* of which some were dropped */
	CAUSE_OTHER, /* no owner exceeds its share */
};

static uint64_t return_free(struct nt_agent *agent, uint64_t mono_ns)
{
	if (mono_ns - agent->memory_returned_ns >= RETURN_NS) {
		agent->memory_returned_ns = mono_ns;
		(void)malloc_trim(0);
	}
	return nt_usage_private_bytes();
}

/* Frees the excess bytes. Returns the number of processes. */
static uint32_t give_up(struct nt_agent *agent, uint64_t bytes, uint64_t max, uint64_t mono_ns)
{
	uint32_t processes;

	if (mono_ns - agent->memory_spared_ns < SPARED_NS)
		return 0;
	processes = nt_tracker_give_back(agent->tracker, bytes, max);
	if (processes)
		(void)malloc_trim(0);
	else
		agent->memory_spared_ns = mono_ns;
	return processes;
}

static enum cause cause_of(uint64_t bytes, uint64_t max, uint32_t given_up)
{
	if (bytes <= max)
		return CAUSE_NONE;
	return given_up ? CAUSE_PROCESSES : CAUSE_OTHER;
}

static uint64_t look_interval(uint64_t bytes, uint64_t max)
{
	const uint64_t left = bytes < max ? max - bytes : 0;
	const uint64_t ns = left / GROWTH_BYTES * GROWTH_NS;

	if (ns < LOOK_LEAST_NS)
		return LOOK_LEAST_NS;
	return ns < LOOK_NS ? ns : LOOK_NS;
}

/* Reads the number of processors once: each reading opens a file. */
static uint64_t limit_of(struct nt_agent *agent)
{
	long cpus;

	if (agent->config->memory_max)
		return agent->config->memory_max;
	if (!agent->memory_limit) {
		cpus = sysconf(_SC_NPROCESSORS_CONF);
		agent->memory_limit = BASE_BYTES + (cpus > 0 ? (uint64_t)cpus * CPU_BYTES : 0);
	}
	return agent->memory_limit;
}

void nt_agent_keep_memory(struct nt_agent *agent)
{
	const uint64_t max = limit_of(agent), mono_ns = nt_clock_mono_ns();
	uint32_t given_up = 0;
	enum nt_fault_notice_news news;
	enum cause cause;
	uint64_t bytes;

	if (mono_ns < agent->memory_look_ns)
		return;
	bytes = nt_usage_private_bytes();
	if (bytes > max)
		bytes = return_free(agent, mono_ns);
	if (bytes > max)
		given_up = give_up(agent, bytes - (max - max / SPARE_PART), max, mono_ns);
	agent->memory_look_ns = mono_ns + look_interval(bytes, max);
	cause = cause_of(bytes, max, given_up);
	news = nt_fault_notice_look(&agent->memory_fault_notice, cause, mono_ns);
	if (news == NT_FAULT_NOTICE_BEGINS && cause == CAUSE_OTHER)
		(void)nt_warn(
			0,
			"%llu bytes of memory are more than --memory-max, %llu: no process is dropped, "
			"as no owner's processes take more than its share",
			(unsigned long long)bytes, (unsigned long long)max);
	else if (news == NT_FAULT_NOTICE_BEGINS)
		(void)nt_warn(
			0,
			"%llu bytes of memory are more than --memory-max, %llu: %u processes are "
			"not watched for half a minute, the largest first",
			(unsigned long long)bytes, (unsigned long long)max, given_up);
	else if (news == NT_FAULT_NOTICE_ENDS)
		nt_info("the agent's memory is below --memory-max again");
}
