/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent from inside; for agent/agent*.c alone. */
#ifndef NT_AGENT_AGENT_IMPL_H
#define NT_AGENT_AGENT_IMPL_H

#include "agent/agent.h"
#include "agent/attach.h"
#include "agent/attachment.h"
#include "agent/discover.h"
#include "agent/enrolment.h"
#include "agent/front.h"
#include "agent/governor.h"
#include "agent/inspector.h"
#include "agent/interpreter.h"
#include "agent/limit.h"
#include "agent/linker.h"
#include "agent/locator.h"
#include "agent/meter.h"
#include "agent/nic.h"
#include "agent/node.h"
#include "agent/own_links.h"
#include "agent/publisher.h"
#include "agent/quarantine.h"
#include "agent/remote.h"
#include "agent/tracker.h"
#include "agent/worker.h"
#include "common/trouble.h"

struct nt_agent {
	const struct nt_agent_config *config;
	char node[NT_AGENT_MAX_NODE + 1];
	struct nt_bus *bus;
	struct nt_bus *shelter; /* the same, where it is one; or NULL */
	struct nt_publisher *publisher;
	struct nt_workers workers;
	struct nt_quarantine *quarantine;
	struct nt_remote *remote;
	struct nt_signer *signer; /* or NULL: messages are not signed, or not yet */
	struct nt_enrolment *enrolment; /* or NULL: the key is in a file, or there is none */
	struct nt_trouble enrolment_trouble;
	struct nt_tracker *tracker;
	struct nt_attachment *attachment;
	struct nt_attach *attach;
	struct nt_governor *governor;
	struct nt_linker *linker;
	struct nt_own_links *own_links;
	bool has_unread; /* the last poll ended before the events did */
	uint64_t event_ns; /* boot time of the newest event that was taken */
	uint64_t read_until_ns; /* boot time: events from before it have been taken */
	uint64_t reread_ns; /* spent in this turn by nt_agent_read_all_events() */
	uint64_t event_cpu_ns, event_cpu_seen_ns, balanced_ns; /* of reading and taking events */
	struct nt_interpreters *interpreters;
	struct nt_inspector_client interpreter_client;
	struct nt_discover *discover;
	struct nt_metrics *metrics;
	struct nt_locator *locator;
	struct nt_front *front; /* or NULL: nobody is to ask */
	struct nt_node vector;
	struct nt_nic nic; /* read once a second */
	struct nt_limits limits; /* as often */
	uint32_t recalls; /* that are still allowed in this second */
	int epoll, timer, signals;
	uint64_t event_since_ns; /* monotonic, when the event before was done with */
	uint64_t ticks, taken, lost, attach_failures, looked_ns;
	bool ends;
	uint64_t bus_failed_ns; /* boot time of the last failure; 0: the bus is well */
	bool warned_budget, warned_metrics, warned_tenants, is_sheltered;
	struct nt_trouble bus_trouble;
	bool told_bus; /* a line is to follow when it is over */
	struct nt_trouble memory_trouble;
	uint64_t memory_spared_ns; /* monotonic, when no owner was found that exceeds its share */
	uint64_t
		memory_returned_ns; /* monotonic, when free memory was last returned to the kernel */
};

/* agent/agent_event.c: events of the kernel, as many as one poll may take: has_unread is set where there may be more. */
void nt_agent_read_events(struct nt_agent *agent);
/*
 * All that the kernel has told so far, within what a turn of the loop may spend on that. False: there
 * may be more, and what is done now comes before calls that were made earlier.
 */
NT_MUST_CHECK bool nt_agent_read_all_events(struct nt_agent *agent);
/* The same until *spent_ns, to which it adds, has reached max_ns. */
bool nt_agent_read_all_within(struct nt_agent *agent, uint64_t *spent_ns, uint64_t max_ns);

/*
 * agent/agent_callbacks.c: opens the parts that call back into others. Each is opened before the next;
 * the bus and the signer are opened between the second and the third. Errors are logged.
 */
NT_MUST_CHECK int nt_agent_open_workers(struct nt_agent *agent);
NT_MUST_CHECK int nt_agent_open_probes(struct nt_agent *agent);
NT_MUST_CHECK int nt_agent_open_tracker(struct nt_agent *agent, uint64_t boot);

/* agent/agent_governor.c: what is observed of which process. Several times a second, and once a second. */
NT_MUST_CHECK int nt_agent_open_governor(struct nt_agent *agent);
void nt_agent_govern(struct nt_agent *agent, uint64_t boot_ns, uint64_t real_ns);
void nt_agent_balance(struct nt_agent *agent, uint64_t boot_ns);

/* agent/agent_memory.c: keeps the agent's memory under --memory-max. Often: while events are taken, and several times a second. */
void nt_agent_keep_memory(struct nt_agent *agent);

#endif
