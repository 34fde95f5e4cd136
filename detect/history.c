/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long the job's steps took lately. */
#include "detect/history.h"

#include "detect/stats.h"
#include "detect/time.h"

void nt_history_add(struct nt_history *history, uint64_t start_ns, double steps, double step_ns)
{
	history->round[history->next] = (struct nt_history_round){
		.start_ns = start_ns,
		.steps = steps,
		.step_ns = step_ns,
	};
	history->next = (history->next + 1) % NT_HISTORY_ROUNDS;
	history->count += history->count < NT_HISTORY_ROUNDS;
	history->steps += steps;
}

void nt_history_forget(struct nt_history *history)
{
	history->count = history->next = 0;
}

/* The i-th latest. */
static const struct nt_history_round *latest(const struct nt_history *history, uint32_t i)
{
	return &history->round[(history->next + NT_HISTORY_ROUNDS - 1 - i) % NT_HISTORY_ROUNDS];
}

double nt_history_before(const struct nt_history *history, uint64_t onset_ns)
{
	double step[NT_HISTORY_BEFORE];
	uint32_t n = 0;

	for (uint32_t i = 0; i < history->count && n < NT_HISTORY_BEFORE; i++)
		if (latest(history, i)->start_ns < onset_ns)
			step[n++] = latest(history, i)->step_ns;
	return n < NT_PAST_FEW ? 0.0 : nt_stats_median_of(step, n);
}

double nt_history_low(const struct nt_history *history, uint64_t since_ns)
{
	double step[NT_HISTORY_ROUNDS];
	uint32_t n = 0;

	for (; n < history->count && latest(history, n)->start_ns >= since_ns; n++)
		step[n] = latest(history, n)->step_ns;
	return n ? nt_stats_quantile_of(step, n, 0.25) : 0.0;
}

uint64_t nt_history_start(const struct nt_history *history, uint32_t rounds)
{
	if (!history->count)
		return 0;
	return latest(history, rounds < history->count ? rounds : history->count - 1)->start_ns;
}

struct nt_history_sum nt_history_since(const struct nt_history *history, uint64_t onset_ns)
{
	struct nt_history_sum sum = {0};

	for (uint32_t i = 0; i < history->count; i++) {
		const struct nt_history_round *round = latest(history, i);

		if (round->start_ns < onset_ns)
			break;
		sum.steps += round->steps;
		sum.step_ns += round->steps * round->step_ns;
	}
	return sum;
}
