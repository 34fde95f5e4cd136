/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs of agents, from their node vectors. An agent that is started anew finds the ranks of its node
 * again by their calls. After a minute, ranks of its earlier runs that it has not found have ended
 * while it was away.
 */
#ifndef NT_ENGINE_AGENTS_AGENT_RUN_H
#define NT_ENGINE_AGENTS_AGENT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/table.h"
#include "common/system/clock.h"
#include "proto/wire.h"

#define NT_AGENT_RUN_SETTLED_NS (60 * NT_SECOND)

struct nt_agent_run {
	char *agent; /* owned */
	uint64_t boot; /* of its newest run */
	uint64_t since_ns, last_ns; /* real time of the first and last vector of that run */
	bool is_settled;
	UT_hash_handle hh;
};

/* Zero-initialised: empty. */
struct nt_agent_runs {
	struct nt_agent_run *run; /* uthash by agent, owned */
};

void nt_agent_runs_release(struct nt_agent_runs *runs);

/*
 * Takes a node vector. ret_settled: the run has just lasted NT_AGENT_RUN_SETTLED_NS. `max`: limit of
 * agents; further ones never settle. -ENOMEM.
 */
NT_MUST_CHECK int nt_agent_runs_take(struct nt_agent_runs *runs, const struct nt_message *message,
				     size_t max, bool *ret_settled);

#endif
