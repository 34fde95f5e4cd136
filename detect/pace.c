/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the ranks of one role did a step. */
#include "detect/pace.h"

#include <string.h>

/* Sums become paces: per step, and for the thread, whose window is not cut at steps, scaled to one. */
static void set_pace(struct nt_rank *rank)
{
	const double steps = rank->steps;
	const double step = (double)rank->sum[NT_PACE_STEP] / steps;

	for (int i = 0; i < NT_PACE_THREAD; i++)
		rank->pace[i] = (double)rank->sum[i] / steps;
	for (int i = NT_PACE_THREAD; i < NT_PACE_END; i++)
		rank->pace[i] = rank->window_ns
					? (double)rank->sum[i] * step / (double)rank->window_ns
					: 0.0;
	memset(rank->sum, 0, sizeof(rank->sum));
	rank->window_ns = 0;
	rank->steps = 0;
}

struct nt_paces nt_paces_take(struct nt_detect *detect, const uint32_t *index, uint32_t n)
{
	struct nt_paces paces = {
		.index = index,
		.n = n,
		.column = detect->scratch.column,
		.calls_then = detect->scratch.d,
		.step_then = detect->scratch.e,
		.took = detect->scratch.f,
	};

	for (uint32_t i = 0; i < n; i++) {
		struct nt_rank *rank = &detect->rank[index[i]];

		if (i + NT_RANKS_AHEAD < n) {
			const struct nt_rank *next = &detect->rank[index[i + NT_RANKS_AHEAD]];

			nt_rank_expect(next->sum, offsetof(struct nt_rank, track) -
							  offsetof(struct nt_rank, sum));
		}
		paces.took[i] = (double)rank->sum[NT_PACE_STEP];
		paces.calls += (double)rank->sum[NT_PACE_CALLS];
		if (rank->steps)
			set_pace(rank);
		for (int j = 0; j < NT_PACE_END; j++)
			paces.column[j][i] = rank->pace[j];
		paces.tiers[rank->tier]++;
		paces.hosts += nt_rank_shows_host(rank);
		if (!rank->has_habit)
			continue;
		paces.calls_then[paces.known] = rank->habit[NT_PACE_CALLS];
		paces.step_then[paces.known++] = rank->habit[NT_PACE_STEP];
	}
	return paces;
}

static bool is_of_host(int item)
{
	return item == NT_PACE_HOST || item == NT_PACE_BLOCKED || item == NT_PACE_COMM;
}

/* Leaves of the column those ranks that show it. */
static void keep(const struct nt_detect *detect, const struct nt_paces *paces, uint8_t own_tier,
		 int item)
{
	double *column = paces->column[item];

	for (uint32_t i = 0, kept = 0; i < paces->n; i++) {
		const struct nt_rank *rank = &detect->rank[paces->index[i]];

		if (nt_pace_is_own(item) ? rank->tier == own_tier : nt_rank_shows_host(rank))
			column[kept++] = column[i];
	}
}

void nt_paces_middles(const struct nt_detect *detect, const struct nt_paces *paces,
		      struct nt_pace_middles *middles)
{
	for (int i = 0; i < NT_PACE_END; i++) {
		uint32_t held = is_of_host(i) ? paces->hosts : paces->n;

		if (nt_pace_is_own(i))
			held = middles->own_tier ? paces->tiers[middles->own_tier] : 0;
		middles->held[i] = held;
		if (held < paces->n)
			keep(detect, paces, middles->own_tier, i);
		if (held >= 2)
			middles->of[i] = nt_stats_middle_of(paces->column[i], held);
	}
	middles->known = true;
}
