/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tests/sim/cluster/play/play.h"

/* Does it only slow the job? What stands has no cost by the step. */
static bool only_slows(enum cl_fault_kind kind)
{
	return kind <= CL_GC_ALL || kind == CL_NIC || kind == CL_PATH || kind == CL_SWITCH;
}

/* Of what the job does then not all is heard. */
static bool is_unobserved(enum cl_fault_kind kind)
{
	return kind == CL_AGENT_DIES;
}

static void drop_calls(struct cl_play *play, uint32_t ranks)
{
	for (uint32_t i = 0; i < ranks; i++) {
		struct cl_calls *calls = cl_play_calls(play, i);

		calls->first = calls->count = 0;
		cl_play_busies(play, i)->count = 0;
		cl_play_sent(play, i)->count = 0;
	}
}

/* Without the faults whose bits are not in `kept`. */
static struct cl_scenario keep(const struct cl_scenario *s, uint32_t kept)
{
	struct cl_scenario only = *s;

	only.proxies = false;

	for (size_t i = 0; i < s->faults; i++) {
		if (!(kept >> i & 1))
			only.fault[i].from = UINT32_MAX;
	}
	return only;
}

/*
 * When each of the first `until` steps is done, ns; end_ns[0] is when the first begins. Returns -errno or
 * how many of them were done before the job stood still, which it then does since *ret_stands_ns.
 */
static int time_steps(const struct cl_scenario *s, uint32_t until, int64_t *end_ns,
		      int64_t *ret_stands_ns)
{
	struct cl_play *play;
	int done = 0, r = cl_play_new(s, &play);

	if (r < 0)
		return r;
	end_ns[0] = cl_play_known_ns(play);
	for (uint32_t step = 0; step < until && r == 0; step++) {
		r = cl_play_step(play);
		drop_calls(play, cl_scenario_ranks(s));
		end_ns[step + 1] = cl_play_known_ns(play);
		done += !cl_play_stands(play, ret_stands_ns);
	}
	cl_play_free(play);
	return r < 0 ? r : done;
}

/* What those of `kept` cost beyond those of `rest`, by bits. */
static int compare(const struct cl_scenario *s, const struct cl_fault *fault, uint32_t kept,
		   uint32_t rest, double *ret_part)
{
	const uint32_t until = fault->until < s->steps ? fault->until : s->steps;
	int64_t *end_ns = calloc(s->steps + 1U, sizeof(*end_ns)), ignored;
	double took_ns[2] = {0};
	int r = end_ns ? 0 : -ENOMEM;

	for (int i = 0; i < 2 && r >= 0; i++) {
		const struct cl_scenario only = keep(s, i ? rest : kept);

		r = time_steps(&only, until, end_ns, &ignored);
		took_ns[i] = (double)(end_ns[until] - end_ns[fault->from]);
	}
	*ret_part = took_ns[0] > 0 ? (took_ns[0] - took_ns[1]) / took_ns[0] : 0;
	free(end_ns);
	return r < 0 ? r : 0;
}

int cl_cost_of_faults(const struct cl_scenario *scenario, struct cl_cost cost[CL_MAX_FAULTS])
{
	uint32_t all = (1U << scenario->faults) - 1;

	for (size_t i = 0; i < scenario->faults; i++) {
		const struct cl_fault *fault = &scenario->fault[i];
		uint32_t bit = 1U << i;
		int r;

		cost[i] = (struct cl_cost){.part = INFINITY, .alone = INFINITY};
		if (!only_slows(fault->kind) || fault->from >= scenario->steps)
			continue;
		r = compare(scenario, fault, all, all & ~bit, &cost[i].part);
		cost[i].alone = cost[i].part;
		if (r == 0 && all != bit)
			r = compare(scenario, fault, bit, 0, &cost[i].alone);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What the steps that were done cost, and the beginning of the one that was not. */
static double sum_steps(const int64_t *end_ns, const int64_t *without_ns, uint32_t steps,
			int64_t until_ns)
{
	uint32_t done = 0;
	double lost_ns, part, took_ns, needs_ns;

	while (done < steps && end_ns[done + 1] <= until_ns)
		done++;
	lost_ns = (double)(end_ns[done] - without_ns[done]);
	if (done == steps)
		return lost_ns;
	/* A step begins somewhere else for those who see only calls. */
	took_ns = (double)(end_ns[done + 1] - end_ns[done]);
	needs_ns = (double)(without_ns[done + 1] - without_ns[done]);
	part = (double)(until_ns - end_ns[done]) / took_ns;
	return lost_ns + fmax(0.0, part) * (took_ns - needs_ns);
}

int cl_cost_of_all(const struct cl_scenario *scenario, int64_t reported_ns, int64_t observed_ns,
		   double *ret_lost_s)
{
	const struct cl_scenario none = keep(scenario, 0);
	int64_t *end_ns = NULL, *without_ns = NULL, stands_ns = 0, ignored;
	int r = 0, done;

	*ret_lost_s = -1;
	for (size_t i = 0; i < scenario->faults; i++) {
		if (is_unobserved(scenario->fault[i].kind))
			return 0;
	}
	end_ns = calloc(scenario->steps + 1U, sizeof(*end_ns));
	without_ns = calloc(scenario->steps + 1U, sizeof(*without_ns));
	r = end_ns && without_ns ? 0 : -ENOMEM;
	r = r ?: time_steps(scenario, scenario->steps, end_ns, &stands_ns);
	done = r;
	if (r >= 0)
		r = time_steps(&none, scenario->steps, without_ns, &ignored);
	if (r >= 0 && done < (int)scenario->steps)
		*ret_lost_s =
			(double)(end_ns[done] - without_ns[done] + observed_ns - stands_ns) / 1e9;
	else if (r >= 0)
		*ret_lost_s = sum_steps(end_ns, without_ns, scenario->steps, reported_ns) / 1e9;
	free(end_ns);
	free(without_ns);
	return r < 0 ? r : 0;
}
