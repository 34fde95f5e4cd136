/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests to the RAS subsystem of NCCL, for communicators that could not be read. */
#include "agent/agent_impl.h"

#include "common/system/clock.h"

enum {
	USES = 20, /* of an answer, a second apart: less than until the next one */
};

int nt_agent_open_ras(struct nt_agent *agent)
{
	return agent->config->nccl_ras ? nt_ras_new(&agent->workers, &agent->ras) : 0;
}

/* Reads of a process that is slow, or was read much, are refused for some time. */
static void use_answer(struct nt_agent *agent)
{
	const struct nt_ras_answer *answer = agent->ras_answer;

	if (nt_tracker_stated(agent->tracker, agent->ras_asked.pid, agent->ras_asked.start_ns,
			      answer->comm, answer->comms) ||
	    ++agent->ras_uses == USES)
		agent->ras_answer = NULL;
}

void nt_agent_turn_ras(struct nt_agent *agent)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	struct nt_ras_want want[NT_RAS_SCHEDULE_FILES + 1], asked;
	const struct nt_ras_answer *answer;

	if (!agent->ras)
		return;
	answer = nt_ras_take(agent->ras, now_ns, &asked);
	if (answer) {
		agent->ras_answer = answer;
		agent->ras_asked = asked;
		agent->ras_uses = 0;
	}
	if (agent->ras_answer)
		use_answer(agent);
	if (agent->ras_answer)
		return;
	nt_ras_ask(agent->ras, want,
		   nt_tracker_unresolved(agent->tracker, want, NT_RAS_SCHEDULE_FILES + 1), now_ns);
}
