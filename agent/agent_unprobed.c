/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Warns of processes that spend much of their time in MPI's code outside of probed calls. */
#include "agent/agent_impl.h"

#include <errno.h>

#include "agent/discover/inspection.h"
#include "common/system/clock.h"
#include "common/system/log.h"

enum {
	LINES = 4, /* a minute: all ranks of a job may be such processes */
};

static bool may_log(struct nt_agent *agent)
{
	const uint64_t now_ns = nt_clock_mono_ns();

	if (!agent->unprobed_ns || now_ns - agent->unprobed_ns >= NT_MINUTE) {
		agent->unprobed_ns = now_ns;
		agent->unprobed_lines = 0;
	}
	return agent->unprobed_lines++ < LINES;
}

static void judge(struct nt_agent *agent, uint32_t pid, uint64_t start_ns,
		  const struct nt_mpi_code *code)
{
	struct nt_tracker_unprobed unprobed;

	if (!nt_tracker_judge_unprobed(agent->tracker, pid, start_ns, code, nt_clock_boot_ns(),
				       &unprobed) ||
	    !may_log(agent))
		return;
	(void)nt_warn(0,
		      "process %u ('%s') spends %u %% of its time in MPI outside of probed calls: "
		      "waits there count as its own work, so a slow rank of its job may not be "
		      "found; see 'Unprobed time' in docs/probes.md",
		      pid, unprobed.command, unprobed.finding.percent);
}

static void on_file(void *data, const struct nt_inspector_task *task, int result,
		    const struct nt_inspection_file *file, const char *name, int fd)
{
	(void)data, (void)task, (void)result, (void)file, (void)name, (void)fd;
}

static void on_mpi_code(void *data, const struct nt_inspector_task *task,
			struct nt_inspector_outcome *outcome)
{
	struct nt_mpi_code code;
	int r = outcome->result;

	if (r == 0)
		r = outcome->kind == NT_ANSWER_MPI_CODE
			    ? nt_inspection_parse_mpi_code(outcome->body, outcome->len, &code)
			    : -EBADMSG;
	judge(data, task->request.pid, task->start_ns, r == 0 ? &code : NULL);
}

void nt_agent_outside(void *data, uint32_t pid, uint64_t user_ip)
{
	struct nt_agent *agent = data;
	struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_MPI_CODE, .pid = pid},
		.client = &agent->mpi_code_client,
	};

	if (!nt_tracker_outside(agent->tracker, pid, user_ip, agent->looked_ns, &task.start_ns))
		return;
	if (nt_inspector_submit(nt_discover_inspector(agent->discover), &task, NULL, -1) < 0)
		judge(agent, pid, task.start_ns, NULL);
}

void nt_agent_open_unprobed(struct nt_agent *agent)
{
	agent->mpi_code_client =
		(struct nt_inspector_client){.found = on_file, .done = on_mpi_code, .data = agent};
}
