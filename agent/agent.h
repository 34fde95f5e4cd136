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

/* Runs until SIGTERM or SIGINT, then publishes pending messages and detaches. */
NT_MUST_CHECK int nt_agent_run(struct nt_agent *agent);

#endif
