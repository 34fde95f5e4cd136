/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Judges NIC counters. */
#include "detect/baseline/nic_counters_judge.h"

#include <math.h>
#include <string.h>

#include "common/base/search.h"
#include "detect/math/array.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

static struct nt_nic_port *find(const struct nt_nic_ports *ports, uint32_t node, uint32_t *ret_at)
{
	const uint32_t low = nt_search_first(0, ports->ports, i, ports->port[i].node >= node);

	*ret_at = low;
	return low < ports->ports && ports->port[low].node == node ? &ports->port[low] : NULL;
}

int nt_nic_ports_note(struct nt_detect *detect, const struct nt_frame_rank *seen)
{
	const uint64_t counted[NT_NIC_PORT_KINDS] = {seen->nic_retransmits, seen->nic_errors,
						     seen->nic_congestion};
	struct nt_nic_ports *ports = &detect->links.ports;
	struct nt_nic_port *port;
	uint32_t at;
	int r;

	if (seen->node == NT_FRAME_NO_NODE || !seen->window_ns)
		return 0;
	port = find(ports, seen->node, &at);
	if (!port) {
		if (ports->ports == NT_NIC_PORTS_MAX) {
			ports->dropped++;
			return 0;
		}
		r = nt_array_room((void **)&ports->port, &ports->port_cap, ports->ports,
				  sizeof(*ports->port));
		if (r < 0)
			return r;
		port = &ports->port[at];
		memmove(port + 1, port, (ports->ports - at) * sizeof(*port));
		/* First non-zero counters of the node. */
		*port = (struct nt_nic_port){.node = seen->node,
					     .learned = detect->frames > NT_PAST_WINDOWS
								? NT_PAST_WINDOWS
								: (uint32_t)detect->frames - 1};
		ports->ports++;
	}
	if (port->frame != detect->frames)
		memset(port->rate, 0, sizeof(port->rate));
	port->frame = detect->frames;
	/* All ranks of the node report the same, except for different window starts. */
	for (int i = 0; i < NT_NIC_PORT_KINDS; i++)
		port->rate[i] =
			fmax(port->rate[i], (double)counted[i] * 1e9 / (double)seen->window_ns);
	return 0;
}

static double limit(const struct nt_nic_port *port, int kind)
{
	return NT_NIC_PORT_TIMES * fmax(0.0, port->usual[kind]) + NT_NIC_PORT_MORE;
}

static void judge(struct nt_detect *detect, struct nt_nic_port *port)
{
	struct nt_cusum_window window = {.start_ns = detect->start_ns,
					 .frame = detect->frames,
					 .ceiling = NT_CUSUM_CEILING * detect->threshold};

	if (port->frame != detect->frames)
		memset(port->rate, 0, sizeof(port->rate));
	if (port->learned < NT_PAST_WINDOWS) {
		/* A rise during learning is not part of the baseline. */
		for (int i = 0; i < NT_NIC_PORT_KINDS; i++)
			if (port->learned < NT_PAST_SOME || port->rate[i] <= limit(port, i))
				port->usual[i] = fmax(port->usual[i], port->rate[i]);
		if (port->learned++ < NT_PAST_SOME)
			return;
	}
	for (int i = 0; i < NT_NIC_PORT_KINDS; i++)
		window.peer_deviation = fmax(window.peer_deviation, port->rate[i] / limit(port, i));
	window.z = window.peer_deviation > 1.0 ? detect->rules.z_clip : 0.0;
	window.cost = 1.0; /* the cost is judged elsewhere */
	nt_cusum_add(&port->level, &detect->rules, &window);
	for (int i = 0; i < NT_NIC_PORT_KINDS; i++)
		port->since[i] = port->level.windows ? port->since[i] + port->rate[i] : 0.0;
}

void nt_nic_ports_judge(struct nt_detect *detect)
{
	struct nt_nic_ports *ports = &detect->links.ports;

	for (uint32_t i = 0; i < ports->ports; i++)
		judge(detect, &ports->port[i]);
}

/* The mean including the largest window, as counters are read in bursts. */
static double weight(const struct nt_nic_port *port)
{
	return port->level.windows ? port->level.peer_deviation / port->level.windows : 0.0;
}

/* The period in which rises have the same cause. */
struct span {
	double first_ns, last_ns;
};

/* Whether the counters rose in the period, certain or not yet. */
static bool stirred(const struct nt_nic_port *port, const struct span *span)
{
	const double onset_ns = (double)port->level.onset_ns;

	return port->level.sum > 0.0 && onset_ns >= span->first_ns && onset_ns <= span->last_ns;
}

static bool turned(const struct nt_nic_port *port, const struct span *span)
{
	/* An abnormal window adds the maximum that the clip allows. */
	const double sure = NT_NIC_PORT_WINDOWS * nt_cusum_step();

	return port->level.sum >= sure && stirred(port, span);
}

/*
 * The time around the onset. It is extended by nodes that rose soon after one in it, as the onset
 * may have another's time.
 */
static struct span span_of(const struct nt_detect *detect, uint64_t onset_ns)
{
	const struct nt_nic_ports *ports = &detect->links.ports;
	const double window_ns = detect->window_ns;
	const struct span then = {.first_ns = (double)onset_ns - NT_NIC_PORT_BEFORE * window_ns,
				  .last_ns = (double)onset_ns + NT_NIC_PORT_AFTER * window_ns};
	struct span span = then;

	for (uint32_t i = 0; i < ports->ports; i++)
		if (turned(&ports->port[i], &then))
			span.last_ns = fmax(span.last_ns, (double)ports->port[i].level.onset_ns +
								  NT_NIC_PORT_AFTER * window_ns);
	return span;
}

bool nt_nic_ports_name(const struct nt_detect *detect, uint64_t onset_ns,
		       struct nt_culprit_link *ret_link)
{
	const struct nt_nic_ports *ports = &detect->links.ports;
	struct nt_culprit_link link = {.node = NT_FRAME_NO_NODE, .peer = NT_FRAME_NO_NODE};
	const struct span span = span_of(detect, onset_ns);
	double most = 0.0;
	uint32_t n = 0;

	/* Wait for the node that counts most: it is chance if its peers are certain sooner. */
	for (uint32_t i = 0; i < ports->ports; i++)
		if (stirred(&ports->port[i], &span))
			most = fmax(most, weight(&ports->port[i]));
	for (uint32_t i = 0; i < ports->ports && most > 0.0; i++) {
		const struct nt_nic_port *port = &ports->port[i];

		if (!turned(port, &span) || weight(port) < NT_NIC_PORT_LIKE * most)
			continue;
		if (n == 0)
			link.node = port->node;
		else
			link.peer = port->node;
		n++;
	}
	if (n < 1 || n > 2)
		return false;
	link.kind = n == 1 ? NT_CULPRIT_NIC : NT_CULPRIT_PATH;
	*ret_link = link;
	return true;
}

bool nt_nic_ports_tell(const struct nt_detect *detect, uint32_t node,
		       struct nt_nic_port_account *ret_account)
{
	uint32_t at;
	const struct nt_nic_port *port = find(&detect->links.ports, node, &at);
	struct nt_nic_port_account account = {.kind = NT_NIC_PORT_RETRANSMITS};

	if (!port || !port->level.windows)
		return false;
	for (int i = 1; i < NT_NIC_PORT_KINDS; i++)
		if (port->since[i] / limit(port, i) >
		    port->since[account.kind] / limit(port, (int)account.kind))
			account.kind = (enum nt_nic_port_kind)i;
	account.rate = port->since[account.kind] / port->level.windows;
	account.usual = port->usual[account.kind];
	account.windows = port->level.windows;
	if (account.rate <= account.usual)
		return false;
	*ret_account = account;
	return true;
}
