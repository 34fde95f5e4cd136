/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/call_period.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	ROUNDS = 4, /* that must be observed */
	HINTED_ROUNDS = 3,
	COUNTED_ROUNDS = 3,
	NESTED_ROUNDS = 6,
	IDLE_ROUNDS = 8,
	LEAST_FORWARD = 6, /* a part of what is launched in a round, well below a quarter */
};

/* How far the longest interval must exceed the others. */
struct clarity {
	uint32_t rounds; /* that must be observed */
	double share; /* of the round, above an equal share */
	double steady; /* part of the rounds */
};

static const struct clarity plain = {ROUNDS, 0.25, 0.85}, hinted = {HINTED_ROUNDS, 0.15, 0.6},
			    nested = {NESTED_ROUNDS, 0.08, 0.9}, idle = {IDLE_ROUNDS, 0.1, 0.9};

/* Insertion sort: at most NT_CALL_PERIOD_GAPS / 2 values, and few rounds are long. */
static uint32_t median(uint32_t *value, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		uint32_t v = value[i], at = i;

		for (; at > 0 && value[at - 1] > v; at--)
			value[at] = value[at - 1];
		value[at] = v;
	}
	return value[count / 2];
}

/* The part of the rounds in which the interval at `first` is clearly the longest. */
static double steadiness(const uint32_t *gap_us, uint32_t rounds, uint32_t round, uint32_t first)
{
	uint32_t hits = 0;

	for (uint32_t r = 0; r < rounds; r++) {
		const uint32_t *gap = gap_us + (size_t)r * round;
		uint32_t other = 0;

		for (uint32_t i = 0; i < round; i++) {
			if (i != first && gap[i] > other)
				other = gap[i];
		}
		hits += gap[first] > other + other / 5;
	}
	return (double)hits / rounds;
}

static bool is_round(const uint32_t *gap_us, uint32_t count, uint32_t round,
		     const struct clarity *clarity, uint32_t *ret_first)
{
	uint32_t rounds = count / round, first = 0, longest = 0;
	uint32_t value[NT_CALL_PERIOD_GAPS];
	double sum = 0, share;

	if (rounds < clarity->rounds)
		return false;
	for (uint32_t i = 0; i < round; i++) {
		uint32_t typical;

		for (uint32_t r = 0; r < rounds; r++)
			value[r] = gap_us[r * round + i];
		typical = median(value, rounds);
		sum += typical;
		if (typical > longest) {
			longest = typical;
			first = i;
		}
	}
	share = sum > 0 ? longest / sum : 0;
	if (share < 1.0 / round + clarity->share ||
	    steadiness(gap_us, rounds, round, first) < clarity->steady)
		return false;
	*ret_first = first;
	return true;
}

/* Unequal parts of a round may look like rounds: do their long intervals alternate in length? */
static uint32_t widen(const uint32_t *gap_us, uint32_t count, uint32_t round, uint32_t *ret_first)
{
	uint32_t first = *ret_first, begins = 0, begin_us[NT_CALL_PERIOD_GAPS], at;

	for (uint32_t j = first; j < count; j += round)
		begin_us[begins++] = gap_us[j];
	for (uint32_t times = 2; times * round <= NT_CALL_PERIOD_LONGEST; times++) {
		if (!is_round(begin_us, begins, times, &nested, &at))
			continue;
		*ret_first = first + at * round;
		return times * round;
	}
	return round;
}

static uint32_t find_round(const uint32_t *gap_us, uint32_t count, const struct clarity *clarity,
			   uint32_t *ret_first)
{
	for (uint32_t round = 2; round <= NT_CALL_PERIOD_LONGEST; round++) {
		if (is_round(gap_us, count, round, clarity, ret_first))
			return widen(gap_us, count, round, ret_first);
	}
	return 0;
}

uint32_t nt_call_period_find(const uint32_t *gap_us, uint32_t count, uint32_t hint,
			     uint32_t *ret_first)
{
	if (count > NT_CALL_PERIOD_GAPS)
		count = NT_CALL_PERIOD_GAPS;
	if (hint > 1 && hint <= NT_CALL_PERIOD_LONGEST &&
	    is_round(gap_us, count, hint, &hinted, ret_first))
		return hint;
	return find_round(gap_us, count, &plain, ret_first);
}

uint32_t nt_call_period_find_idle(const uint32_t *idle_us, uint32_t count, uint32_t hint,
				  uint32_t *ret_first)
{
	uint32_t round = nt_call_period_find(idle_us, count, hint, ret_first);

	if (count > NT_CALL_PERIOD_GAPS)
		count = NT_CALL_PERIOD_GAPS;
	return round ? round : find_round(idle_us, count, &idle, ret_first);
}

/* ---- counts --------------------------------------------------------------------------------- */

/* The number of values that differ from what is usual at their place of the round. */
static uint32_t count_misses(const uint32_t *value, uint32_t count, uint32_t round,
			     uint32_t *ret_usual)
{
	uint32_t sorted[NT_CALL_PERIOD_GAPS], misses = 0;

	assert(round <= count); /* so that every place has a value */
	for (uint32_t i = 0; i < round; i++) {
		uint32_t n = 0, usual, slack;

		for (uint32_t j = i; j < count; j += round)
			sorted[n++] = value[j];
		usual = ret_usual[i] = median(sorted, n);
		slack = usual / 16 > 1 ? usual / 16 : 1;
		for (uint32_t j = i; j < count; j += round)
			misses += value[j] > usual ? value[j] - usual > slack
						   : usual - value[j] > slack;
	}
	return misses;
}

/* Of several maxima, the one whose followers, going back in time, are the largest. */
static uint32_t find_begin(const uint32_t *usual, uint32_t round)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < round; i++) {
		for (uint32_t j = 0; j < round; j++) {
			uint32_t a = usual[(i + j) % round], b = usual[(best + j) % round];

			if (a == b)
				continue;
			if (a > b)
				best = i;
			break;
		}
	}
	return best;
}

/* True if one value stands out. Steps with occasional extra launches are not a round of steps. */
static bool stands_out(const uint32_t *usual, uint32_t round, uint32_t begin)
{
	uint32_t other[NT_CALL_PERIOD_LONGEST], n = 0, most;

	for (uint32_t i = 0; i < round; i++)
		if (i != begin)
			other[n++] = usual[i];
	most = n ? median(other, n) : 0;
	return usual[begin] > most + most / 2;
}

/*
 * Nor are steps with an occasional evaluation. In a round of gradient buckets one holds the forward
 * pass: at least a quarter of the round, even if the backward pass recomputes activations.
 */
static bool holds_forward(const uint32_t *usual, uint32_t round, uint32_t begin)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < round; i++)
		sum += usual[i];
	return usual[begin] >= sum / LEAST_FORWARD;
}

uint32_t nt_call_period_count(const uint32_t *value, uint32_t count, bool steps,
			      uint32_t *ret_first)
{
	uint32_t misses[NT_CALL_PERIOD_LONGEST + 1], usual[NT_CALL_PERIOD_LONGEST],
		least = UINT32_MAX;
	uint32_t longest, begin;

	if (count > NT_CALL_PERIOD_GAPS)
		count = NT_CALL_PERIOD_GAPS;
	longest = count / COUNTED_ROUNDS;
	if (longest > NT_CALL_PERIOD_LONGEST)
		longest = NT_CALL_PERIOD_LONGEST;
	if (longest < 2)
		return 0;
	for (uint32_t round = 1; round <= longest; round++) {
		misses[round] = count_misses(value, count, round, usual);
		if (misses[round] < least)
			least = misses[round];
	}
	if (least * 7 > count)
		return 0;
	for (uint32_t round = 1; round <= longest; round++) {
		if (misses[round] > 2 * least + count / 128)
			continue;
		(void)count_misses(value, count, round, usual);
		begin = find_begin(usual, round);
		if (round > 1 && stands_out(usual, round, begin) &&
		    (!steps || holds_forward(usual, round, begin))) {
			*ret_first = begin;
			return round;
		}
		break;
	}
	(void)count_misses(value, count, 1, usual);
	return misses[1] * 7 <= count && usual[0] ? 1 : 0;
}
