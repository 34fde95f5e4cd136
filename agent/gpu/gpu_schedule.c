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
	EARNS = 4, /* a second of credit in so many */
};

void nt_gpu_schedule_add(struct nt_gpu_schedule *schedule, uint64_t now_ns)
{
	if (now_ns + NT_GPU_SCHEDULE_NEW_NS > schedule->until_ns)
		schedule->until_ns = now_ns + NT_GPU_SCHEDULE_NEW_NS;
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
	if (rank->longer >= LONGER_WINDOWS &&
	    now_ns + NT_GPU_SCHEDULE_LONGER_NS > schedule->until_ns)
		schedule->until_ns = now_ns + NT_GPU_SCHEDULE_LONGER_NS;
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

/* Continuous measurement goes on while there is credit, and begins again with a fifth of it. */
static bool is_continuous(struct nt_gpu_schedule *schedule, uint64_t now_ns)
{
	const bool wanted = now_ns < schedule->until_ns;
	const uint64_t passed_ns =
		schedule->seen_ns && now_ns > schedule->seen_ns ? now_ns - schedule->seen_ns : 0;
	const uint64_t earned_ns = passed_ns / EARNS;

	schedule->seen_ns = now_ns;
	if (wanted && !schedule->is_spent)
		schedule->spent_ns += passed_ns;
	else
		schedule->spent_ns -=
			earned_ns < schedule->spent_ns ? earned_ns : schedule->spent_ns;
	if (schedule->spent_ns >= NT_GPU_SCHEDULE_CREDIT_NS)
		schedule->is_spent = true;
	else if (schedule->spent_ns <= NT_GPU_SCHEDULE_CREDIT_NS / 5 * 4)
		schedule->is_spent = false;
	return wanted && !schedule->is_spent;
}

/* Three steps, but no more than half of the interval, and no less than is configured. */
static uint64_t window_of(const struct nt_gpu_schedule *schedule, uint64_t now_ns)
{
	const uint64_t steps_ns = STEPS * longest_step_ns(schedule, now_ns);
	const uint64_t half_ns = schedule->interval_ns / 2;
	const uint64_t wanted_ns = steps_ns < half_ns ? steps_ns : half_ns;

	return wanted_ns > schedule->window_ns ? wanted_ns : schedule->window_ns;
}

bool nt_gpu_schedule_is_open(struct nt_gpu_schedule *schedule, uint64_t now_ns, uint64_t real_ns)
{
	if (!schedule->window_ns)
		return false;
	if (is_continuous(schedule, now_ns) || !schedule->interval_ns)
		return true;
	return real_ns % schedule->interval_ns < window_of(schedule, now_ns);
}
