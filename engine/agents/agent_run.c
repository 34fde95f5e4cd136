/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/agents/agent_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void free_run(struct nt_agent_run *run)
{
	free(run->agent);
	free(run);
}

void nt_agent_runs_release(struct nt_agent_runs *runs)
{
	struct nt_agent_run *run, *next;

	HASH_ITER(hh, runs->run, run, next)
	{
		HASH_DEL(runs->run, run);
		free_run(run);
	}
}

static struct nt_agent_run *add(struct nt_agent_runs *runs, const char *agent)
{
	struct nt_agent_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->agent = strdup(agent);
	if (!run->agent) {
		free(run);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, runs->run, run->agent, strlen(run->agent), run);
	if (!nt_table_has(run)) {
		free_run(run);
		return NULL;
	}
	return run;
}

int nt_agent_runs_take(struct nt_agent_runs *runs, const struct nt_message *message, size_t max,
		       bool *ret_settled)
{
	struct nt_agent_run *run;

	*ret_settled = false;
	HASH_FIND(hh, runs->run, message->agent, strlen(message->agent), run);
	if (!run && HASH_COUNT(runs->run) >= max)
		return 0;
	if (!run)
		run = add(runs, message->agent);
	if (!run)
		return -ENOMEM;
	if (message->real_ns <= run->last_ns)
		return 0; /* long on its way, possibly from an earlier run */
	run->last_ns = message->real_ns;
	if (!run->since_ns || run->boot != message->boot) {
		run->boot = message->boot;
		run->since_ns = message->real_ns;
		run->is_settled = false;
	}
	if (run->is_settled || run->last_ns - run->since_ns < NT_AGENT_RUN_SETTLED_NS)
		return 0;
	run->is_settled = true;
	*ret_settled = true;
	return 0;
}
