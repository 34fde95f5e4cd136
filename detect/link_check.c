/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which NIC, or which path. */
#include "detect/link_check.h"

#include <math.h>

#include "detect/core.h"
#include "detect/incident_raise.h"
#include "detect/incident_retire.h"
#include "detect/link_share.h"
#include "detect/link_span.h"
#include "detect/matrix_learn.h"
#include "detect/matrix_name.h"
#include "detect/network_measure.h"
#include "detect/port_judge.h"
#include "detect/stats.h"
#include "detect/thresholds.h"

int nt_link_note(struct nt_detect *detect, const struct nt_frame_rank *seen)
{
	detect->links.told += seen->transfers;
	if (!seen->nic_retransmits && !seen->nic_errors && !seen->nic_congestion)
		return 0;
	return nt_ports_note(detect, seen);
}

/* ---- when ---------------------------------------------------------------------------------------- */

/* Whether this frame tells of the job's step, against its own past. */
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

/*
 * The part of the step that it is longer by than before, less what others make it longer by: a rank that
 * is slow is waited for in sends as well, and in a ring by all. What they cost is a slow mean.
 */
static double felt(const struct nt_detect *detect)
{
	const double part = (detect->step.step_ns - detect->step.past.value_centre) /
			    fmax(1.0, detect->step.step_ns);
	double others = 0.0;

	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_incident *incident = detect->incidents.open[i];

		if (incident->family != NT_FAMILY_NETWORK && !incident->note)
			others += fmax(0.0, incident->cost);
	}
	return others < NT_EXPLAINS * part ? part - others : 0.0;
}

/*
 * Something else is open that makes the job slow: at its worst it cost half of what the step is longer by on
 * average, or all but little. What ends is slow to be over, and what is left of it is no other fault.
 */
static bool is_explained(const struct nt_detect *detect)
{
	const double part = nt_cusum_cost(&detect->step.level);
	double others = 0.0;

	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_incident *incident = detect->incidents.open[i];

		if (incident->family == NT_FAMILY_NETWORK || incident->note)
			continue;
		/* Until it is known what it costs, it may be anything. */
		if (!incident->fault.held)
			return true;
		others += fmax(incident->cost, incident->fault.worst_cost);
	}
	return others >= NT_EXPLAINS * part || part - others < detect->rules.size_floor;
}

static bool is_slow(const struct nt_detect *detect, const struct nt_comm *comm)
{
	return comm->network.past.ready && nt_network_is_slow(detect, comm);
}

/* The slow communicator that costs most, or NULL. */
static const struct nt_comm *slowest_comm(const struct nt_detect *detect)
{
	const struct nt_comm *slowest = NULL;

	if (!detect->links.slow)
		return NULL;
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_comm *comm = detect->comm[at];

		if (is_slow(detect, comm) &&
		    (!slowest ||
		     nt_cusum_cost(&comm->network.level) > nt_cusum_cost(&slowest->network.level)))
			slowest = comm;
	}
	return slowest;
}

/* What is known of the slow network as a whole. */
struct trouble {
	const struct nt_comm *comm; /* or NULL */
	const struct nt_cell *cell; /* or NULL */
	const struct nt_cusum *level; /* of whichever showed it, NULL: none does */
	uint64_t onset_ns; /* the earliest of all that show it */
	enum nt_word method;
};

static bool name(struct nt_detect *detect, struct trouble *trouble,
		 struct nt_culprit_link *ret_link)
{
	struct nt_culprit_link other;
	const bool by_cells = trouble->cell && nt_matrix_name(detect, ret_link);

	trouble->method = NT_WORD_DELAY_MATRIX;
	if (by_cells && !ret_link->is_one_end)
		return true;
	/* It may be the NIC of an end that talks to nobody else: others can tell. */
	trouble->method = NT_WORD_COUNTERS;
	if (nt_ports_name(detect, trouble->onset_ns, &other) &&
	    (!by_cells || nt_link_touches(ret_link, other.node))) {
		*ret_link = other;
		return true;
	}
	trouble->method = NT_WORD_SHARED;
	if (nt_link_share(detect, &other) && (!by_cells || nt_link_touches(ret_link, other.node))) {
		*ret_link = other;
		return true;
	}
	trouble->method = NT_WORD_DELAY_MATRIX;
	return by_cells;
}

static struct trouble find_trouble(const struct nt_detect *detect)
{
	double cost;
	struct trouble trouble = {.comm = slowest_comm(detect),
				  .cell = nt_matrix_slowest(detect, &cost)};

	/* Sends may overlap with work: what they take longer must be felt. */
	if (trouble.cell && !trouble.comm &&
	    (!is_step_slow(detect) || cost < detect->rules.size_floor ||
	     felt(detect) < detect->rules.size_floor))
		trouble.cell = NULL;
	if (trouble.comm)
		trouble.level = &trouble.comm->network.level;
	else if (trouble.cell)
		trouble.level = &trouble.cell->level;
	else if (is_step_slow(detect) && !is_explained(detect))
		trouble.level = &detect->step.level;
	if (!trouble.level)
		return trouble;
	trouble.onset_ns = trouble.level->onset_ns;
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_comm *comm = detect->comm[at];

		if (nt_network_was_slow(detect, comm) &&
		    comm->network.level.onset_ns < trouble.onset_ns)
			trouble.onset_ns = comm->network.level.onset_ns;
	}
	return trouble;
}

/* ---- what it says -------------------------------------------------------------------------------- */

/* What the link cost in this frame; negative: nothing tells. */
static double cost_of(const struct nt_detect *detect, const struct nt_culprit_link *link)
{
	double cost = nt_matrix_cost(detect, link), step;

	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_comm *comm = detect->comm[at];

		if (comm->network.past.ready && comm->network.frame == detect->frames &&
		    nt_link_goes_over(detect, comm, link))
			cost = fmax(cost, nt_stats_clip(comm->network.cost, -1.0, 1.0));
	}
	if (detect->links.step_frame != detect->frames)
		return cost;
	step = (detect->step.step_ns - detect->step.past.value_centre) /
	       fmax(1.0, detect->step.step_ns);
	/* Not more than the step feels; and where nothing else tells, that. */
	return cost < 0.0 ? step : fmin(cost, fmax(0.0, step));
}

static void add_row(struct nt_proposal *proposal, enum nt_word what, enum nt_word unit,
		    enum nt_word method, double value, double peers, uint32_t windows)
{
	proposal->evidence[proposal->evidences++] = (struct nt_evidence){
		.what = (uint8_t)what,
		.unit = (uint8_t)unit,
		.method = (uint8_t)method,
		.value = value,
		.peers = peers,
		.windows = windows,
	};
}

static void tell(struct nt_detect *detect, const struct trouble *trouble,
		 const struct nt_culprit_link *link, struct nt_proposal *proposal)
{
	static const enum nt_word counted[NT_PORT_KINDS] = {
		[NT_PORT_RETRANSMITS] = NT_WORD_PORT_RETRANSMITS,
		[NT_PORT_ERRORS] = NT_WORD_PORT_ERRORS,
		[NT_PORT_CONGESTION] = NT_WORD_PORT_CONGESTION,
	};
	struct nt_port_account port;
	double now, before;
	uint32_t windows;

	if (nt_matrix_tell(detect, link, true, &now, &before, &windows))
		add_row(proposal, NT_WORD_SENDING, NT_WORD_MS, NT_WORD_DELAY_MATRIX, now, before,
			windows);
	if (nt_matrix_tell(detect, link, false, &now, &before, &windows))
		add_row(proposal, NT_WORD_RECEIVING, NT_WORD_MS, NT_WORD_DELAY_MATRIX, now, before,
			windows);
	if (nt_ports_tell(detect, link->node, &port) ||
	    (link->kind == NT_CULPRIT_PATH && nt_ports_tell(detect, link->peer, &port)))
		add_row(proposal, counted[port.kind], NT_WORD_EVENTS_A_SECOND, NT_WORD_COUNTERS,
			port.rate, port.usual, port.windows);
	if (trouble->comm)
		add_row(proposal, NT_WORD_TRANSFER, NT_WORD_MS, trouble->method,
			trouble->comm->network.transfer / 1e6,
			nt_network_usual(&trouble->comm->network) / 1e6,
			trouble->comm->network.level.windows);
	add_row(proposal, NT_WORD_STEP, NT_WORD_MS, NT_WORD_OWN_PAST, detect->step.step_ns / 1e6,
		detect->step.past.value_centre / 1e6, detect->step.level.windows);
}

static uint8_t best_tier(const struct nt_detect *detect)
{
	uint8_t tier = NT_FRAME_T1;

	for (uint32_t i = 0; i < detect->ranks; i++)
		if (detect->rank[i].round_frame == detect->frames && detect->rank[i].tier > tier)
			tier = detect->rank[i].tier;
	return tier;
}

/* The open incident of a link, the first that touches this one, NULL: of any. */
static struct nt_incident *find_open(const struct nt_detect *detect,
				     const struct nt_culprit_link *link)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		struct nt_incident *incident = detect->incidents.open[i];
		struct nt_culprit_link is;

		if (incident->family != NT_FAMILY_NETWORK || !nt_link_is_kind(incident->kind))
			continue;
		is = nt_link_of(incident->kind, incident->comm);
		if (!link || nt_link_touches(link, is.node) ||
		    (is.kind == NT_CULPRIT_PATH && nt_link_touches(link, is.peer)))
			return incident;
	}
	return NULL;
}

/* What is slow goes over the link of that incident. */
static bool is_of(const struct nt_detect *detect, const struct trouble *trouble,
		  const struct nt_incident *incident)
{
	const struct nt_culprit_link link = nt_link_of(incident->kind, incident->comm);

	if (trouble->comm)
		return nt_link_goes_over(detect, trouble->comm, &link);
	return !trouble->cell || nt_link_holds(&link, trouble->cell->from, trouble->cell->to);
}

/*
 * May what is told now take the place of what an incident names? What is seen while it costs nothing tells
 * of something else, and so do counters that turn, or grow, long after it began: who slowed the job counted
 * then what it counts now. Times by peer tell of each window.
 */
static bool may_rename(const struct nt_detect *detect, const struct trouble *trouble,
		       const struct nt_incident *open)
{
	if (open->state == NT_INCIDENT_PENDING)
		return true;
	if (open->recovery.bad_ns != detect->end_ns)
		return false;
	return trouble->method == NT_WORD_DELAY_MATRIX;
}

/*
 * One incident for what may be seen as one thing now and as another a moment later: while it is
 * pending as it comes, afterwards when that holds.
 */
static void settle_name(struct nt_detect *detect, const struct trouble *trouble,
			struct nt_culprit_link *link)
{
	struct nt_links *links = &detect->links;
	struct nt_incident *open = find_open(detect, link);
	struct nt_culprit_link is;

	if (!open) {
		open = find_open(detect, NULL);
		/* What is known to make this slow does so still: only times by peer say otherwise. */
		if (!open || trouble->method == NT_WORD_DELAY_MATRIX ||
		    !is_of(detect, trouble, open))
			return;
		*link = nt_link_of(open->kind, open->comm);
		return;
	}
	is = nt_link_of(open->kind, open->comm);
	if (nt_link_is_same(&is, link)) {
		links->others = 0;
		*link = is;
		return;
	}
	if (!may_rename(detect, trouble, open)) {
		*link = is;
		return;
	}
	links->others = nt_link_is_same(&links->other, link) ? links->others + 1 : 1;
	links->other = *link;
	if (open->state != NT_INCIDENT_PENDING && links->others < NT_LINK_FRAMES) {
		*link = is;
		return;
	}
	links->others = 0;
	open->kind = link->kind;
	open->comm = nt_link_key(link);
	open->changed = true;
}

static bool is_part(const struct nt_detect *detect, const struct nt_incident *incident)
{
	const struct nt_comm *comm;

	if (incident->kind != NT_CULPRIT_COMMUNICATOR)
		return false;
	comm = nt_comm_find(detect->comms, incident->comm);
	return comm && nt_link_explains(detect, comm);
}

static int raise(struct nt_detect *detect, const struct trouble *trouble)
{
	const struct nt_culprit_link *link = &detect->links.now;
	const double cost = cost_of(detect, link);
	struct nt_proposal proposal = {
		.family = NT_FAMILY_NETWORK,
		.class = NT_CLASS_NETWORK,
		.kind = link->kind,
		.comm = nt_link_key(link),
		.onset_ns = trouble->onset_ns,
		.cost = fmax(0.0, cost),
		.tier = trouble->comm ? trouble->comm->network.tier : best_tier(detect),
		.chance = nt_cusum_chance(trouble->level, &detect->rules, detect->ranks, 1.0),
	};
	int r = nt_incidents_join(detect, &proposal, is_part);

	if (r < 0)
		return r;
	tell(detect, trouble, link, &proposal);
	return nt_incidents_raise(detect, &proposal);
}

/* All that is open for a link, whatever is seen now: does it go on? */
static void judge_open(struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_incident *incident = detect->incidents.open[i];
		struct nt_culprit_link link;
		double cost;

		if (incident->family != NT_FAMILY_NETWORK || !nt_link_is_kind(incident->kind))
			continue;
		link = nt_link_of(incident->kind, incident->comm);
		cost = cost_of(detect, &link);
		if (cost >= 0.0 || detect->links.step_frame == detect->frames)
			nt_incidents_judge(detect, NT_FAMILY_NETWORK, incident->comm, cost);
	}
}

int nt_link_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	struct nt_links *links = &detect->links;
	struct nt_culprit_link link = {0};
	struct trouble trouble;
	int r;

	links->now = (struct nt_culprit_link){0};
	if (links->told) {
		r = nt_matrix_learn(detect, frame, links->told);
		if (r < 0)
			return r;
	}
	links->told = 0;
	nt_ports_judge(detect);
	note_step(detect);
	judge_open(detect);
	trouble = find_trouble(detect);
	if (!trouble.level)
		return 0;
	if (name(detect, &trouble, &link)) {
		settle_name(detect, &trouble, &link);
	} else {
		/* What was clear before need not stay so, to be the same. */
		const struct nt_incident *open = find_open(detect, NULL);

		if (!open || !is_of(detect, &trouble, open))
			return 0;
		link = nt_link_of(open->kind, open->comm);
	}
	links->now = link;
	return raise(detect, &trouble);
}
