/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which NIC, or which path. */
#include "detect/link.h"

#include <math.h>

#include "detect/core.h"
#include "detect/stats.h"

enum {
	FEW_FRAMES = 3, /* that something else must be seen for, to be told in place of what was */
	KEY_SHIFT = 32,
};

/* A communicator is as it was while its transfers grew by less. */
static const double healthy_growth = 0.1;
/* Calls with less are as fast over a slow link: they acquit nobody, and name nobody. */
static const double telling_bytes = 65536.0;

void nt_links_free(struct nt_links *links)
{
	nt_matrix_free(&links->matrix);
	nt_ports_free(&links->ports);
	*links = (struct nt_links){0};
}

uint64_t nt_link_key(const struct nt_culprit_link *link)
{
	const uint32_t peer = link->kind == NT_CULPRIT_PATH ? link->peer : NT_FRAME_NO_NODE;

	return (uint64_t)peer << KEY_SHIFT | link->node;
}

struct nt_culprit_link nt_link_of(uint8_t kind, uint64_t key)
{
	return (struct nt_culprit_link){
		.kind = kind, .node = (uint32_t)key, .peer = (uint32_t)(key >> KEY_SHIFT)};
}

static bool is_link(uint8_t kind)
{
	return kind == NT_CULPRIT_NIC || kind == NT_CULPRIT_PATH;
}

static bool is_same(const struct nt_culprit_link *a, const struct nt_culprit_link *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == NT_CULPRIT_NIC)
		return a->node == b->node;
	return (a->node == b->node && a->peer == b->peer) ||
	       (a->node == b->peer && a->peer == b->node);
}

static bool touches(const struct nt_culprit_link *link, uint32_t node)
{
	return link->node == node || (link->kind == NT_CULPRIT_PATH && link->peer == node);
}

int nt_link_note(struct nt_detect *detect, const struct nt_frame_rank *seen)
{
	detect->links.told += seen->transfers;
	if (!seen->nic_retransmits && !seen->nic_errors && !seen->nic_congestion)
		return 0;
	return nt_ports_note(detect, seen);
}

/* ---- communicators ------------------------------------------------------------------------------- */

static bool is_on(const struct nt_detect *detect, const struct nt_comm *comm, uint32_t node)
{
	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (rank && rank->node == node)
			return true;
	}
	return false;
}

/* On several nodes, so that it goes through their NICs. */
static bool spans(const struct nt_detect *detect, const struct nt_comm *comm)
{
	const struct nt_rank *first = NULL;

	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (!rank || rank->node == NT_FRAME_NO_NODE)
			return false;
		if (first && rank->node != first->node)
			return true;
		first = first ? first : rank;
	}
	return false;
}

static bool goes_over(const struct nt_detect *detect, const struct nt_comm *comm,
		      const struct nt_culprit_link *link)
{
	return is_link(link->kind) && is_on(detect, comm, link->node) &&
	       (link->kind == NT_CULPRIT_NIC || is_on(detect, comm, link->peer)) &&
	       spans(detect, comm);
}

bool nt_link_is_shared(const struct nt_detect *detect, const struct nt_comm *comm,
		       const struct nt_comm *other)
{
	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (rank && is_on(detect, other, rank->node))
			return true;
	}
	return false;
}

bool nt_link_explains(const struct nt_detect *detect, const struct nt_comm *comm)
{
	return goes_over(detect, comm, &detect->links.now);
}

static bool is_slow(const struct nt_detect *detect, const struct nt_comm *comm)
{
	return comm->network.past.ready && nt_network_is_slow(detect, comm);
}

static bool is_healthy(const struct nt_detect *detect, const struct nt_comm *comm)
{
	const struct nt_network *network = &comm->network;

	return network->past.ready && network->bytes >= telling_bytes &&
	       network->frame + NT_INCIDENT_PATIENCE >= detect->frames &&
	       (network->level.sum <= 0.0 || nt_cusum_kpi(&network->level) < healthy_growth);
}

/* The nodes of the first slow communicator that are on all slow ones, and how many those are. */
static uint32_t share_slow(const struct nt_detect *detect, uint32_t *node, uint32_t *ret_slow)
{
	const struct nt_comm *first = NULL;
	uint32_t n = 0, slow = 0;

	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_comm *comm = detect->comm[at];

		/* Each may cost little: together they tell who it is. */
		if (!nt_network_is_fresh(detect, comm) || !comm->network.past.ready ||
		    comm->network.level.sum < detect->threshold ||
		    comm->network.bytes < telling_bytes || !spans(detect, comm))
			continue;
		slow++;
		if (first) {
			uint32_t kept = 0;

			for (uint32_t i = 0; i < n; i++)
				if (is_on(detect, comm, node[i]))
					node[kept++] = node[i];
			n = kept;
			continue;
		}
		first = comm;
		for (uint32_t i = 0; i < comm->members; i++) {
			const struct nt_rank *rank = nt_detect_find(detect, comm->member[i]);
			bool known = !rank;

			for (uint32_t j = 0; j < n && !known; j++)
				known = node[j] == rank->node;
			if (!known)
				node[n++] = rank->node;
		}
	}
	*ret_slow = slow;
	return n;
}

/* A communicator goes over it and is none the slower for it. */
static bool is_acquitted(const struct nt_detect *detect, const struct nt_culprit_link *link)
{
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		const struct nt_comm *comm = detect->comm[at];

		if (is_healthy(detect, comm) && goes_over(detect, comm, link))
			return true;
	}
	return false;
}

enum {
	MOST_SHARED = 64, /* nodes; of more the communicators do not tell one */
};

/* What slow communicators share, at least two: one node's NIC, or else one path. */
static bool name_shared(struct nt_detect *detect, struct nt_culprit_link *ret_link)
{
	uint32_t *node = detect->scratch.index, slow, n, names = 0;

	n = share_slow(detect, node, &slow);
	if (slow < 2 || !n || n > MOST_SHARED)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct nt_culprit_link link = {.kind = NT_CULPRIT_NIC, .node = node[i]};

		if (is_acquitted(detect, &link))
			continue;
		*ret_link = link;
		names++;
	}
	if (names)
		return names == 1;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = i + 1; j < n; j++) {
			const struct nt_culprit_link link = {
				.kind = NT_CULPRIT_PATH, .node = node[i], .peer = node[j]};

			if (is_acquitted(detect, &link))
				continue;
			*ret_link = link;
			names++;
		}
	return names == 1;
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

/* The part of it that others explain, if they do. */
static const double explains = 0.5;

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
	return others < explains * part ? part - others : 0.0;
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
	return others >= explains * part || part - others < detect->rules.size_floor;
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
	    (!by_cells || touches(ret_link, other.node))) {
		*ret_link = other;
		return true;
	}
	trouble->method = NT_WORD_SHARED;
	if (name_shared(detect, &other) && (!by_cells || touches(ret_link, other.node))) {
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
		    goes_over(detect, comm, link))
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

		if (incident->family != NT_FAMILY_NETWORK || !is_link(incident->kind))
			continue;
		is = nt_link_of(incident->kind, incident->comm);
		if (!link || touches(link, is.node) ||
		    (is.kind == NT_CULPRIT_PATH && touches(link, is.peer)))
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
		return goes_over(detect, trouble->comm, &link);
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
	if (is_same(&is, link)) {
		links->others = 0;
		*link = is;
		return;
	}
	if (!may_rename(detect, trouble, open)) {
		*link = is;
		return;
	}
	links->others = is_same(&links->other, link) ? links->others + 1 : 1;
	links->other = *link;
	if (open->state != NT_INCIDENT_PENDING && links->others < FEW_FRAMES) {
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

		if (incident->family != NT_FAMILY_NETWORK || !is_link(incident->kind))
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

void nt_link_release(struct nt_detect *detect, uint8_t kind, uint64_t key)
{
	const struct nt_culprit_link link = nt_link_of(kind, key);

	nt_matrix_clear(detect, &link);
	nt_ports_clear(detect, &link);
	nt_cusum_clear(&detect->step.level);
	for (uint32_t at = 0; at < detect->comm_count; at++) {
		struct nt_comm *comm = detect->comm[at];

		if (goes_over(detect, comm, &link))
			nt_cusum_clear(&comm->network.level);
	}
}
