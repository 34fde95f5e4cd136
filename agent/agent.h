/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The node agent: one event loop that takes discovery and probe events and publishes messages. */
#ifndef NT_AGENT_AGENT_H
#define NT_AGENT_AGENT_H

#include "agent/config.h"
#include "common/base/cleanup.h"
#include "common/options/exit.h"

struct nt_agent;

/*
 * Opens all parts of the agent. config is borrowed for the agent's lifetime. Errors are logged; on
 * failure *ret_exit is the exit status.
 */
NT_MUST_CHECK int nt_agent_new(const struct nt_agent_config *config, struct nt_agent **ret_agent,
			       enum nt_exit *ret_exit);
void nt_agent_free(struct nt_agent *agent);
NT_DEFINE_AUTO(nt_agent, nt_agent_free)

enum {
	NT_AGENT_STACKS = 32, /* requests for stacks that are pending */
	NT_AGENT_STACKS_SECOND = 16, /* readings in a second */
};

/*
 * Reads the stacks of a rank's process: its next window carries them, or why they could not be read.
 * request: copied into them. Reading takes a worker about 1 ms, and the caller no time. -ESRCH: no such
 * process, or no rank; -EAGAIN: more requests than NT_AGENT_STACKS or NT_AGENT_STACKS_SECOND, which is
 * counted; -ENOSPC and -ENOMEM as nt_inspector_submit().
 */
NT_MUST_CHECK int nt_agent_want_stack(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns,
				      uint64_t request);

/* Runs until SIGTERM or SIGINT, then publishes pending messages and detaches. */
NT_MUST_CHECK int nt_agent_run(struct nt_agent *agent);

#endif
