/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent of one node: discovery and probes in, messages out, in one loop. */
#ifndef NT_AGENT_AGENT_H
#define NT_AGENT_AGENT_H

#include "agent/config.h"
#include "common/base/cleanup.h"
#include "common/options/exit.h"

struct nt_agent;

/*
 * Opens everything that the agent needs. The config is borrowed for its life. On failure it has
 * logged why, and *ret_exit says how to end.
 */
NT_MUST_CHECK int nt_agent_new(const struct nt_agent_config *config, struct nt_agent **ret_agent,
			       enum nt_exit *ret_exit);
void nt_agent_free(struct nt_agent *agent);
NT_DEFINE_AUTO(nt_agent, nt_agent_free)

/* Runs until SIGTERM or SIGINT, sends what is left, and detaches. */
NT_MUST_CHECK int nt_agent_run(struct nt_agent *agent);

#endif
