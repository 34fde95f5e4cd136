/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/cost.h"

#include <math.h>

#include "tests/sim/cluster/play.h"

/* Does it only slow the job? What stands has no cost by the step. */
static bool only_slows(enum cl_fault_kind kind)
{
	return kind <= CL_GC_ALL || kind == CL_NIC || kind == CL_PATH;
}

static void drop_calls(struct cl_play *play, uint32_t ranks)
{
	for (uint32_t i = 0; i < ranks; i++) {
		struct cl_calls *calls = cl_play_calls(play, i);

		calls->first = calls->count = 0;
		cl_play_busies(play, i)->count = 0;
	}
}

/* How long the steps from `from` to `until` take, s. */
static int time_steps(const struct cl_scenario *s, uint32_t from, uint32_t until, double *ret_s)
{
	struct cl_play *play;
	int64_t start_ns = 0;
	int r = cl_play_new(s, &play);

	if (r < 0)
		return r;
	for (uint32_t step = 0; step < until && r == 0; step++) {
		if (step == from)
			start_ns = cl_play_known_ns(play);
		r = cl_play_step(play);
		drop_calls(play, cl_scenario_ranks(s));
	}
	*ret_s = (double)(cl_play_known_ns(play) - start_ns) / 1e9;
	cl_play_free(play);
	return r;
}

/* What those of `kept` cost beyond those of `rest`, by bits. */
static int compare(const struct cl_scenario *s, const struct cl_fault *fault, uint32_t kept,
		   uint32_t rest, double *ret_part, double *ret_lost_s)
{
	uint32_t until = fault->until < s->steps ? fault->until : s->steps;
	double second[2];

	for (int i = 0; i < 2; i++) {
		struct cl_scenario only = *s;
		uint32_t bits = i ? rest : kept;
		int r;

		for (size_t j = 0; j < s->faults; j++) {
			if (!(bits >> j & 1))
				only.fault[j].from = UINT32_MAX;
		}
		r = time_steps(&only, fault->from, until, &second[i]);
		if (r < 0)
			return r;
	}
	*ret_lost_s = second[0] - second[1];
	*ret_part = second[0] > 0 ? *ret_lost_s / second[0] : 0;
	return 0;
}

int cl_cost_of_faults(const struct cl_scenario *scenario, struct cl_cost cost[CL_MAX_FAULTS])
{
	uint32_t all = (1U << scenario->faults) - 1;

	for (size_t i = 0; i < scenario->faults; i++) {
		const struct cl_fault *fault = &scenario->fault[i];
		uint32_t bit = 1U << i;
		double ignored;
		int r;

		cost[i] = (struct cl_cost){.part = INFINITY, .alone = INFINITY};
		if (!only_slows(fault->kind) || fault->from >= scenario->steps)
			continue;
		r = compare(scenario, fault, all, all & ~bit, &cost[i].part, &cost[i].lost_s);
		cost[i].alone = cost[i].part;
		if (r == 0 && all != bit)
			r = compare(scenario, fault, bit, 0, &cost[i].alone, &ignored);
		if (r < 0)
			return r;
	}
	return 0;
}
