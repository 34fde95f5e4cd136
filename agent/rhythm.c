/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rhythm.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	ROUNDS = 4, /* that must be seen */
	HINTED_ROUNDS = 3,
};

/* Insertion sort: at most NT_RHYTHM_GAPS / 2 values, and few rounds are long. */
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

/* In how large a part of the rounds is the distance at `first` clearly the longest? */
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

static bool is_round(const uint32_t *gap_us, uint32_t count, uint32_t round, bool hinted,
		     uint32_t *ret_first)
{
	uint32_t rounds = count / round, first = 0, longest = 0;
	uint32_t value[NT_RHYTHM_GAPS];
	double sum = 0, share;

	if (rounds < (hinted ? HINTED_ROUNDS : ROUNDS))
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
	if (share < 1.0 / round + (hinted ? 0.15 : 0.25))
		return false;
	if (steadiness(gap_us, rounds, round, first) < (hinted ? 0.6 : 0.85))
		return false;
	*ret_first = first;
	return true;
}

uint32_t nt_rhythm_find(const uint32_t *gap_us, uint32_t count, uint32_t hint, uint32_t *ret_first)
{
	if (count > NT_RHYTHM_GAPS)
		count = NT_RHYTHM_GAPS;
	if (hint > 1 && hint <= NT_RHYTHM_LONGEST && is_round(gap_us, count, hint, true, ret_first))
		return hint;
	for (uint32_t round = 2; round <= NT_RHYTHM_LONGEST; round++) {
		if (is_round(gap_us, count, round, false, ret_first))
			return round;
	}
	return 0;
}
