/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/truth/truth.h"

#include <math.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "tests/sim/cluster/parallelism.h"
#include "tests/sim/cluster/traffic.h"
#include "tests/sim/cluster/truth/sight.h"
#include "tests/sim/cluster/truth/wanted.h"

/* What costs less is not worth a word. */
static const double least_cost = 0.03;

enum {
	SELDOM = 8, /* windows with the fault: fewer are a few hiccups */
};

static bool is_guilty(const struct cl_scenario *s, const struct cl_fault *f, uint32_t rank)
{
	/* Why its threads are late is seen on the node itself. */
	if (f->kind == CL_CONTENTION)
		return cl_scenario_node_of(s, rank) == f->target;
	if (f->kind == CL_COMPUTE_NODE)
		/* Without peers elsewhere it shows by its past, if that was not slow, too. */
		return cl_sight_has_work_of(s, rank) && cl_scenario_node_of(s, rank) == f->target &&
		       (cl_sight_is_compared(s, f->target) || f->from > 0);
	if (!cl_sight_is_even(s) && f->kind == CL_COMPUTE_HALF)
		return cl_sight_has_work_of(s, rank) && cl_replica_of(s, rank) % 2 == 0;
	if (cl_sight_is_alone(s, rank) && rank == f->target &&
	    (f->kind == CL_COMPUTE_RANK || f->kind == CL_LOADER || f->kind == CL_GC_RANK))
		return f->kind != CL_COMPUTE_RANK || cl_sight_has_work_of(s, rank);
	/* Also in a job of which some nodes have no device times. */
	if (f->kind == CL_LATE_STAGE && f->from > 0)
		return cl_sight_has_work_of(s, rank) && cl_stage_of(s, rank) == f->target;
	/* Ten steps are not long, but who kept the others waiting is no secret. */
	if (f->kind == CL_CHECKPOINT_RANK)
		return rank == f->target;
	switch (cl_wanted_for(s, f).who) {
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

	if (!dash || nt_parse_u32(dash + 1, strlen(dash + 1), 0, CL_MAX_RANKS, &number) < 0)
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

static bool accuses(const struct nt_wire_incident *incident)
{
	return strcmp(incident->severity, "info") != 0 &&
	       strcmp(incident->class, "imbalance") != 0 &&
	       strcmp(incident->class, "job-wide") != 0;
}

/* A mismatch names both sides, and so accuses neither by itself. */
static bool names_both_sides(const struct cl_scenario *s, const struct nt_wire_incident *incident)
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

static bool is_stage_guilty(const struct cl_scenario *s, const struct nt_culprit *culprit)
{
	for (size_t i = 0; i < culprit->rank_count; i++) {
		if (!is_guilty_of_any(s, culprit->ranks[i]))
			return false;
	}
	return true;
}

static void count_accused(const struct cl_scenario *s, const struct nt_wire_incident *incident,
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
		} else if (strcmp(culprit->kind, "stage") == 0) {
			score->accused++;
			score->wrong += !is_stage_guilty(s, culprit);
		} else if (strcmp(culprit->kind, "communicator") != 0) {
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

static bool names_rank(const struct nt_wire_incident *incident, uint32_t rank)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *c = &incident->culprit[i];

		if ((strcmp(c->kind, "rank") == 0 && c->rank == rank) ||
		    (strcmp(c->kind, "node") == 0 && holds(c->ranks, c->rank_count, rank)))
			return true;
	}
	return false;
}

static bool names_node(const struct cl_scenario *s, const struct nt_wire_incident *incident,
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
static bool names_part(const struct cl_scenario *s, const struct nt_wire_incident *incident,
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
static bool names_half(const struct cl_scenario *s, const struct nt_wire_incident *incident)
{
	uint32_t ranks = cl_scenario_ranks(s), named = 0, all = 0;

	for (uint32_t r = 0; r < ranks; r++) {
		if (cl_replica_of(s, r) % 2 || cl_sight_is_unobserved(s, r))
			continue;
		named += names_rank(incident, r);
		all++;
	}
	return named * 10 >= all * 9;
}

/* Ranks of the stage, however they are named, and no others. */
static bool names_stage(const struct cl_scenario *s, const struct nt_wire_incident *incident,
			uint32_t stage)
{
	const uint32_t ranks = cl_scenario_ranks(s);
	bool named = false;

	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *c = &incident->culprit[i];

		for (uint32_t r = 0; r < ranks; r++) {
			const bool is_named = (strcmp(c->kind, "rank") == 0 && c->rank == r) ||
					      holds(c->ranks, c->rank_count, r);

			if (is_named && cl_stage_of(s, r) != stage)
				return false;
			named |= is_named;
		}
	}
	return named && accuses(incident);
}

static bool names_one(const struct cl_scenario *s, const struct cl_fault *f,
		      const struct nt_wire_incident *incident)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		if (is_link(s, f, &incident->culprit[i]))
			return true;
	}
	return false;
}

static bool names_link(const struct cl_scenario *s, const struct nt_wire_incident *incident,
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
		  const struct nt_wire_incident *incident)
{
	switch (cl_wanted_for(s, f).who) {
	case THE_RANK:
		return names_rank(incident, f->target);
	case THE_NODE:
		return names_node(s, incident, f->target);
	case THE_HALF:
		return names_half(s, incident);
	case THE_STAGE:
		return names_stage(s, incident, f->target);
	case THE_NIC:
	case THE_PATH:
		return names_one(s, f, incident);
	case THE_LINK:
		return names_link(s, incident, f->target) || names_one(s, f, incident);
	case EVERYBODY:
		return strcmp(incident->class, "hang") == 0;
	case TWO_POPULATIONS:
		return accuses(incident) && strcmp(incident->class, "unknown") == 0;
	case NOTHING_NEEDED:
		return !accuses(incident) || names_rank(incident, f->target) ||
		       names_part(s, incident, f->target);
	case INFORMATION:
		return !accuses(incident);
	default:
		return false;
	}
}

static bool has_class(const struct cl_wanted *wanted, const struct nt_wire_incident *incident)
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

/* On in so few windows that a few hiccups look the same. */
static bool is_seldom(const struct cl_scenario *s, const struct cl_fault *f)
{
	const uint32_t until = f->until < s->steps ? f->until : s->steps;

	return f->of && until > f->from && (until - f->from) * f->on < SELDOM * f->of &&
	       f->of * s->step_s > 2 * s->window_s;
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
	return cost->part >= least_cost || (cl_sight_has_all_work(s) && cost->alone >= least_cost);
}

/* Two faults of one culprit are told as the worse of them. */
static bool has_class_of_other(const struct cl_scenario *s, const struct cl_fault *f,
			       const struct nt_wire_incident *incident)
{
	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_wanted wanted = cl_wanted_for(s, &s->fault[i]);

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
	struct cl_wanted wanted = cl_wanted_for(s, f);
	bool found = false, classed = false;
	uint32_t times = 0;

	if (wanted.who == NOBODY || wanted.who == NOTHING_NEEDED ||
	    !is_worth_a_word(s, f, &outcome->cost[index]))
		return;
	score->wanted++;
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;
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
		if (cl_wanted_for(s, &s->fault[i]).who == NOBODY && outcome->cost[i].part < 1 &&
		    outcome->cost[i].part > 0)
			return -1;
	}
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;
		bool named = false;

		for (size_t j = 0; j < s->faults && !named; j++)
			named = cl_wanted_for(s, &s->fault[j]).who != NOBODY &&
				names(s, &s->fault[j], incident);
		if (named)
			said += incident->cost.gpu_hours_unknown ? NAN : incident->cost.gpu_hours;
	}
	return said / (outcome->lost_s * cl_scenario_ranks(s) / 3600);
}

/* The step time with the fault ÷ that of the same steps played without it. */
static double score_slowdown(const struct cl_scenario *s, const struct nt_judgement *judgement,
			     const struct cl_outcome *outcome, const struct cl_score *score)
{
	const double part = outcome->cost[0].part;

	if (s->faults != 1 || !score->found || part >= 1 || part <= 0)
		return -1;
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;

		if (names(s, &s->fault[0], incident))
			return incident->slowdown * (1 - part);
	}
	return -1;
}

/* A hang, or a slow network, of which nothing was played: an alarm though it names nobody. */
static bool is_false_alarm(const struct cl_scenario *s, const struct nt_wire_incident *incident)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		if (strcmp(incident->culprit[i].kind, "communicator") != 0 &&
		    strcmp(incident->culprit[i].kind, "stage") != 0)
			return false; /* counted by its culprits */
	}
	for (size_t i = 0; i < s->faults; i++) {
		const enum cl_fault_kind kind = s->fault[i].kind;

		if (strcmp(incident->class, "network") == 0
			    ? kind == CL_NIC || kind == CL_PATH || kind == CL_SWITCH
			    : kind >= CL_EXIT || kind == CL_CHECKPOINT_RANK ||
				      kind == CL_CHECKPOINT_ALL)
			return false;
	}
	return strcmp(incident->class, "network") == 0 || strcmp(incident->class, "hang") == 0;
}

/* That the job is slower is so, whoever cannot be named for it. */
static bool tells_of_the_job(const struct cl_scenario *s, const struct nt_wire_incident *incident,
			     const struct cl_outcome *outcome)
{
	for (size_t i = 0; i < s->faults; i++)
		if (strcmp(incident->class, "job-wide") == 0 &&
		    outcome->cost[i].part >= least_cost && outcome->cost[i].part < 1 &&
		    cl_wanted_for(s, &s->fault[i]).who == NOBODY)
			return true;
	return false;
}

/* Sequences make the work of replicas uneven, and a phase is a change of the job. */
static bool tells_of_the_structure(const struct cl_scenario *s,
				   const struct nt_wire_incident *incident)
{
	return (s->structure.shares > 0 && strcmp(incident->class, "imbalance") == 0) ||
	       (s->structure.phase && strcmp(incident->class, "job-wide") == 0);
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
	struct cl_score score = {.seconds = -1, .cost = -1, .slowdown = -1};

	for (size_t i = 0; i < scenario->faults; i++)
		score_fault(scenario, i, judgement, outcome, &score);
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;
		bool wanted = false;

		count_accused(scenario, incident, &score);
		score.open += is_over(scenario) && strcmp(incident->state, "firing") == 0;
		for (size_t j = 0; j < scenario->faults; j++)
			wanted |= names(scenario, &scenario->fault[j], incident);
		wanted |= tells_of_the_job(scenario, incident, outcome) ||
			  tells_of_the_structure(scenario, incident);
		score.needless +=
			!wanted && (!accuses(incident) || is_false_alarm(scenario, incident));
	}
	score.cost = score_cost(scenario, judgement, outcome, &score);
	score.slowdown = score_slowdown(scenario, judgement, outcome, &score);
	return score;
}
