/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packets that TCP loses. */
#include "detect/incidents/network_loss.h"

#include <math.h>

#include "detect/thresholds/thresholds.h"

/* Of all members, a second; a member whose tracepoints are not attached adds nothing. */
static double retransmits_of(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	double rate = 0.0;

	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (rank && rank->round_frame)
			rate += rank->step_metric[NT_STEP_METRIC_RETRANSMITS] * 1e9 /
				fmax(1.0, rank->step_metric[NT_STEP_METRIC_STEP]);
	}
	return rate;
}

/*
 * The usual rate is learned while neither the network nor the step is slow. It decreases faster than
 * it increases, as a network that loses packets is slow in some rounds only.
 */
void nt_network_loss_learn(const struct nt_detect *detect, struct nt_detect_comm *comm)
{
	struct nt_network *network = &comm->network;
	const double rate = retransmits_of(detect, comm);
	const double more = rate - network->retransmits_usual;
	double part;

	if (network->loss_rounds < UINT32_MAX)
		network->loss_rounds++;
	part = fmax(NT_METRIC_MEAN_PART, 1.0 / network->loss_rounds);
	if (!network->level.windows && !network->rate.windows && !detect->step.level.windows)
		network->retransmits_usual += (more > 0.0 ? part * part : part) * more;
	network->retransmits += part * (rate - network->retransmits);
}

/* The communicator whose members send many packets again, more than those of others, or NULL. */
static const struct nt_detect_comm *find_losing(const struct nt_detect *detect)
{
	const struct nt_detect_comm *losing = NULL;

	for (uint32_t i = 0; i < detect->comm_count; i++) {
		const struct nt_detect_comm *comm = detect->comm[i];

		if (!nt_network_loses(&comm->network) || comm->first_frame != detect->frames)
			continue;
		if (!losing || comm->network.retransmits > losing->network.retransmits ||
		    (comm->network.retransmits == losing->network.retransmits &&
		     comm->id < losing->id))
			losing = comm;
	}
	return losing;
}

/* What was named stays so in rounds without a call of it. */
static const struct nt_detect_comm *find_named(const struct nt_detect *detect,
					       enum nt_family family)
{
	const struct nt_detect_incident *open = nt_incidents_find(detect, family, 0);
	const struct nt_detect_comm *comm = NULL;

	if (open && open->cause == NT_EVIDENCE_TEXT_TCP_LOSS)
		comm = nt_detect_comm_find(detect->comms, open->comm);
	/* One that is no longer called keeps its last rate. */
	if (comm && (double)detect->end_ns - (double)comm->moved_ns >
			    fmax((double)detect->rules.resolve_min_ns,
				 detect->rules.resolve_windows * detect->window_ns))
		return NULL;
	return comm && comm->network.retransmits >
				       NT_NIC_COUNTER_TIMES * comm->network.retransmits_usual +
					       NT_TCP_LOSS_LEFT
		       ? comm
		       : NULL;
}

bool nt_network_loss_is_named(const struct nt_detect *detect, enum nt_family family)
{
	return find_named(detect, family) != NULL;
}

void nt_network_loss_blame(const struct nt_detect *detect, struct nt_proposal *proposal)
{
	const struct nt_detect_comm *comm =
		find_named(detect, proposal->family) ?: find_losing(detect);

	if (!comm)
		return;
	proposal->class = NT_CLASS_NETWORK;
	proposal->cause = NT_EVIDENCE_TEXT_TCP_LOSS;
	proposal->note = proposal->unsure = false;
	proposal->kind = NT_CULPRIT_COMMUNICATOR;
	proposal->comm = comm->id;
	proposal->rank = comm->member;
	proposal->ranks = comm->members;
	proposal->tier = comm->network.tier;
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_RETRANSMITS,
		.unit = NT_EVIDENCE_TEXT_EVENTS_A_SECOND,
		.method = NT_EVIDENCE_TEXT_TRACEPOINTS,
		.value = comm->network.retransmits,
		.peers = comm->network.retransmits_usual,
	};
}
