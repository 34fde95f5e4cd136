/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The unit in which the steps of a rank are counted. */
#include "detect/unit.h"

#include <math.h>
#include <string.h>

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
static double middle(struct nt_detect *detect, const double *value, uint32_t n)
{
	double *copy = detect->scratch.a;

	memcpy(copy, value, n * sizeof(*copy));
	nt_sort_select(copy, n, n / 2, n / 2);
	return copy[n / 2];
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
	double *const *column = detect->scratch.column;
	double *calls = column[0], *step = column[1], *calls_then = column[2],
	       *step_then = column[3];
	uint32_t known = 0, changed = 0;
	double middle_calls, middle_step;

	for (uint32_t i = 0; i < n; i++) {
		const struct nt_rank *rank = &detect->rank[index[i]];

		calls[i] = rank->pace[NT_PACE_CALLS];
		step[i] = rank->pace[NT_PACE_STEP];
		if (!rank->has_habit)
			continue;
		calls_then[known] = rank->habit[NT_PACE_CALLS];
		step_then[known++] = rank->habit[NT_PACE_STEP];
	}
	middle_calls = middle(detect, calls, n);
	middle_step = middle(detect, step, n);
	for (uint32_t i = 0; i < n; i++) {
		struct nt_rank *rank = &detect->rank[index[i]];

		if (!is_another(calls[i], step[i], middle_calls, middle_step))
			continue;
		for (int j = 0; j < NT_PACE_END; j++)
			rank->pace[j] *= middle_step / step[i];
	}
	for (uint32_t i = 0; i < known; i++)
		changed += is_another(middle_calls, middle_step, calls_then[i], step_then[i]);
	/* Windows that end between steps hold a call too many or too few: once is not enough. */
	group->unit_rounds = known && changed * 2 > known ? group->unit_rounds + 1 : 0;
	if (group->unit_rounds < SURE_ROUNDS)
		return;
	group->unit_rounds = 0;
	forget(detect, index, n);
}
