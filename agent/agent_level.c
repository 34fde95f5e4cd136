/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Requests for more detail: read from the control topic by a thread of the feed, kept in a table,
 * applied to the ranks of this node once a second. The budget of the governor is unaffected.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_impl.h"
#include "common/system/log.h"

enum {
	TURN_MESSAGES = 256, /* per turn */
};

int nt_agent_open_level(struct nt_agent *agent)
{
	char client[sizeof(agent->node) + 32];
	const struct nt_bus_options options = {
		.security = agent->config->bus_security,
		.client = client,
		.is_small = true,
		.idle_ns = NT_SECOND,
	};
	int r = nt_level_table_new(&agent->levels);

	if (r < 0 || !agent->config->requests)
		return r;
	(void)snprintf(client, sizeof(client), "neutracer-agent-%s", agent->node);
	return nt_control_feed_start(agent->config->bus, &options, &agent->control_feed);
}

void nt_agent_raise(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns, uint32_t level)
{
	if (nt_agent_set_level(agent, pid, start_boot_ns, level) < 0) {
		agent->detail_failures++;
		return;
	}
	if (agent->rdma)
		nt_rdma_set_level(agent->rdma, pid, start_boot_ns, level);
	if (agent->system)
		nt_system_set_level(agent->system, pid, start_boot_ns, level);
	nt_info("process %u: level %u", pid, level);
}

static void on_level(void *data, uint32_t pid, uint64_t start_boot_ns, uint32_t level)
{
	nt_agent_raise(data, pid, start_boot_ns, level);
}

/* Refused ones are counted. Those over the rate are tried again while the request is in force. */
static bool on_stack_wanted(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t id)
{
	return nt_agent_want_stack(data, pid, start_boot_ns, id) != -EAGAIN;
}

static void on_profile_wanted(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t id,
			      const struct nt_profile_wish *wish)
{
	nt_agent_want_profile(data, pid, start_boot_ns, id, wish);
}

static void read_requests(struct nt_agent *agent, uint64_t real_ns)
{
	for (int i = 0; i < TURN_MESSAGES; i++) {
		nt_auto(nt_message) struct nt_message *message =
			nt_control_feed_take(agent->control_feed);
		int r;

		if (!message)
			return;
		r = nt_level_table_take(agent->levels, &message->control, real_ns);
		if (r < 0)
			nt_debug("request of '%s' for '%s' refused: %s", message->agent,
				 message->control.target, strerrordesc_np(-r));
	}
}

void nt_agent_turn_level(struct nt_agent *agent, uint64_t real_ns)
{
	const struct nt_tracker_requests requests = {
		.least = agent->config->level,
		.changed = on_level,
		.stack = on_stack_wanted,
		.profile = on_profile_wanted,
		.data = agent,
	};

	if (!agent->control_feed)
		return;
	read_requests(agent, real_ns);
	nt_level_table_sweep(agent->levels, real_ns, NULL, NULL);
	nt_tracker_take_requests(agent->tracker, agent->levels, real_ns, &requests);
}

void nt_agent_close_level(struct nt_agent *agent)
{
	nt_control_feed_stop(agent->control_feed);
	nt_level_table_free(agent->levels);
}
