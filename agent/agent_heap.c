/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the call sites that allocate device memory are: a worker reads the process's mappings. */
#include "agent/agent_impl.h"

#include <errno.h>

#include "agent/discover/inspection.h"

/* A site that is not found is reported by its address. */
static void on_place(void *data, const struct nt_inspector_task *task,
		     struct nt_inspector_outcome *outcome)
{
	struct nt_agent *agent = data;
	struct nt_inspection_code_place place;

	if (outcome->result < 0 || outcome->kind != NT_ANSWER_CODE_PLACE ||
	    nt_inspection_parse_code_place(outcome->body, outcome->len, &place) < 0)
		return;
	nt_tracker_site_found(agent->tracker, task->request.pid, task->start_ns,
			      task->request.address, place.name, place.offset);
}

void nt_agent_site_wanted(void *data, uint32_t pid, uint64_t start_ns, uint64_t address)
{
	struct nt_agent *agent = data;
	const struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_CODE_PLACE, .pid = pid, .address = address},
		.client = &agent->code_place_client,
		.start_ns = start_ns,
	};

	(void)!nt_inspector_submit(nt_discover_inspector(agent->discover), &task, NULL, -1);
}

void nt_agent_open_heap(struct nt_agent *agent)
{
	agent->code_place_client = (struct nt_inspector_client){.done = on_place, .data = agent};
}
