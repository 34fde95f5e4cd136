/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The history of the job's step times. */
#include "detect/model/history.h"

#include <math.h>

#include "detect/math/stats.h"
#include "detect/model/time.h"

void nt_history_add(struct nt_history *history, const struct nt_history_round *round)
{
	history->round[history->next] = *round;
	history->next = (history->next + 1) % NT_HISTORY_ROUNDS;
	history->count += history->count < NT_HISTORY_ROUNDS;
	history->steps += round->steps;
	history->calls += round->calls;
}

void nt_history_forget(struct nt_history *history, uint64_t now_ns)
{
	history->count = history->next = 0;
	history->calls = 0.0;
	history->begin_ns = now_ns;
}

/* The i-th latest round. */
static const struct nt_history_round *latest(const struct nt_history *history, uint32_t i)
{
	return &history->round[(history->next + NT_HISTORY_ROUNDS - 1 - i) % NT_HISTORY_ROUNDS];
}

double nt_history_last_steps(const struct nt_history *history)
{
	return history->count ? latest(history, 0)->steps : 0.0;
}

double nt_history_mean_steps(const struct nt_history *history)
{
	double steps = 0.0;

	for (uint32_t i = 0; i < history->count; i++)
		steps += history->round[i].steps;
	return history->count ? steps / history->count : 0.0;
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

double nt_history_before_mean(const struct nt_history *history, uint64_t onset_ns, double most_ns)
{
	double steps = 0.0, step_ns = 0.0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < history->count && n < NT_HISTORY_BEFORE; i++) {
		const struct nt_history_round *round = latest(history, i);

		if (round->start_ns >= onset_ns)
			continue;
		steps += round->steps;
		step_ns += round->steps * fmin(round->step_ns, most_ns);
		n++;
	}
	return n < NT_HISTORY_BEFORE || steps <= 0.0 ? 0.0 : step_ns / steps;
}

bool nt_history_same_unit(const struct nt_history *history, uint64_t onset_ns)
{
	/* Medians: a round that holds an evaluation has more calls. */
	double before[NT_HISTORY_BEFORE], since[NT_HISTORY_ROUNDS], was;
	struct nt_history_sum sum_before = {0}, sum_since = {0};
	uint32_t n = 0, m = 0;
	double ratio;

	for (uint32_t i = 0; i < history->count && n < NT_HISTORY_BEFORE; i++) {
		const struct nt_history_round *round = latest(history, i);
		const bool is_before = round->start_ns < onset_ns;
		struct nt_history_sum *sum = is_before ? &sum_before : &sum_since;

		if (round->steps <= 0.0)
			continue;
		*(is_before ? &before[n++] : &since[m++]) = round->calls / round->steps;
		sum->steps += round->steps;
		sum->calls += round->calls;
	}
	was = nt_stats_median_of(before, n);
	if (was <= 0.0 || !m)
		return true;
	ratio = sum_since.calls / sum_since.steps * sum_before.steps / sum_before.calls;
	/* Hosts that run ahead make the calls of several steps at a time. */
	return fabs(nt_stats_median_of(since, m) / was - 1.0) <= NT_STEP_UNIT_ALIKE ||
	       (ratio < NT_STEP_UNIT_ANOTHER && ratio > 1.0 / NT_STEP_UNIT_ANOTHER);
}

double nt_history_low(const struct nt_history *history, uint64_t since_ns)
{
	double step[NT_HISTORY_ROUNDS];
	uint32_t n = 0;

	for (; n < history->count && latest(history, n)->start_ns >= since_ns; n++)
		step[n] = latest(history, n)->step_ns;
	return n ? nt_stats_quantile_of(step, n, NT_WIDE_ROUNDS) : 0.0;
}

uint64_t nt_history_start(const struct nt_history *history, uint32_t rounds)
{
	if (!history->count)
		return 0;
	return latest(history, rounds < history->count ? rounds : history->count - 1)->start_ns;
}

struct nt_history_mean nt_history_mean(const struct nt_history *history, uint32_t later,
				       uint32_t rounds, double most_ns)
{
	struct nt_history_mean mean = {0};
	double squares = 0.0;

	if (later + rounds > history->count || rounds < 2)
		return mean;
	for (uint32_t i = 0; i < rounds; i++)
		mean.step_ns += fmin(latest(history, later + i)->step_ns, most_ns) / rounds;
	for (uint32_t i = 0; i < rounds; i++) {
		const double off =
			fmin(latest(history, later + i)->step_ns, most_ns) - mean.step_ns;

		squares += off * off;
	}
	mean.sigma_ns = sqrt(squares / (rounds - 1));
	return mean;
}

double nt_history_error(const struct nt_history_mean *a, uint32_t n,
			const struct nt_history_mean *b, uint32_t m)
{
	/* The larger spread is taken for both: few rounds may hold no hiccup by chance. */
	return fmax(a->sigma_ns, b->sigma_ns) * sqrt(1.0 / n + 1.0 / m);
}

uint32_t nt_history_rounds_since(const struct nt_history *history, uint64_t onset_ns)
{
	uint32_t n = 0;

	while (n < history->count && latest(history, n)->start_ns >= onset_ns)
		n++;
	return n;
}

/* The rounds that exceed the limit by the most in a row, latest first; each counts as up to two. */
static void find_longest(const struct nt_history *history, double limit, uint32_t *ret_from,
			 uint32_t *ret_until)
{
	double sum = 0.0, most = 0.0;
	uint32_t begin = 0;

	*ret_from = *ret_until = 0;
	for (uint32_t i = 0; i < history->count; i++) {
		sum += fmin(latest(history, i)->step_ns, 2.0 * limit) - limit;
		if (sum <= 0.0) {
			sum = 0.0;
			begin = i + 1;
		}
		if (sum > most) {
			most = sum;
			*ret_from = begin;
			*ret_until = i + 1;
		}
	}
}

bool nt_history_find_stretch(const struct nt_history *history, double least,
			     struct nt_history_stretch *ret_stretch)
{
	double in[NT_HISTORY_ROUNDS], out[NT_HISTORY_ROUNDS], usual;
	struct nt_history_sum within = {0}, others = {0};
	uint32_t from, until, n = 0, m = 0;

	for (uint32_t i = 0; i < history->count; i++)
		out[i] = latest(history, i)->step_ns;
	usual = nt_stats_median_of(out, history->count);
	find_longest(history, (1.0 + least) * usual, &from, &until);
	if (from >= until || until + NT_PAST_FEW > history->count)
		return false;
	for (uint32_t i = 0; i < history->count; i++) {
		const struct nt_history_round *round = latest(history, i);
		const bool is_in = i >= from && i < until;
		struct nt_history_sum *sum = is_in ? &within : &others;
		const double step_ns = fmin(round->step_ns, NT_UNDECIDED_MOST * usual);

		*(is_in ? &in[n++] : &out[m++]) = step_ns;
		sum->steps += round->steps;
		sum->step_ns += round->steps * step_ns;
	}
	if (within.steps <= 0.0 || others.steps <= 0.0 ||
	    nt_stats_quantile_of(in, n, NT_WIDE_ROUNDS) <=
		    nt_stats_quantile_of(out, m, 1.0 - NT_WIDE_ROUNDS))
		return false;
	usual = others.step_ns / others.steps;
	*ret_stretch = (struct nt_history_stretch){
		.onset_ns = latest(history, until - 1)->start_ns,
		.rounds = n,
		.step_ns = within.step_ns / within.steps,
		.usual_ns = usual,
		.lost = (within.step_ns - within.steps * usual) / (within.step_ns + others.step_ns),
	};
	return true;
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
		sum.calls += round->calls;
	}
	return sum;
}

double nt_history_excess(const struct nt_history *history, uint64_t onset_ns, double clean_ns,
			 double most_ns)
{
	double sum = 0.0;

	for (uint32_t i = 0; i < history->count; i++) {
		const struct nt_history_round *round = latest(history, i);

		if (round->start_ns < onset_ns)
			break;
		sum += round->steps * fmin(round->step_ns - clean_ns, most_ns);
	}
	return sum;
}

/*
 * Whether the `longer` rounds before the last `first` took longer than the `rest` before them by more than
 * chance.
 */
static bool is_change(const struct nt_history *history, uint32_t first, uint32_t longer,
		      uint32_t rest)
{
	const struct nt_history_mean before =
		nt_history_mean(history, first + longer, rest, INFINITY);
	struct nt_history_mean moved = nt_history_mean(history, first, longer, INFINITY);

	/* The spread of one round is that of those before. */
	if (longer < 2)
		moved = (struct nt_history_mean){latest(history, first)->step_ns, 0.0};
	return moved.step_ns - before.step_ns >=
	       NT_LOST_ERRORS * nt_history_error(&moved, longer, &before, rest);
}

uint64_t nt_history_onset(const struct nt_history *history, uint64_t onset_ns, uint64_t least_ns)
{
	const struct nt_history_sum since = nt_history_since(history, onset_ns);
	double step[NT_ONSET_ROUNDS], now, low, sum = 0.0, most = 0.0;
	const uint32_t first = nt_history_rounds_since(history, onset_ns);
	uint32_t n = 0, scanned = 0, longer = 0, shorter = 0, rest;

	while (n < NT_ONSET_ROUNDS && first + n < history->count &&
	       latest(history, first + n)->start_ns >= least_ns) {
		step[n] = latest(history, first + n)->step_ns;
		n++;
	}
	if (n < NT_PAST_FEW || since.steps <= 0.0)
		return onset_ns;
	now = since.step_ns / since.steps;
	/* Up to three of four rounds may already belong to the fault. */
	low = nt_stats_quantile_of(step, n, NT_WIDE_ROUNDS);
	if (now - low < NT_ONSET_EXCESS * low)
		return onset_ns;
	/*
	 * The most likely change point; a single stall counts as no more than one round. Long steps
	 * before many short ones are another phase of the program.
	 */
	for (; scanned < n && shorter < NT_ONSET_SHORTER; scanned++) {
		const struct nt_history_round *round = latest(history, first + scanned);

		shorter = round->step_ns < (now + low) / 2.0 ? shorter + 1 : 0;
		sum += round->steps * (nt_stats_clip(round->step_ns, low, now) - (now + low) / 2.0);
		if (sum > most) {
			most = sum;
			longer = scanned + 1;
		}
	}
	rest = shorter < NT_ONSET_SHORTER ? history->count - first - longer : scanned - longer;
	/* Where lengths are random, a few rounds are long by chance. */
	if (!longer || rest < NT_PAST_FEW || !is_change(history, first, longer, rest))
		return onset_ns;
	return latest(history, first + longer - 1)->start_ns;
}

double nt_history_unseen(const struct nt_history *history, uint64_t onset_ns, bool ahead)
{
	/* The first observed call may be the last one of its step. */
	double calls[NT_HISTORY_ROUNDS], steps = 0.0, step_ns = 0.0, a_step, by_time = 1.0;
	uint32_t n = 0, i = 0;

	for (; i < history->count && latest(history, i)->start_ns >= onset_ns; i++) {
		const struct nt_history_round *round = latest(history, i);

		steps += round->steps;
		step_ns += round->steps * round->step_ns;
		if (round->steps > 0.0)
			calls[n++] = round->calls / round->steps;
	}
	/* Calls of a window without a step count for the next one. */
	a_step = nt_stats_median_of(calls, n);
	if (a_step <= 0.0)
		return 0.0;
	if (!ahead)
		return fmax(0.0, history->calls / a_step - steps);
	if (latest(history, i - 1)->start_ns > history->begin_ns)
		by_time += (double)(latest(history, i - 1)->start_ns - history->begin_ns) * steps /
			   fmax(1.0, step_ns);
	return fmax(0.0, fmin(history->calls / a_step - steps, by_time));
}
