/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The unit in which the steps of a rank are counted. */
#include "detect/unit.h"

#include <math.h>

#include "detect/core.h"
#include "detect/sort.h"
#include "detect/stats.h"

enum {
	SURE_ROUNDS = 3,
};

/* The next of 2 : 3 buckets; windows are cut at a step and may be a call off. */
static const double another = 1.4;
static const double alike = 0.25;

uint64_t nt_unit_calls(const struct nt_frame_rank *seen)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < seen->comms; i++) {
		const struct nt_frame_comm *comm = &seen->comm[i];

		for (size_t j = 0; j < comm->ops; j++)
			if (comm->op[j].kind == NT_FRAME_SYNCHRONISING ||
			    comm->op[j].kind == NT_FRAME_ALL_TO_ALL)
				calls = nt_stats_add(calls, comm->op[j].calls);
	}
	return calls;
}

/* Of two medians the upper: it is one that a rank has, and the longer unit is the likelier step. */
static double middle(struct nt_detect *detect, const uint32_t *index, uint32_t n, enum nt_pace item)
{
	double *value = detect->scratch.a;

	for (uint32_t i = 0; i < n; i++)
		value[i] = detect->rank[index[i]].pace[item];
	nt_sort_select(value, n, n / 2, n / 2);
	return value[n / 2];
}

/* Do calls and time differ, and by the same factor? */
static bool is_another(double calls, double step, double calls_then, double step_then)
{
	double by_calls, by_time;

	if (calls <= 0.0 || step <= 0.0 || calls_then <= 0.0 || step_then <= 0.0)
		return false;
	by_calls = calls / calls_then;
	by_time = step / step_then;
	return (by_calls >= another || by_calls <= 1.0 / another) &&
	       fabs(by_time / by_calls - 1.0) <= alike;
}

static void forget(struct nt_detect *detect, const uint32_t *index, uint32_t n)
{
	nt_normal_forget(detect, false);
	for (uint32_t i = 0; i < n; i++) {
		struct nt_rank *rank = &detect->rank[index[i]];

		rank->has_habit = false;
		for (int j = 0; j < NT_SERIES_END; j++)
			nt_past_clear(&rank->track[j].past);
	}
}

void nt_unit_align(struct nt_detect *detect, struct nt_group *group, const uint32_t *index,
		   uint32_t n)
{
	const double calls = middle(detect, index, n, NT_PACE_CALLS);
	const double step = middle(detect, index, n, NT_PACE_STEP);
	uint32_t known = 0, changed = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct nt_rank *rank = &detect->rank[index[i]];

		if (is_another(rank->pace[NT_PACE_CALLS], rank->pace[NT_PACE_STEP], calls, step)) {
			const double scale = step / rank->pace[NT_PACE_STEP];

			for (int j = 0; j < NT_PACE_END; j++)
				rank->pace[j] *= scale;
		}
		known += rank->has_habit;
		changed += rank->has_habit && is_another(calls, step, rank->habit[NT_PACE_CALLS],
							 rank->habit[NT_PACE_STEP]);
	}
	/* Windows that end between steps hold a call too many or too few: once is not enough. */
	group->unit_rounds = known && changed * 2 > known ? group->unit_rounds + 1 : 0;
	if (group->unit_rounds < SURE_ROUNDS)
		return;
	group->unit_rounds = 0;
	forget(detect, index, n);
}
