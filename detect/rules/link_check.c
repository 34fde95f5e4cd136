/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attributes a slow network to a NIC or a path. */
#include "detect/rules/link_check.h"

#include <math.h>

#include "detect/baseline/link_span.h"
#include "detect/baseline/matrix_learn.h"
#include "detect/baseline/matrix_name.h"
#include "detect/baseline/network_rate.h"
#include "detect/baseline/nic_counters_judge.h"
#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/rules/link_share.h"
#include "detect/rules/network_measure.h"
#include "detect/thresholds/thresholds.h"

int nt_detect_link_note(struct nt_detect *detect, const struct nt_frame_rank *seen)
{
	detect->links.transfers += seen->transfers;
	if (!seen->nic_retransmits && !seen->nic_errors && !seen->nic_congestion)
		return 0;
	return nt_nic_counters_add(detect, seen);
}

/* ---- when ------------------------------------------------------------------------------------ */

/* Records whether this frame has a step that can be compared with its past. */
static void note_step(struct nt_detect *detect)
{
	bool stepped = false;

	for (uint32_t i = 0; i < detect->ranks && !stepped; i++)
		stepped = detect->rank[i].round_frame == detect->frames;
	if (stepped && detect->step.past.ready)
		detect->links.step_frame = detect->frames;
}

static bool is_step_slow(const struct nt_detect *detect)
{
	const struct nt_cusum *level = &detect->step.level;

	return level->sum >= detect->threshold && nt_cusum_lasts(level) &&
	       nt_cusum_cost(level) >= detect->rules.size_floor;
}

/* What incidents of other families cost, as part of the step: slow means. */
static double cost_of_others(const struct nt_detect *detect)
{
	double others = 0.0;

	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->family != NT_FAMILY_NETWORK && !incident->note)
			others += fmax(0.0, incident->cost);
	}
	return others;
}

/*
 * The excess of the step, as part of it, minus the cost of other incidents. Sends also wait for a
 * slow rank, and in a ring all do.
 */
static double felt(const struct nt_detect *detect)
{
	const double part = (detect->step.step_ns - detect->step.past.value_centre) /
			    fmax(1.0, detect->step.step_ns);
	const double others = cost_of_others(detect);

	return others < NT_EXPLAINS * part ? part - others : 0.0;
}

/*
 * Whether another open incident explains the excess: its worst cost was half of the mean excess, or
 * nearly all of it. Recovery is gradual, and the remainder is not a new fault.
 */
static bool is_explained(const struct nt_detect *detect)
{
	const double part = nt_cusum_cost(&detect->step.level);
	double others = 0.0;

	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->family == NT_FAMILY_NETWORK || incident->note)
			continue;
		/* Until its cost is known, it may explain everything. */
		if (!incident->fault.held)
			return true;
		others += fmax(incident->cost, incident->fault.worst_cost);
	}
	return others >= NT_EXPLAINS * part || part - others < detect->rules.size_floor;
}

static bool is_slow(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	return comm->network.past.ready && nt_network_is_slow(detect, comm);
}

/* The slow communicator that costs most, or NULL. */
static const struct nt_detect_comm *slowest_comm(const struct nt_detect *detect)
{
	const struct nt_detect_comm *slowest = NULL;

	if (!detect->links.slow)
		return NULL;
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_detect_comm *comm = detect->comm[at];

		if (is_slow(detect, comm) &&
		    (!slowest || nt_cusum_cost(nt_network_sum(detect, &comm->network)) >
					 nt_cusum_cost(nt_network_sum(detect, &slowest->network))))
			slowest = comm;
	}
	return slowest;
}

/* The state of the slow network as a whole. */
struct slow_network {
	const struct nt_detect_comm *comm; /* or NULL */
	const struct nt_cell *cell; /* or NULL */
	const struct nt_cusum *level; /* of the evidence that shows it; NULL: none */
	uint64_t onset_ns; /* earliest onset of all evidence */
	enum nt_evidence_text method;
};

static bool name(struct nt_detect *detect, struct slow_network *slow_network,
		 struct nt_culprit_link *ret_link)
{
	struct nt_culprit_link other;
	const bool by_cells = slow_network->cell && nt_matrix_name(detect, ret_link);

	slow_network->method = NT_EVIDENCE_TEXT_DELAY_MATRIX;
	if (by_cells && !ret_link->is_one_end)
		return true;
	/* It may be the NIC of an end without other transfers: counters can decide. */
	slow_network->method = NT_EVIDENCE_TEXT_COUNTERS;
	if (nt_nic_counters_name(detect, slow_network->onset_ns, &other) &&
	    (!by_cells || nt_detect_link_touches(ret_link, other.node))) {
		*ret_link = other;
		return true;
	}
	slow_network->method = NT_EVIDENCE_TEXT_SHARED;
	if (nt_detect_link_share(detect, &other) &&
	    (!by_cells || nt_detect_link_touches(ret_link, other.node))) {
		*ret_link = other;
		return true;
	}
	slow_network->method = NT_EVIDENCE_TEXT_DELAY_MATRIX;
	return by_cells;
}

/* Whether devices time calls over the cell's path, and none of these takes longer than before. */
static bool is_cleared(const struct nt_detect *detect, const struct nt_cell *cell)
{
	const struct nt_culprit_link path = {
		.kind = NT_CULPRIT_PATH, .node = cell->from, .peer = cell->to};
	bool is_timed = false;

	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_detect_comm *comm = detect->comm[at];
		const struct nt_network *network = &comm->network;

		if (network->method != NT_NETWORK_BY_GPU || !network->past.ready ||
		    !nt_network_is_fresh(detect, comm) || network->bytes < NT_DETECT_LINK_BYTES ||
		    !nt_detect_link_goes_over(detect, comm, &path))
			continue;
		if ((network->level.sum >= detect->threshold && nt_cusum_lasts(&network->level)) ||
		    nt_network_is_often_far(detect, network))
			return false;
		is_timed = true;
	}
	return is_timed;
}

/*
 * Whether slow cells alone, with that cost together, explain why steps are longer. Sends may
 * overlap with work. Those in the network alone do not wait: a checkpoint that delays the step is no
 * part of them, so their excess must be half of the step's.
 */
static bool do_cells_explain(const struct nt_detect *detect, const struct nt_cell *cell,
			     double cost)
{
	const double excess = nt_cusum_cost(&detect->step.level) - cost_of_others(detect);

	if (!is_step_slow(detect) || cost < detect->rules.size_floor ||
	    felt(detect) < detect->rules.size_floor)
		return false;
	return !cell->in_network || (cost >= NT_EXPLAINS * excess && !is_cleared(detect, cell));
}

static struct slow_network find_slow_network(const struct nt_detect *detect)
{
	double cost;
	struct slow_network slow_network = {.comm = slowest_comm(detect),
					    .cell = nt_matrix_slowest(detect, &cost)};

	if (slow_network.cell && !slow_network.comm &&
	    !do_cells_explain(detect, slow_network.cell, cost))
		slow_network.cell = NULL;
	if (slow_network.comm)
		slow_network.level = nt_network_sum(detect, &slow_network.comm->network);
	else if (slow_network.cell)
		slow_network.level = &slow_network.cell->level;
	else if (is_step_slow(detect) && !is_explained(detect))
		slow_network.level = &detect->step.level;
	if (!slow_network.level)
		return slow_network;
	slow_network.onset_ns = slow_network.level->onset_ns;
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_detect_comm *comm = detect->comm[at];

		if (nt_network_was_slow(detect, comm) &&
		    nt_network_sum(detect, &comm->network)->onset_ns < slow_network.onset_ns)
			slow_network.onset_ns = nt_network_sum(detect, &comm->network)->onset_ns;
	}
	return slow_network;
}

/* ---- what it says ---------------------------------------------------------------------------- */

/*
 * What a link that was slow from the start costs a rank on it, which makes its transfers one after
 * the other. 0: it was not.
 */
static double cost_from_start(const struct nt_detect *detect, const struct nt_culprit_link *link)
{
	double cost = 0.0;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];
		double sum = 0.0;

		if (!nt_detect_link_touches(link, rank->node))
			continue;
		for (uint32_t j = 0; j < rank->links; j++) {
			const struct nt_detect_comm *comm = rank->link[j].comm;

			if (comm->network.reference > 0.0 && nt_network_is_fresh(detect, comm) &&
			    nt_detect_link_goes_over(detect, comm, link))
				sum += fmax(0.0, comm->network.cost);
		}
		cost = fmax(cost, sum);
	}
	return fmin(1.0, cost);
}

/* The link's cost in this frame; negative: unknown. */
static double cost_of(const struct nt_detect *detect, const struct nt_culprit_link *link)
{
	double cost = cost_from_start(detect, link), step;

	/* The past of the step does not show it. */
	if (cost > 0.0)
		return cost;
	cost = nt_matrix_cost(detect, link);
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_detect_comm *comm = detect->comm[at];

		if (comm->network.past.ready && comm->network.frame == detect->frames &&
		    nt_detect_link_goes_over(detect, comm, link))
			cost = fmax(cost, nt_stats_clip(comm->network.cost, -1.0, 1.0));
	}
	if (detect->links.step_frame != detect->frames)
		return cost;
	step = (detect->step.step_ns - detect->step.past.value_centre) /
	       fmax(1.0, detect->step.step_ns);
	/* At most the excess of the step; that excess if nothing else is known. */
	return cost < 0.0 ? step : fmin(cost, fmax(0.0, step));
}

static void add_row(struct nt_proposal *proposal, enum nt_evidence_text what,
		    enum nt_evidence_text unit, enum nt_evidence_text method, double value,
		    double peers, uint32_t windows)
{
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = (uint8_t)what,
		.unit = (uint8_t)unit,
		.method = (uint8_t)method,
		.value = value,
		.peers = peers,
		.windows = windows,
	};
}

static void add_evidence(struct nt_detect *detect, const struct slow_network *slow_network,
			 const struct nt_culprit_link *link, struct nt_proposal *proposal)
{
	static const enum nt_evidence_text counted[NT_NIC_COUNTER_KINDS] = {
		[NT_NIC_COUNTER_RETRANSMITS] = NT_EVIDENCE_TEXT_PORT_RETRANSMITS,
		[NT_NIC_COUNTER_ERRORS] = NT_EVIDENCE_TEXT_PORT_ERRORS,
		[NT_NIC_COUNTER_CONGESTION] = NT_EVIDENCE_TEXT_PORT_CONGESTION,
	};
	struct nt_nic_counter_account port;
	double now, before;
	uint32_t windows;

	if (nt_matrix_mean(detect, link, true, &now, &before, &windows))
		add_row(proposal, NT_EVIDENCE_TEXT_SENDING, NT_EVIDENCE_TEXT_MS,
			NT_EVIDENCE_TEXT_DELAY_MATRIX, now, before, windows);
	if (nt_matrix_mean(detect, link, false, &now, &before, &windows))
		add_row(proposal, NT_EVIDENCE_TEXT_RECEIVING, NT_EVIDENCE_TEXT_MS,
			NT_EVIDENCE_TEXT_DELAY_MATRIX, now, before, windows);
	if (nt_nic_counters_rose(detect, link->node, &port) ||
	    (link->kind == NT_CULPRIT_PATH && nt_nic_counters_rose(detect, link->peer, &port)))
		add_row(proposal, counted[port.kind], NT_EVIDENCE_TEXT_EVENTS_A_SECOND,
			NT_EVIDENCE_TEXT_COUNTERS, port.rate, port.usual, port.windows);
	if (slow_network->comm)
		add_row(proposal, NT_EVIDENCE_TEXT_TRANSFER, NT_EVIDENCE_TEXT_MS,
			slow_network->comm->network.reference > 0.0 ? NT_EVIDENCE_TEXT_ALIKE
								    : slow_network->method,
			nt_network_shown(detect, &slow_network->comm->network) / 1e6,
			nt_network_usual(&slow_network->comm->network) / 1e6,
			slow_network->level->windows);
	add_row(proposal, NT_EVIDENCE_TEXT_STEP, NT_EVIDENCE_TEXT_MS, NT_EVIDENCE_TEXT_OWN_PAST,
		detect->step.step_ns / 1e6, detect->step.past.value_centre / 1e6,
		detect->step.level.windows);
}

static uint8_t best_tier(const struct nt_detect *detect)
{
	uint8_t tier = NT_FRAME_T1;

	for (uint32_t i = 0; i < detect->ranks; i++)
		if (detect->rank[i].round_frame == detect->frames && detect->rank[i].tier > tier)
			tier = detect->rank[i].tier;
	return tier;
}

/* The first open incident of a link that touches this one; NULL: of any link. */
static struct nt_detect_incident *find_open(const struct nt_detect *detect,
					    const struct nt_culprit_link *link)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		struct nt_detect_incident *incident = detect->incidents.open[i];
		struct nt_culprit_link is;

		if (incident->family != NT_FAMILY_NETWORK ||
		    !nt_detect_link_is_kind(incident->kind))
			continue;
		is = nt_detect_link_of(incident->kind, incident->comm);
		if (!link || nt_detect_link_touches(link, is.node) ||
		    (is.kind == NT_CULPRIT_PATH && nt_detect_link_touches(link, is.peer)))
			return incident;
	}
	return NULL;
}

/* Whether the slow network uses the link of that incident. */
static bool is_of(const struct nt_detect *detect, const struct slow_network *slow_network,
		  const struct nt_detect_incident *incident)
{
	const struct nt_culprit_link link = nt_detect_link_of(incident->kind, incident->comm);

	if (slow_network->comm)
		return nt_detect_link_goes_over(detect, slow_network->comm, &link);
	return !slow_network->cell ||
	       nt_detect_link_holds(&link, slow_network->cell->from, slow_network->cell->to);
}

/*
 * Whether the current name may replace that of an incident. Evidence while it costs nothing belongs
 * to another fault, as do counters that rise long after the onset. Transfer times by peer are valid
 * for each window.
 */
static bool may_rename(const struct nt_detect *detect, const struct slow_network *slow_network,
		       const struct nt_detect_incident *open)
{
	if (open->state == NT_INCIDENT_PENDING)
		return true;
	if (open->recovery.bad_ns != detect->end_ns)
		return false;
	return slow_network->method == NT_EVIDENCE_TEXT_DELAY_MATRIX;
}

/*
 * Keeps one incident while the name of its link changes: a pending incident is renamed at once, a
 * firing one if the new name lasts.
 */
static void settle_name(struct nt_detect *detect, const struct slow_network *slow_network,
			struct nt_culprit_link *link)
{
	struct nt_links *links = &detect->links;
	struct nt_detect_incident *open = find_open(detect, link);
	struct nt_culprit_link is;

	if (!open) {
		open = find_open(detect, NULL);
		/* The named link is still slow: only transfer times by peer can contradict. */
		if (!open || slow_network->method == NT_EVIDENCE_TEXT_DELAY_MATRIX ||
		    !is_of(detect, slow_network, open))
			return;
		*link = nt_detect_link_of(open->kind, open->comm);
		return;
	}
	is = nt_detect_link_of(open->kind, open->comm);
	if (nt_detect_link_is_same(&is, link)) {
		links->others = 0;
		*link = is;
		return;
	}
	if (!may_rename(detect, slow_network, open)) {
		*link = is;
		return;
	}
	links->others = nt_detect_link_is_same(&links->other, link) ? links->others + 1 : 1;
	links->other = *link;
	if (open->state != NT_INCIDENT_PENDING && links->others < NT_DETECT_LINK_FRAMES) {
		*link = is;
		return;
	}
	links->others = 0;
	open->kind = link->kind;
	open->comm = nt_detect_link_key(link);
	open->changed = true;
}

/* Whether the time in the network is known of transfers over the link. */
static bool is_watched(const struct nt_detect *detect, const struct nt_culprit_link *link)
{
	const struct nt_matrix *matrix = &detect->links.matrix;

	for (uint32_t i = 0; i < matrix->cells; i++) {
		const struct nt_cell *cell = &matrix->cell[i];

		if (cell->in_network && nt_detect_link_holds(link, cell->from, cell->to) &&
		    cell->past.ready && cell->frame + NT_INCIDENT_PATIENCE >= detect->frames)
			return true;
	}
	return false;
}

static bool is_part(const struct nt_detect *detect, const struct nt_detect_incident *incident)
{
	const struct nt_detect_comm *comm;

	if (incident->kind != NT_CULPRIT_COMMUNICATOR)
		return false;
	comm = nt_detect_comm_find(detect->comms, incident->comm);
	return comm && nt_detect_link_explains(detect, comm);
}

static int raise(struct nt_detect *detect, const struct slow_network *slow_network)
{
	const struct nt_culprit_link *link = &detect->links.now;
	const double cost = cost_of(detect, link);
	struct nt_proposal proposal = {
		.family = NT_FAMILY_NETWORK,
		.class = NT_CLASS_NETWORK,
		.cause = slow_network->comm && nt_network_loses(&slow_network->comm->network)
				 ? NT_EVIDENCE_TEXT_TCP_LOSS
				 : NT_EVIDENCE_TEXT_NONE,
		.kind = link->kind,
		.comm = nt_detect_link_key(link),
		.onset_ns = slow_network->onset_ns,
		.cost = fmax(0.0, cost),
		.unsure = cost_from_start(detect, link) > 0.0,
		.tier = slow_network->comm ? slow_network->comm->network.tier : best_tier(detect),
		.chance = nt_cusum_chance(slow_network->level->sum, &detect->rules, detect->ranks,
					  1.0),
	};
	int r = nt_incidents_join(detect, &proposal, is_part);

	if (r < 0)
		return r;
	add_evidence(detect, slow_network, link, &proposal);
	return nt_incidents_raise(detect, &proposal);
}

/* Judges all open link incidents, whatever is named now. */
static void judge_open(struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];
		struct nt_culprit_link link;
		double cost;

		if (incident->family != NT_FAMILY_NETWORK ||
		    !nt_detect_link_is_kind(incident->kind))
			continue;
		link = nt_detect_link_of(incident->kind, incident->comm);
		cost = cost_of(detect, &link);
		if (cost >= 0.0 || detect->links.step_frame == detect->frames)
			nt_incidents_judge(detect, NT_FAMILY_NETWORK, incident->comm, cost);
	}
}

int nt_detect_link_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	struct nt_links *links = &detect->links;
	struct nt_culprit_link link = {0};
	struct slow_network slow_network;
	int r;

	links->now = (struct nt_culprit_link){0};
	if (links->transfers) {
		r = nt_matrix_learn(detect, frame, links->transfers);
		if (r < 0)
			return r;
	}
	links->transfers = 0;
	nt_nic_counters_judge(detect);
	note_step(detect);
	judge_open(detect);
	slow_network = find_slow_network(detect);
	if (!slow_network.level)
		return 0;
	if (name(detect, &slow_network, &link)) {
		settle_name(detect, &slow_network, &link);
	} else {
		/* An incident continues even if its link has become ambiguous. */
		const struct nt_detect_incident *open = find_open(detect, NULL);

		if (!open || !is_of(detect, &slow_network, open))
			return 0;
		link = nt_detect_link_of(open->kind, open->comm);
		/* A longer step is no evidence of a link whose own transfers are measured. */
		if (slow_network.level == &detect->step.level && is_watched(detect, &link))
			return 0;
	}
	links->now = link;
	return raise(detect, &slow_network);
}
