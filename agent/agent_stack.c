/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stacks of ranks on request: a worker reads them, and the rank's next window sends them. */
#include "agent/agent_impl.h"

#include <errno.h>

#include "agent/discover/inspection.h"
#include "agent/stack/window_stack.h"
#include "common/system/clock.h"

/* Why a process was not read at all. */
static enum nt_stack_reason reason_of(int result)
{
	if (result == -ESRCH)
		return NT_STACK_ENDED;
	if (result == -ETIMEDOUT || result == -EBUSY || result == -EIO)
		return NT_STACK_STALLED;
	return NT_STACK_REFUSED;
}

static void on_stack(void *data, const struct nt_inspector_task *task,
		     struct nt_inspector_outcome *outcome)
{
	static struct nt_stack stack; /* of the loop, which is one thread */
	struct nt_agent *agent = data;
	struct nt_window_stack *message;
	int r = outcome->result;

	agent->stacks_pending--;
	agent->stack_stats.read++;
	if (r == 0)
		r = outcome->kind == NT_ANSWER_STACK
			    ? nt_stack_parse(outcome->body, outcome->len, &stack)
			    : -EBADMSG;
	if (r < 0) {
		agent->stack_stats.failed++;
		nt_window_stack_fail(task->request.pid, nt_clock_boot_ns(), reason_of(r), &stack);
	}
	if (nt_window_stack_new(&stack, task->request.address, &message) < 0 ||
	    !nt_tracker_stack_read(agent->tracker, task->request.pid, task->start_ns, message))
		agent->stack_stats.unsent++;
}

static bool may_read(struct nt_agent *agent)
{
	const uint64_t second = nt_clock_boot_ns() / NT_SECOND;

	if (second != agent->stack_second) {
		agent->stack_second = second;
		agent->stacks_of_second = 0;
	}
	return agent->stacks_pending < NT_AGENT_STACKS &&
	       agent->stacks_of_second < NT_AGENT_STACKS_SECOND;
}

int nt_agent_want_stack(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns,
			uint64_t request)
{
	struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_STACK,
			    .pid = pid,
			    .address = request,
			    .takes_fuse = agent->config->attach_fuse},
		.client = &agent->stack_client,
		.start_ns = start_boot_ns,
	};
	int r;

	if (!nt_tracker_stack_threads(agent->tracker, pid, start_boot_ns, task.request.thread))
		return -ESRCH;
	if (!may_read(agent)) {
		agent->stack_stats.refused++;
		return -EAGAIN;
	}
	r = nt_inspector_submit(nt_discover_inspector(agent->discover), &task, NULL, -1);
	if (r < 0) {
		agent->stack_stats.refused++;
		return r;
	}
	agent->stacks_pending++;
	agent->stacks_of_second++;
	return 0;
}

void nt_agent_open_stacks(struct nt_agent *agent)
{
	agent->stack_client = (struct nt_inspector_client){.done = on_stack, .data = agent};
}
