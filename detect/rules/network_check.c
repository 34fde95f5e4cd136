/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Raises slow communicators. */
#include "detect/rules/network_check.h"

#include <math.h>

#include "detect/baseline/link_span.h"
#include "detect/baseline/network_parts.h"
#include "detect/baseline/network_rate.h"
#include "detect/incidents/incident_raise.h"
#include "detect/model/detector_state.h"
#include "detect/rules/network_measure.h"

/* Number of communicators that became slow with it. */
static uint32_t count_parts(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	uint32_t parts = 0;

	for (uint32_t i = 0; i < detect->comm_count; i++) {
		const struct nt_detect_comm *other = detect->comm[i];

		parts += nt_network_was_slow(detect, other) &&
			 nt_network_began_at(detect, &other->network,
					     nt_network_sum(detect, &comm->network)->onset_ns) &&
			 nt_detect_link_is_shared(detect, comm, other);
	}
	return parts;
}

static int raise(struct nt_detect *detect, const struct nt_detect_comm *comm, double cost)
{
	static const enum nt_evidence_text method[NT_NETWORK_METHODS] = {
		[NT_NETWORK_SAMPLES] = NT_EVIDENCE_TEXT_SAMPLES,
		[NT_NETWORK_SHORTEST] = NT_EVIDENCE_TEXT_SHORTEST,
		[NT_NETWORK_LEAST_WAIT] = NT_EVIDENCE_TEXT_OWN_PAST,
		[NT_NETWORK_BY_GPU] = NT_EVIDENCE_TEXT_SHORTEST,
	};
	const struct nt_network *network = &comm->network;
	const struct nt_cusum *sum = nt_network_sum(detect, network);
	const uint32_t parts = count_parts(detect, comm);
	struct nt_proposal proposal = {
		.family = NT_FAMILY_NETWORK,
		.class = NT_CLASS_NETWORK,
		.kind = NT_CULPRIT_COMMUNICATOR,
		.comm = comm->id,
		.rank = comm->member,
		.ranks = comm->members,
		.onset_ns = sum->onset_ns,
		.cause = nt_network_loses(network) ? NT_EVIDENCE_TEXT_TCP_LOSS
						   : NT_EVIDENCE_TEXT_NONE,
		.cost = cost,
		.tier = network->tier,
		.chance = nt_cusum_chance(sum->sum, &detect->rules, detect->ranks, 1.0),
	};

	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_TRANSFER,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = (uint8_t)method[network->method],
		.value = nt_network_shown(detect, network) / 1e6,
		.peers = nt_network_usual(network) / 1e6,
		.width = network->past.value_width * nt_network_usual(network) / 1e6,
		.windows = sum->windows,
	};
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_STEP,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = NT_EVIDENCE_TEXT_OWN_PAST,
		.value = network->step_ns / 1e6,
		.peers = detect->step.past.value_centre / 1e6,
		.windows = sum->windows,
	};
	if (network->retransmits > 0.0)
		proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
			.what = NT_EVIDENCE_TEXT_RETRANSMITS,
			.unit = NT_EVIDENCE_TEXT_EVENTS_A_SECOND,
			.method = NT_EVIDENCE_TEXT_TRACEPOINTS,
			.value = network->retransmits,
			.peers = network->retransmits_usual,
			.windows = sum->windows,
		};
	if (parts > 1)
		proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
			.what = NT_EVIDENCE_TEXT_PARTS,
			.unit = NT_EVIDENCE_TEXT_NUMBER,
			.method = NT_EVIDENCE_TEXT_OWN_PAST,
			.value = parts,
			.peers = detect->comm_count,
			.windows = sum->windows,
		};
	return nt_incidents_raise(detect, &proposal);
}

static bool is_in_open(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		if (nt_network_is_part(detect, detect->incidents.open[i], comm))
			return true;
	}
	return false;
}

static bool is_named(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];
		struct nt_culprit_link link;

		if (incident->family != NT_FAMILY_NETWORK ||
		    !nt_detect_link_is_kind(incident->kind))
			continue;
		link = nt_detect_link_of(incident->kind, incident->comm);
		if (nt_detect_link_goes_over(detect, comm, &link))
			return true;
	}
	return false;
}

/*
 * One that was always slow, and shares no NIC with others that were, has a longer way. That is its
 * normal from then on: it must not hide what becomes slow later.
 */
static void settle_always_slow(struct nt_detect *detect, struct nt_detect_comm *comm)
{
	struct nt_network *network = &comm->network;

	if (network->reference <= 0.0 || network->level.windows <= NT_PAST_WINDOWS ||
	    is_named(detect, comm))
		return;
	network->reference = 0.0;
	nt_network_clear(network);
}

/* A total order, independent of position. */
static bool is_worse(const struct nt_detect_comm *comm, const struct nt_detect_comm *other)
{
	if (comm->network.cost != other->network.cost)
		return comm->network.cost > other->network.cost;
	return comm->id < other->id;
}

/*
 * Communicators that become slow together and share nodes have one cause: they form one incident,
 * named by the worst of them.
 */
int nt_network_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	const struct nt_detect_comm *worst = NULL;

	(void)frame;
	if (!detect->links.slow)
		return 0;
	for (uint32_t i = 0; i < detect->comm_count; i++) {
		struct nt_detect_comm *comm = detect->comm[i];
		int r;

		settle_always_slow(detect, comm);
		/* One that was always slow may have a longer way: only a common NIC is a fault. */
		if (!nt_network_is_slow(detect, comm) || comm->network.reference > 0.0 ||
		    nt_detect_link_explains(detect, comm))
			continue;
		if (nt_incidents_find(detect, NT_FAMILY_NETWORK, comm->id)) {
			r = raise(detect, comm, fmax(0.0, comm->network.cost));
			if (r < 0)
				return r;
		} else if (!is_in_open(detect, comm) && (!worst || is_worse(comm, worst))) {
			worst = comm;
		}
	}
	/* Others with a different onset are raised in the next window. */
	return worst ? raise(detect, worst, fmax(0.0, worst->network.cost)) : 0;
}
