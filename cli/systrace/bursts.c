/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/systrace/bursts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MIN_BURSTS = 4,
	MAX_CALLS = 256, /* of a burst */
	/* The pause between bursts is this many times as long as the typical one within. */
	PAUSE_TIMES = 3,
	/* Else the shortest pause between them is this many times as long as the longest within, but for a tenth of each. */
	GAP = 2,
	/* Longer bursts are preferred if they hold this many times as many calls as shorter ones. */
	MORE = 6,
	MORE_OF = 5,
	/* So many of so many bursts have the same length. */
	EQUAL = 4,
	EQUAL_OF = 5,
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Marks the first calls of bursts. Returns the most frequent length, and how many have it. */
static uint32_t cut(const uint64_t *idle_ns, size_t calls, uint64_t limit_ns, bool *first,
		    size_t *ret_equal, size_t *ret_bursts)
{
	size_t times[MAX_CALLS + 1] = {0}, begin = 0, bursts = 0;
	uint32_t best = 0;

	memset(first, 0, calls * sizeof(*first));
	for (size_t i = 1; i < calls; i++) {
		if (idle_ns[i] < limit_ns)
			continue;
		first[i] = true;
		/* The recording may begin in the middle of one. */
		if (begin && i - begin <= MAX_CALLS)
			times[i - begin]++;
		/* Calls one by one are an evaluation. */
		bursts += begin && i - begin > 1;
		begin = i;
	}
	for (uint32_t n = 2; n <= MAX_CALLS; n++)
		if (times[n] > times[best])
			best = n;
	*ret_equal = times[best];
	*ret_bursts = bursts;
	return best;
}

/*
 * The shortest pause between bursts, of so many. Half of the typical one, if those within bursts are much
 * shorter; else the middle of a gap between the two. 0: they do not differ. `sorted`: all pauses.
 */
static uint64_t find_limit(const uint64_t *sorted, size_t all, size_t pauses)
{
	const size_t within = all - pauses;
	const uint64_t half_ns = sorted[all - (pauses + 1) / 2] / 2;
	const uint64_t longest_ns = sorted[within * 9 / 10];
	const uint64_t shortest_ns = sorted[within + pauses / 10];

	if (half_ns >= sorted[within / 2] * PAUSE_TIMES / 2)
		return half_ns;
	return shortest_ns >= longest_ns * GAP ? longest_ns / 2 + shortest_ns / 2 : 0;
}

int nt_bursts_find(const uint64_t *idle_ns, size_t calls, bool *first, uint32_t *ret_calls)
{
	nt_autofree uint64_t *sorted = calloc(calls + 1, sizeof(*sorted));
	uint64_t best_ns = 0;
	size_t equal, bursts, most = 0;

	*ret_calls = 0;
	if (!sorted)
		return -ENOMEM;
	if (calls < 2 * MIN_BURSTS)
		return 0;
	memcpy(sorted, idle_ns + 1, (calls - 1) * sizeof(*sorted));
	qsort(sorted, calls - 1, sizeof(*sorted), by_value);
	/*
	 * Pauses come once in n calls. The limit that makes most calls part of equal bursts is taken, of
	 * about as many the shortest bursts: a checkpoint makes one of many steps.
	 */
	for (size_t n = 2; n <= MAX_CALLS && n * MIN_BURSTS <= calls; n += (n + 1) / 2) {
		const uint64_t limit_ns = find_limit(sorted, calls - 1, (calls - 1) / n);
		uint32_t length;

		if (!limit_ns)
			continue;
		length = cut(idle_ns, calls, limit_ns, first, &equal, &bursts);
		if (length < 2 || bursts < MIN_BURSTS || equal * EQUAL_OF < bursts * EQUAL ||
		    equal * length * 2 < calls || equal * length * MORE_OF <= most * MORE)
			continue;
		most = equal * length;
		best_ns = limit_ns;
		*ret_calls = length;
	}
	if (*ret_calls)
		(void)cut(idle_ns, calls, best_ns, first, &equal, &bursts);
	return 0;
}
