/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/truth.h"

#include <math.h>
#include <string.h>

#include "common/num.h"
#include "tests/sim/cluster/layout.h"
#include "tests/sim/cluster/traffic.h"

/* What costs less is not worth a word. */
static const double least_cost = 0.03;

/* Who must be named for a fault. */
enum who {
	NOBODY, /* and nothing is said */
	NOTHING_NEEDED, /* what accuses nobody may be said */
	INFORMATION, /* an incident that accuses nobody */
	THE_RANK,
	THE_NODE,
	THE_HALF,
	THE_NIC,
	THE_PATH,
	THE_LINK, /* a communicator that holds it will do */
	EVERYBODY, /* the job hangs */
	TWO_POPULATIONS, /* which of them is slow cannot be known, and is not said */
};

struct wanted {
	enum who who;
	const char *class, *other_class; /* either will do; NULL: any */
};

bool cl_truth_sees_work(const struct cl_scenario *s)
{
	return s->mode == CL_BLOCKING || s->mode == CL_PLUGIN ||
	       (s->mode == CL_LOCAL_SYNC && s->tp == 1 && s->pp == 1 && s->ep == 1 && !s->sharded);
}

enum nt_tier cl_truth_tier(const struct cl_scenario *s)
{
	if (s->mode == CL_PLUGIN)
		return NT_TIER_T3;
	return cl_truth_sees_work(s) ? NT_TIER_T2 : NT_TIER_T1;
}

/* Where some nodes have no plugin theirs are of another tier: nothing of them is held against it. */
static bool is_alike(const struct cl_scenario *s, uint32_t a, uint32_t b)
{
	return s->mode != CL_PLUGIN || cl_scenario_is_bare(s, cl_scenario_node_of(s, a)) ==
					       cl_scenario_is_bare(s, cl_scenario_node_of(s, b));
}

static bool sees_work_of(const struct cl_scenario *s, uint32_t rank)
{
	return cl_truth_sees_work(s) &&
	       !(s->mode == CL_PLUGIN && cl_scenario_is_bare(s, cl_scenario_node_of(s, rank)));
}

/* Every node tells the same. */
static bool is_even(const struct cl_scenario *s)
{
	for (uint32_t i = 1; i < cl_scenario_nodes(s) && s->mode == CL_PLUGIN; i++) {
		if (cl_scenario_is_bare(s, i) != cl_scenario_is_bare(s, 0))
			return false;
	}
	return true;
}

static bool sees_all_work(const struct cl_scenario *s)
{
	return is_even(s) && sees_work_of(s, 0);
}

/* Too few tell the same as the rank does. */
static bool is_alone(const struct cl_scenario *s, uint32_t rank)
{
	const struct cl_group peers = cl_group_of(s, CL_DATA, rank);
	uint32_t n = 0;

	for (uint32_t i = 0; i < peers.size; i++)
		n += is_alike(s, rank, cl_group_member(&peers, i));
	return n < 4 && n < peers.size;
}

/* How many of those that the rank is compared with, itself among them, sit on the node. */
static uint32_t peers_on(const struct cl_scenario *s, uint32_t rank, uint32_t node,
			 uint32_t *ret_all)
{
	const struct cl_group peers = cl_group_of(s, CL_DATA, rank);
	uint32_t n = 0;

	*ret_all = 0;
	for (uint32_t i = 0; i < peers.size; i++) {
		const uint32_t member = cl_group_member(&peers, i);

		if (!is_alike(s, rank, member))
			continue;
		n += cl_scenario_node_of(s, member) == node;
		++*ret_all;
	}
	return n;
}

/* Is there a rank of the node all of whose peers sit on it, too, or more than two of three? */
static bool is_crowded(const struct cl_scenario *s, uint32_t node)
{
	uint32_t all;

	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, node); i++) {
		if (peers_on(s, cl_scenario_rank_on(s, node, i), node, &all) * 3 > all * 2)
			return true;
	}
	return false;
}

/* Is any of its ranks compared with one elsewhere? */
static bool is_compared(const struct cl_scenario *s, uint32_t node)
{
	uint32_t all;

	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, node); i++) {
		if (peers_on(s, cl_scenario_rank_on(s, node, i), node, &all) < all)
			return true;
	}
	return false;
}

/* Does a collective that moves much go over it? Sends alone tell nothing without their own times. */
static bool is_used(const struct cl_scenario *s, const struct cl_fault *f)
{
	static const enum cl_group_kind kinds[] = {CL_TENSOR, CL_DATA, CL_EXPERT};
	uint32_t other = f->kind == CL_PATH ? f->peer : UINT32_MAX;

	for (uint32_t r = 0; r < cl_scenario_ranks(s); r++) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			struct cl_group group = cl_group_of(s, kinds[i], r);

			if (kinds[i] == CL_DATA && cl_traffic_is_ring(s))
				continue;
			if (!cl_group_is_on(s, &group, f->target) || !cl_group_spans(s, &group))
				continue;
			if (other == UINT32_MAX || cl_group_is_on(s, &group, other))
				return true;
		}
	}
	return false;
}

/* Counters, or times by peer, or communicators that share it: who of the network it is can be told. */
static bool is_told_apart(const struct cl_scenario *s, const struct cl_fault *f)
{
	const uint32_t nodes = cl_scenario_nodes(s);
	/*
	 * Around a ring each hands its delay on. Where steps do not begin together it has gone around
	 * before long, and all calls last as long as the slowest.
	 */
	const bool is_timed = s->pp > 1 || s->aligned_end || !cl_traffic_is_ring(s);
	uint32_t ignored;

	if (f->kind == CL_PATH)
		return (s->counters && cl_traffic_is_between(s, f->target, f->peer)) ||
		       (is_timed && (cl_traffic_is_timed(s, f->target, f->peer) ||
				     cl_traffic_is_timed(s, f->peer, f->target)));
	for (uint32_t i = 0; i < nodes && s->counters; i++) {
		if (i != f->target && cl_traffic_is_between(s, f->target, i))
			return true;
	}
	return (is_timed && cl_traffic_partners(s, f->target, &ignored) > 0) ||
	       (sees_all_work(s) && cl_traffic_is_shared(s, f->target));
}

/* Where only the step tells it, it must be longer for a minute, and for no other reason. */
static bool is_told_as_batch(const struct cl_scenario *s, const struct cl_fault *f)
{
	const uint32_t until = f->until < s->steps ? f->until : s->steps;

	if (f->of)
		return false;
	if (sees_all_work(s))
		return true;
	return s->faults == 1 && f->from + f->ramp < until &&
	       (until - f->from - f->ramp) * s->step_s >= 100;
}

/* Nothing is heard of its ranks for good. */
static bool is_unobserved(const struct cl_scenario *s, uint32_t rank)
{
	for (size_t i = 0; i < s->faults; i++) {
		if (s->fault[i].kind == CL_AGENT_DIES &&
		    cl_scenario_node_of(s, rank) == s->fault[i].target)
			return true;
	}
	return false;
}

static struct wanted wanted_for_heard(const struct cl_scenario *s, const struct cl_fault *f)
{
	const bool works = sees_all_work(s);

	switch (f->kind) {
	case CL_COMPUTE_RANK:
		if (!sees_work_of(s, f->target))
			return (struct wanted){NOBODY, NULL, NULL};
		if (is_alone(s, f->target))
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct wanted){THE_RANK, "compute", NULL};
	case CL_COMPUTE_NODE:
		if (is_crowded(s, f->target))
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		if (!sees_work_of(s, cl_scenario_rank_on(s, f->target, 0)))
			return (struct wanted){NOBODY, NULL, NULL};
		return (struct wanted){THE_NODE, "compute", NULL};
	case CL_COMPUTE_HALF:
		if (!is_even(s))
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct wanted){works ? THE_HALF : NOBODY, "compute", NULL};
	case CL_BATCH:
		return (struct wanted){is_told_as_batch(s, f) ? INFORMATION : NOTHING_NEEDED,
				       "job-wide", NULL};
	case CL_LATE_STAGE:
	case CL_UNEVEN:
		if (!is_even(s))
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct wanted){works ? INFORMATION : NOBODY, "imbalance", NULL};
	case CL_LOADER:
	case CL_GC_RANK:
		if (is_alone(s, f->target))
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct wanted){THE_RANK, "host", "storage"};
	case CL_CONTENTION:
		if (is_crowded(s, f->target))
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct wanted){THE_NODE, "host", NULL};
	case CL_GC_ALL:
		return (struct wanted){INFORMATION, "job-wide", NULL};
	case CL_CHECKPOINT_RANK:
		/* Ten steps are not long. */
		if (f->factor < 1.2 * fmax(15, 10 * s->step_s) + 3)
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct wanted){THE_RANK, "host", NULL};
	case CL_NIC:
	case CL_PATH:
		if (is_told_apart(s, f))
			return (struct wanted){f->kind == CL_NIC ? THE_NIC : THE_PATH, "network",
					       NULL};
		if (!is_used(s, f) || !is_even(s))
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct wanted){works ? THE_LINK : NOBODY, "network", NULL};
	case CL_EXIT:
		return (struct wanted){THE_RANK, "missing", NULL};
	case CL_LAGGARD:
		return (struct wanted){THE_RANK, "hang", NULL};
	case CL_MISMATCH:
		/* Of what goes around nobody's size is another's. */
		if (cl_traffic_is_ring(s))
			return (struct wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct wanted){THE_RANK, "mismatch", NULL};
	case CL_NETWORK_HANG:
		return (struct wanted){EVERYBODY, "hang", NULL};
	default: /* checkpoints of all, agents that come and go */
		return (struct wanted){NOBODY, NULL, NULL};
	}
}

/* Elsewhere are so many times the peers that a rank of the node has on it, at least. */
static double outnumbered(const struct cl_scenario *s, uint32_t node)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, node); i++) {
		uint32_t all, n = peers_on(s, cl_scenario_rank_on(s, node, i), node, &all);

		least = fmin(least, (double)(all - n) / n);
	}
	return least;
}

/* No rank has a past without the fault. */
static struct wanted wanted_from_start(const struct cl_scenario *s, const struct cl_fault *f,
				       struct wanted wanted)
{
	static const double common_spread = 0.1, small_spread = 0.005;
	const struct wanted nothing = {NOTHING_NEEDED, NULL, NULL},
			    halves = {TWO_POPULATIONS, "unknown", NULL};

	if (f->kind == CL_COMPUTE_RANK && wanted.who == THE_RANK && s->spread > small_spread &&
	    f->factor - 1 <= common_spread)
		return nothing;
	if (f->kind == CL_COMPUTE_HALF && wanted.who == THE_HALF)
		return halves;
	if (f->kind == CL_COMPUTE_NODE && wanted.who == THE_NODE) {
		if (outnumbered(s, f->target) <= 2)
			return halves;
		if (outnumbered(s, f->target) < 3 || f->factor < 1.3)
			return nothing;
	}
	return wanted;
}

static struct wanted wanted_for(const struct cl_scenario *s, const struct cl_fault *f)
{
	struct wanted wanted = wanted_for_heard(s, f);

	if (f->from == 0 && f->ramp == 0)
		wanted = wanted_from_start(s, f, wanted);
	if ((wanted.who == THE_RANK && is_unobserved(s, f->target)) ||
	    (wanted.who == THE_NODE && is_unobserved(s, cl_scenario_rank_on(s, f->target, 0))))
		return (struct wanted){NOTHING_NEEDED, NULL, NULL};
	return wanted;
}

static bool is_guilty(const struct cl_scenario *s, const struct cl_fault *f, uint32_t rank)
{
	/* Why its threads are late is seen on the node itself. */
	if (f->kind == CL_CONTENTION)
		return cl_scenario_node_of(s, rank) == f->target;
	if (f->kind == CL_COMPUTE_NODE)
		return sees_work_of(s, rank) && cl_scenario_node_of(s, rank) == f->target &&
		       is_compared(s, f->target);
	if (!is_even(s) && f->kind == CL_COMPUTE_HALF)
		return sees_work_of(s, rank) && cl_replica_of(s, rank) % 2 == 0;
	if (is_alone(s, rank) && rank == f->target &&
	    (f->kind == CL_COMPUTE_RANK || f->kind == CL_LOADER || f->kind == CL_GC_RANK))
		return f->kind != CL_COMPUTE_RANK || sees_work_of(s, rank);
	/* Ten steps are not long, but who kept the others waiting is no secret. */
	if (f->kind == CL_CHECKPOINT_RANK)
		return rank == f->target;
	switch (wanted_for(s, f).who) {
	case THE_RANK:
		return rank == f->target;
	case THE_NODE:
		return cl_scenario_node_of(s, rank) == f->target;
	case THE_HALF:
		return cl_replica_of(s, rank) % 2 == 0;
	default:
		return false; /* what cannot be seen must not be guessed */
	}
}

static bool is_guilty_of_any(const struct cl_scenario *s, uint32_t rank)
{
	for (size_t i = 0; i < s->faults; i++) {
		if (is_guilty(s, &s->fault[i], rank))
			return true;
	}
	return false;
}

static uint32_t node_number(const char *name)
{
	const char *dash = name ? strrchr(name, '-') : NULL;
	uint32_t number;

	if (!dash || nt_num_u32(dash + 1, strlen(dash + 1), 0, CL_MAX_RANKS, &number) < 0)
		return UINT32_MAX;
	return number;
}

static bool is_node_guilty(const struct cl_scenario *s, uint32_t node)
{
	if (node >= cl_scenario_nodes(s))
		return false;
	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, node); i++) {
		if (!is_guilty_of_any(s, cl_scenario_rank_on(s, node, i)))
			return false;
	}
	return true;
}

static bool accuses(const struct nt_incident *incident)
{
	return strcmp(incident->severity, "info") != 0 &&
	       strcmp(incident->class, "imbalance") != 0 &&
	       strcmp(incident->class, "job-wide") != 0;
}

/* A mismatch names both sides, and so accuses neither by itself. */
static bool names_both_sides(const struct cl_scenario *s, const struct nt_incident *incident)
{
	bool mismatch = false;

	for (size_t i = 0; i < s->faults; i++)
		mismatch |= s->fault[i].kind == CL_MISMATCH;
	return mismatch && strcmp(incident->class, "mismatch") == 0;
}

/* All that the node's sends show is one neighbour's, too: it may as well be the path. */
static bool is_end(const struct cl_scenario *s, uint32_t node, uint32_t peer)
{
	uint32_t only;

	return cl_traffic_partners(s, node, &only) == 1 && only == peer;
}

static bool is_link(const struct cl_scenario *s, const struct cl_fault *f,
		    const struct nt_culprit *culprit)
{
	const uint32_t node = node_number(culprit->node);
	uint32_t peer;

	if (strcmp(culprit->kind, "nic") == 0)
		return f->kind == CL_NIC && f->target == node;
	if (strcmp(culprit->kind, "path") != 0)
		return false;
	peer = node_number(culprit->peer);
	if (f->kind == CL_PATH)
		return (f->target == node && f->peer == peer) ||
		       (f->target == peer && f->peer == node);
	return f->kind == CL_NIC && ((f->target == node && is_end(s, node, peer)) ||
				     (f->target == peer && is_end(s, peer, node)));
}

static bool is_link_guilty(const struct cl_scenario *s, const struct nt_culprit *culprit)
{
	for (size_t i = 0; i < s->faults; i++) {
		if (is_link(s, &s->fault[i], culprit))
			return true;
	}
	return false;
}

static void count_accused(const struct cl_scenario *s, const struct nt_incident *incident,
			  struct cl_score *score)
{
	if (!accuses(incident) || names_both_sides(s, incident))
		return;
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *culprit = &incident->culprit[i];

		if (strcmp(culprit->kind, "rank") == 0) {
			score->accused++;
			score->wrong += !is_guilty_of_any(s, culprit->rank);
		} else if (strcmp(culprit->kind, "node") == 0) {
			score->accused++;
			score->wrong += !is_node_guilty(s, node_number(culprit->node));
		} else if (strcmp(culprit->kind, "communicator") != 0 &&
			   strcmp(culprit->kind, "stage") != 0) {
			score->accused++;
			score->wrong += !is_link_guilty(s, culprit);
		}
	}
}

static bool holds(const uint32_t *list, size_t count, uint32_t rank)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i] == rank)
			return true;
	}
	return false;
}

static bool names_rank(const struct nt_incident *incident, uint32_t rank)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *c = &incident->culprit[i];

		if ((strcmp(c->kind, "rank") == 0 && c->rank == rank) ||
		    (strcmp(c->kind, "node") == 0 && holds(c->ranks, c->rank_count, rank)))
			return true;
	}
	return false;
}

static bool names_node(const struct cl_scenario *s, const struct nt_incident *incident,
		       uint32_t node)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *c = &incident->culprit[i];

		if (strcmp(c->kind, "node") == 0 && node_number(c->node) == node)
			return true;
	}
	/* Or one by one. */
	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, node); i++) {
		if (!names_rank(incident, cl_scenario_rank_on(s, node, i)))
			return false;
	}
	return true;
}

/* Ranks of the node, and no others. */
static bool names_part(const struct cl_scenario *s, const struct nt_incident *incident,
		       uint32_t node)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *c = &incident->culprit[i];

		if (strcmp(c->kind, "rank") != 0 || cl_scenario_node_of(s, c->rank) != node)
			return false;
	}
	return incident->culprits > 0;
}

/* Most of them at once, and none of the others: who has a fault of his own may be told before. */
static bool names_half(const struct cl_scenario *s, const struct nt_incident *incident)
{
	uint32_t ranks = cl_scenario_ranks(s), named = 0, all = 0;

	for (uint32_t r = 0; r < ranks; r++) {
		if (cl_replica_of(s, r) % 2 || is_unobserved(s, r))
			continue;
		named += names_rank(incident, r);
		all++;
	}
	return named * 10 >= all * 9;
}

static bool names_one(const struct cl_scenario *s, const struct cl_fault *f,
		      const struct nt_incident *incident)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		if (is_link(s, f, &incident->culprit[i]))
			return true;
	}
	return false;
}

static bool names_link(const struct cl_scenario *s, const struct nt_incident *incident,
		       uint32_t node)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *c = &incident->culprit[i];

		for (size_t j = 0; j < c->rank_count; j++) {
			if (cl_scenario_node_of(s, c->ranks[j]) == node)
				return true;
		}
	}
	return false;
}

static bool names(const struct cl_scenario *s, const struct cl_fault *f,
		  const struct nt_incident *incident)
{
	switch (wanted_for(s, f).who) {
	case THE_RANK:
		return names_rank(incident, f->target);
	case THE_NODE:
		return names_node(s, incident, f->target);
	case THE_HALF:
		return names_half(s, incident);
	case THE_NIC:
	case THE_PATH:
		return names_one(s, f, incident);
	case THE_LINK:
		return names_link(s, incident, f->target) || names_one(s, f, incident);
	case EVERYBODY:
		return strcmp(incident->class, "hang") == 0;
	case TWO_POPULATIONS:
		return strcmp(incident->class, "unknown") == 0;
	case NOTHING_NEEDED:
		return !accuses(incident) || names_rank(incident, f->target) ||
		       names_part(s, incident, f->target);
	case INFORMATION:
		return !accuses(incident);
	default:
		return false;
	}
}

static bool has_class(const struct wanted *wanted, const struct nt_incident *incident)
{
	return strcmp(incident->class, wanted->class) == 0 ||
	       (wanted->other_class && strcmp(incident->class, wanted->other_class) == 0);
}

/* The job stands soon after it began: there is hardly a window of it. */
static bool is_cut_short(const struct cl_scenario *s, const struct cl_fault *f)
{
	const double windows = 30;

	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *other = &s->fault[i];
		const bool stands = other->kind == CL_EXIT || other->kind == CL_LAGGARD ||
				    other->kind == CL_MISMATCH || other->kind == CL_NETWORK_HANG;

		if (other != f && stands &&
		    other->from < f->from + f->ramp + windows * fmax(1, s->window_s / s->step_s))
			return true;
	}
	return false;
}

/* On in less than three of five windows it is off when it is looked at. */
static bool is_seldom(const struct cl_scenario *s, const struct cl_fault *f)
{
	return f->of && 5 * f->on < 3 * f->of && f->of * s->step_s > 2 * s->window_s;
}

/* At T3 a host is behind its device, and what another rank holds up hides what holds it up. */
static bool is_hidden(const struct cl_scenario *s, const struct cl_fault *f)
{
	return s->mode == CL_PLUGIN && (f->kind == CL_LOADER || f->kind == CL_CONTENTION ||
					f->kind == CL_GC_RANK || f->kind == CL_GC_ALL);
}

static bool is_worth_a_word(const struct cl_scenario *s, const struct cl_fault *f,
			    const struct cl_cost *cost)
{
	if (is_cut_short(s, f) || is_seldom(s, f) || (is_hidden(s, f) && cost->part < least_cost))
		return false;
	/* Where own work shows, what another fault hides shows too. */
	return cost->part >= least_cost || (sees_all_work(s) && cost->alone >= least_cost);
}

/* Two faults of one culprit are told as the worse of them. */
static bool has_class_of_other(const struct cl_scenario *s, const struct cl_fault *f,
			       const struct nt_incident *incident)
{
	for (size_t i = 0; i < s->faults; i++) {
		const struct wanted wanted = wanted_for(s, &s->fault[i]);

		if (&s->fault[i] != f && wanted.class && names(s, &s->fault[i], incident) &&
		    has_class(&wanted, incident))
			return true;
	}
	return false;
}

static void score_fault(const struct cl_scenario *s, size_t index,
			const struct nt_judgement *judgement, const struct cl_outcome *outcome,
			struct cl_score *score)
{
	const struct cl_fault *f = &s->fault[index];
	struct wanted wanted = wanted_for(s, f);
	bool found = false, classed = false;
	uint32_t times = 0;

	if (wanted.who == NOBODY || wanted.who == NOTHING_NEEDED ||
	    !is_worth_a_word(s, f, &outcome->cost[index]))
		return;
	score->wanted++;
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_incident *incident = &judgement->judged[i].incident;
		double seconds;

		if (!names(s, f, incident))
			continue;
		found = true;
		times++;
		classed |= has_class(&wanted, incident) || has_class_of_other(s, f, incident);
		seconds = (double)((int64_t)incident->seen_real_ns - outcome->fault_ns) / 1e9;
		if (score->seconds < 0 || seconds < score->seconds)
			score->seconds = seconds;
	}
	score->found += found;
	if (s->faults == 1 && times > 1)
		score->twice += times - 1;
	score->classed += classed;
}

/* Of several faults the job feels one where another hides it: what all cost is held against what all do. */
static double score_cost(const struct cl_scenario *s, const struct nt_judgement *judgement,
			 const struct cl_outcome *outcome, const struct cl_score *score)
{
	double said = 0; /* GPU hours */

	/* A job that blocks in its calls is one of MPI here, and uses no GPU. */
	if (!score->found || score->found < score->wanted || s->mode == CL_BLOCKING ||
	    outcome->lost_s <= 0)
		return -1;
	/* The job's steps are longer by what nobody can tell, too. */
	for (size_t i = 0; i < s->faults; i++) {
		if (wanted_for(s, &s->fault[i]).who == NOBODY && outcome->cost[i].part < 1 &&
		    outcome->cost[i].part > 0)
			return -1;
	}
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_incident *incident = &judgement->judged[i].incident;
		bool named = false;

		for (size_t j = 0; j < s->faults && !named; j++)
			named = wanted_for(s, &s->fault[j]).who != NOBODY &&
				names(s, &s->fault[j], incident);
		if (named)
			said += incident->cost.gpu_hours_unknown ? NAN : incident->cost.gpu_hours;
	}
	return said / (outcome->lost_s * cl_scenario_ranks(s) / 3600);
}

/* A hang, or a slow network, of which nothing was played: an alarm though it names nobody. */
static bool is_false_alarm(const struct cl_scenario *s, const struct nt_incident *incident)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		if (strcmp(incident->culprit[i].kind, "communicator") != 0 &&
		    strcmp(incident->culprit[i].kind, "stage") != 0)
			return false; /* counted by its culprits */
	}
	for (size_t i = 0; i < s->faults; i++) {
		const enum cl_fault_kind kind = s->fault[i].kind;

		if (strcmp(incident->class, "network") == 0
			    ? kind == CL_NIC || kind == CL_PATH
			    : kind >= CL_EXIT || kind == CL_CHECKPOINT_RANK ||
				      kind == CL_CHECKPOINT_ALL)
			return false;
	}
	return strcmp(incident->class, "network") == 0 || strcmp(incident->class, "hang") == 0;
}

/* That the job is slower is so, whoever cannot be named for it. */
static bool tells_of_the_job(const struct cl_scenario *s, const struct nt_incident *incident,
			     const struct cl_outcome *outcome)
{
	for (size_t i = 0; i < s->faults; i++)
		if (strcmp(incident->class, "job-wide") == 0 &&
		    outcome->cost[i].part >= least_cost && outcome->cost[i].part < 1 &&
		    wanted_for(s, &s->fault[i]).who == NOBODY)
			return true;
	return false;
}

/* All that went wrong is over, and more than long enough ago. */
static bool is_over(const struct cl_scenario *s)
{
	const double quiet_s = fmax(100, 30 * fmax(s->step_s, s->window_s));

	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *f = &s->fault[i];

		if (f->until == UINT32_MAX || f->until + (uint32_t)(quiet_s / s->step_s) > s->steps)
			return false;
	}
	return s->faults > 0;
}

struct cl_score cl_truth_score(const struct cl_scenario *scenario,
			       const struct nt_judgement *judgement,
			       const struct cl_outcome *outcome)
{
	struct cl_score score = {.seconds = -1, .cost = -1};

	for (size_t i = 0; i < scenario->faults; i++)
		score_fault(scenario, i, judgement, outcome, &score);
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_incident *incident = &judgement->judged[i].incident;
		bool wanted = false;

		count_accused(scenario, incident, &score);
		score.open += is_over(scenario) && strcmp(incident->state, "firing") == 0;
		for (size_t j = 0; j < scenario->faults; j++)
			wanted |= names(scenario, &scenario->fault[j], incident);
		wanted |= tells_of_the_job(scenario, incident, outcome);
		score.needless +=
			!wanted && (!accuses(incident) || is_false_alarm(scenario, incident));
	}
	score.cost = score_cost(scenario, judgement, outcome, &score);
	return score;
}
