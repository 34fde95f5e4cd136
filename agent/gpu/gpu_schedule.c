/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_schedule.h"

#include <stdlib.h>
#include <string.h>

#define FORGET_NS (60 * NT_SECOND) /* a rank without steps */

enum {
	STEPS = 3, /* in a window */
	LONGER_OF = 20, /* longer by a twentieth */
	LONGER_WINDOWS = 2, /* in a row */
	MEANS_LEAST = 4,
	EARNS = 8, /* a second of credit in so many, for each reason */
};

static void extend(struct nt_gpu_schedule_reason *reason, uint64_t until_ns)
{
	if (until_ns > reason->until_ns)
		reason->until_ns = until_ns;
}

void nt_gpu_schedule_add(struct nt_gpu_schedule *schedule, uint64_t now_ns)
{
	extend(&schedule->fresh, now_ns + NT_GPU_SCHEDULE_NEW_NS);
}

/* The entry of a rank; else a free one, or one whose rank is forgotten. NULL: there is none. */
static struct nt_gpu_schedule_rank *rank_of(struct nt_gpu_schedule *schedule, uint64_t key,
					    uint64_t now_ns)
{
	struct nt_gpu_schedule_rank *oldest = &schedule->rank[0];

	for (int i = 0; i < NT_GPU_SCHEDULE_RANKS; i++) {
		struct nt_gpu_schedule_rank *rank = &schedule->rank[i];

		if (rank->key == key)
			return rank;
		if (rank->seen_ns < oldest->seen_ns)
			oldest = rank;
	}
	if (oldest->key && now_ns < oldest->seen_ns + FORGET_NS)
		return NULL;
	*oldest = (struct nt_gpu_schedule_rank){.key = key};
	return oldest;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t median_of(const struct nt_gpu_schedule_rank *rank)
{
	uint64_t sorted[NT_GPU_SCHEDULE_MEANS];

	memcpy(sorted, rank->mean_ns, rank->means * sizeof(sorted[0]));
	qsort(sorted, rank->means, sizeof(sorted[0]), ascending);
	return rank->means ? sorted[rank->means / 2] : 0;
}

void nt_gpu_schedule_steps(struct nt_gpu_schedule *schedule, uint32_t pid, uint32_t rank_number,
			   uint32_t steps, uint64_t step_ns, uint64_t now_ns)
{
	struct nt_gpu_schedule_rank *rank;
	uint64_t mean_ns, median_ns;

	if (!steps || !pid)
		return;
	rank = rank_of(schedule, (uint64_t)pid << 32 | rank_number, now_ns);
	if (!rank)
		return;
	mean_ns = step_ns / steps;
	median_ns = median_of(rank);
	rank->seen_ns = now_ns;
	if (rank->means >= MEANS_LEAST && mean_ns > median_ns + median_ns / LONGER_OF)
		rank->longer++;
	else
		rank->longer = 0;
	if (rank->longer >= LONGER_WINDOWS)
		extend(&schedule->longer, now_ns + NT_GPU_SCHEDULE_LONGER_NS);
	rank->mean_ns[rank->next] = mean_ns;
	rank->next = (rank->next + 1) % NT_GPU_SCHEDULE_MEANS;
	if (rank->means < NT_GPU_SCHEDULE_MEANS)
		rank->means++;
}

static uint64_t longest_step_ns(const struct nt_gpu_schedule *schedule, uint64_t now_ns)
{
	uint64_t longest = 0;

	for (int i = 0; i < NT_GPU_SCHEDULE_RANKS; i++) {
		const struct nt_gpu_schedule_rank *rank = &schedule->rank[i];
		const uint64_t median_ns = rank->key ? median_of(rank) : 0;

		if (now_ns < rank->seen_ns + FORGET_NS && median_ns > longest)
			longest = median_ns;
	}
	return longest;
}

/*
 * Whether it holds, and has credit: it ends without, and begins again with a fifth of it. measured_ns:
 * since the last call, 0 if nothing was measured or another reason has paid for it.
 */
static bool holds(struct nt_gpu_schedule_reason *reason, uint64_t now_ns, uint64_t measured_ns,
		  uint64_t passed_ns)
{
	const bool wanted = now_ns < reason->until_ns;
	const uint64_t earned_ns = passed_ns / EARNS;

	if (wanted && !reason->is_spent)
		reason->spent_ns += measured_ns;
	else
		reason->spent_ns -= earned_ns < reason->spent_ns ? earned_ns : reason->spent_ns;
	if (reason->spent_ns >= NT_GPU_SCHEDULE_CREDIT_NS)
		reason->is_spent = true;
	else if (reason->spent_ns <= NT_GPU_SCHEDULE_CREDIT_NS / 5 * 4)
		reason->is_spent = false;
	return wanted && !reason->is_spent;
}

static bool is_continuous(struct nt_gpu_schedule *schedule, bool measures, uint64_t now_ns)
{
	const uint64_t passed_ns =
		schedule->seen_ns && now_ns > schedule->seen_ns ? now_ns - schedule->seen_ns : 0;
	const uint64_t measured_ns = measures ? passed_ns : 0;
	const bool is_fresh = holds(&schedule->fresh, now_ns, measured_ns, passed_ns);
	const bool is_longer =
		holds(&schedule->longer, now_ns, is_fresh ? 0 : measured_ns, passed_ns);

	schedule->seen_ns = now_ns;
	return is_fresh || is_longer;
}

/* Three steps, but no more than half of the interval, and no less than is configured. */
static uint64_t window_of(const struct nt_gpu_schedule *schedule, uint64_t now_ns)
{
	const uint64_t steps_ns = STEPS * longest_step_ns(schedule, now_ns);
	const uint64_t half_ns = schedule->interval_ns / 2;
	const uint64_t wanted_ns = steps_ns < half_ns ? steps_ns : half_ns;

	return wanted_ns > schedule->window_ns ? wanted_ns : schedule->window_ns;
}

bool nt_gpu_schedule_is_open(struct nt_gpu_schedule *schedule, bool measures, uint64_t now_ns,
			     uint64_t real_ns)
{
	if (!schedule->window_ns)
		return false;
	if (is_continuous(schedule, measures, now_ns) || !schedule->interval_ns)
		return true;
	return real_ns % schedule->interval_ns < window_of(schedule, now_ns);
}
