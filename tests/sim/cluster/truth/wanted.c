/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/truth/wanted.h"

#include <math.h>

#include "tests/sim/cluster/parallelism.h"
#include "tests/sim/cluster/traffic.h"
#include "tests/sim/cluster/truth/sight.h"

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
	       (cl_sight_has_all_work(s) && cl_traffic_is_shared(s, f->target));
}

/* Where only the step tells it, it must be longer for a minute, and for no other reason. */
static bool is_told_as_batch(const struct cl_scenario *s, const struct cl_fault *f)
{
	const uint32_t until = f->until < s->steps ? f->until : s->steps;

	if (f->of)
		return false;
	if (cl_sight_has_all_work(s))
		return true;
	return s->faults == 1 && f->from + f->ramp < until &&
	       (until - f->from - f->ramp) * s->step_s >= 100;
}

/* A switch is no culprit, so one of its communicators is named. */
static struct cl_wanted wanted_of_network(const struct cl_scenario *s, const struct cl_fault *f)
{
	if (f->kind != CL_SWITCH && is_told_apart(s, f))
		return (struct cl_wanted){f->kind == CL_NIC ? THE_NIC : THE_PATH, "network", NULL};
	if (!is_used(s, f) || !cl_sight_is_even(s))
		return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
	return (struct cl_wanted){cl_sight_has_all_work(s) ? THE_LINK : NOBODY, "network", NULL};
}

static struct cl_wanted wanted_if_observed(const struct cl_scenario *s, const struct cl_fault *f)
{
	const bool works = cl_sight_has_all_work(s);

	switch (f->kind) {
	case CL_COMPUTE_RANK:
		if (!cl_sight_has_work_of(s, f->target))
			return (struct cl_wanted){NOBODY, NULL, NULL};
		if (cl_sight_is_alone(s, f->target))
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct cl_wanted){THE_RANK, "compute", NULL};
	case CL_COMPUTE_NODE:
		if (cl_sight_is_crowded(s, f->target))
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		if (!cl_sight_has_work_of(s, cl_scenario_rank_on(s, f->target, 0)))
			return (struct cl_wanted){NOBODY, NULL, NULL};
		return (struct cl_wanted){THE_NODE, "compute", NULL};
	case CL_COMPUTE_HALF:
		if (!cl_sight_is_even(s))
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct cl_wanted){works ? THE_HALF : NOBODY, "compute", NULL};
	case CL_BATCH:
		return (struct cl_wanted){is_told_as_batch(s, f) ? INFORMATION : NOTHING_NEEDED,
					  "job-wide", NULL};
	case CL_LATE_STAGE:
		if (!cl_sight_is_even(s))
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		if (!works)
			return (struct cl_wanted){NOBODY, NULL, NULL};
		if (f->from == 0)
			return (struct cl_wanted){INFORMATION, "imbalance", NULL};
		/* A ramp is imbalance that grows, or as steep as a jump. */
		if (f->ramp || s->dp < 2)
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct cl_wanted){THE_STAGE, "compute", NULL};
	case CL_UNEVEN:
		if (!cl_sight_is_even(s))
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct cl_wanted){works ? INFORMATION : NOBODY, "imbalance", NULL};
	case CL_LOADER:
	case CL_GC_RANK:
		if (cl_sight_is_alone(s, f->target))
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct cl_wanted){THE_RANK, "host", "storage"};
	case CL_CONTENTION:
		if (cl_sight_is_crowded(s, f->target))
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct cl_wanted){THE_NODE, "host", NULL};
	case CL_GC_ALL:
		return (struct cl_wanted){INFORMATION, "job-wide", NULL};
	case CL_CHECKPOINT_RANK:
		/* Ten steps are not long. */
		if (f->factor < 1.2 * fmax(15, 10 * s->step_s) + 3)
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct cl_wanted){THE_RANK, "host", NULL};
	case CL_NIC:
	case CL_PATH:
	case CL_SWITCH:
		return wanted_of_network(s, f);
	case CL_EXIT:
		return (struct cl_wanted){THE_RANK, "missing", NULL};
	case CL_LAGGARD:
		return (struct cl_wanted){THE_RANK, "hang", NULL};
	case CL_MISMATCH:
		/* Of what goes around nobody's size is another's. */
		if (cl_traffic_is_ring(s))
			return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
		return (struct cl_wanted){THE_RANK, "mismatch", NULL};
	case CL_NETWORK_HANG:
		return (struct cl_wanted){EVERYBODY, "hang", NULL};
	default: /* checkpoints of all, agents that come and go */
		return (struct cl_wanted){NOBODY, NULL, NULL};
	}
}

/* Elsewhere are so many times the peers that a rank of the node has on it, at least. */
static double outnumbered(const struct cl_scenario *s, uint32_t node)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < cl_scenario_ranks_on(s, node); i++) {
		uint32_t all, n = cl_sight_peers_on(s, cl_scenario_rank_on(s, node, i), node, &all);

		least = fmin(least, (double)(all - n) / n);
	}
	return least;
}

/* No rank has a past without the fault. */
static struct cl_wanted wanted_from_start(const struct cl_scenario *s, const struct cl_fault *f,
					  struct cl_wanted wanted)
{
	static const double common_spread = 0.1, small_spread = 0.005;
	const struct cl_wanted nothing = {NOTHING_NEEDED, NULL, NULL},
			       halves = {TWO_POPULATIONS, "unknown", NULL};

	if (f->kind == CL_COMPUTE_RANK && wanted.who == THE_RANK && s->spread > small_spread &&
	    f->factor - 1 <= common_spread)
		return nothing;
	/* Only that communicators alike are faster over other links tells it. */
	if (f->kind == CL_PATH || f->kind == CL_SWITCH ||
	    (f->kind == CL_NIC &&
	     !(cl_sight_has_all_work(s) && cl_traffic_is_shared(s, f->target))))
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

struct cl_wanted cl_wanted_for(const struct cl_scenario *s, const struct cl_fault *f)
{
	struct cl_wanted wanted = wanted_if_observed(s, f);

	if (f->from == 0 && f->ramp == 0)
		wanted = wanted_from_start(s, f, wanted);
	if ((wanted.who == THE_RANK && cl_sight_is_unobserved(s, f->target)) ||
	    (wanted.who == THE_NODE &&
	     cl_sight_is_unobserved(s, cl_scenario_rank_on(s, f->target, 0))))
		return (struct cl_wanted){NOTHING_NEEDED, NULL, NULL};
	return wanted;
}
