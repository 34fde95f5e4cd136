/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/systrace/clocks.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/sort.h"

enum {
	MAX_LAG = 256, /* calls by which one recording begins earlier */
	ORDERS = 2 * MAX_LAG + 1,
	MIN_PAIRS = 8,
	MIN_CALLS = 32, /* below so many no shorter part is tried */
	MAX_SAMPLES = 48, /* pairs that are compared */
	OTHER_PART = 8, /* so small a part of the pairs may be of other shapes: a lost call */
	NEAR_LAG = 8, /* around the order that equal clocks suggest */
	NEAR_WORSE = 8, /* so many times worse, that order is still taken */
};

/* Below it no difference is significant, and another order must be so many times worse. */
static const double significant_ns = 2000, worse = 2;
static const double equal_ns = 50000; /* the ends of one call differ by no more */
static const double surely_ns = 100000; /* wider, and an order proves no other clock */

/* One way to pair the calls of two members. */
struct clock_pairing {
	double ahead_ns; /* the typical distance of the ends */
	double width_ns; /* three quarters of the distances are within it; INFINITY: no pairing */
};

/* The i-th call of a is paired with the call i + lag of b, if `enough` calls have another. */
static struct clock_pairing pair(const struct nt_clocks_member *a, const struct nt_clocks_member *b,
				 ptrdiff_t lag, size_t enough)
{
	const size_t from = lag < 0 ? (size_t)-lag : 0, skip = lag > 0 ? (size_t)lag : 0;
	struct clock_pairing pairing = {.width_ns = INFINITY};
	double apart[MAX_SAMPLES];
	size_t n, stride, samples = 0, others = 0;

	if (from >= a->calls || skip >= b->calls)
		return pairing;
	n = a->calls - from < b->calls - skip ? a->calls - from : b->calls - skip;
	if (n < MIN_PAIRS || n < enough)
		return pairing;
	stride = (n + MAX_SAMPLES - 1) / MAX_SAMPLES;
	for (size_t i = 0; i < n; i += stride) {
		const struct nt_clocks_call *x = &a->call[from + i], *y = &b->call[skip + i];

		if (x->shape != y->shape)
			others++;
		else
			apart[samples++] = (double)(int64_t)(y->end_ns - x->end_ns);
	}
	if (samples < MIN_PAIRS || others > samples / OTHER_PART)
		return pairing;
	nt_sort_select(apart, samples, samples / 2, samples / 2 + 1);
	pairing.ahead_ns = apart[samples / 2];
	for (size_t i = 0; i < samples; i++)
		apart[i] = fabs(apart[i] - pairing.ahead_ns);
	nt_sort_select(apart, samples, samples * 3 / 4, samples * 3 / 4 + 1);
	pairing.width_ns = apart[samples * 3 / 4];
	return pairing;
}

/* Compares the first calls of both. Returns the least width of all orders. */
static double compare_first(const struct nt_clocks_member *a, const struct nt_clocks_member *b,
			    size_t calls, struct clock_pairing *pairing)
{
	struct nt_clocks_member x = *a, y = *b;
	double least = INFINITY;

	x.calls = x.calls < calls ? x.calls : calls;
	y.calls = y.calls < calls ? y.calls : calls;
	for (ptrdiff_t lag = -MAX_LAG; lag <= MAX_LAG; lag++) {
		pairing[lag + MAX_LAG] =
			pair(&x, &y, lag, (x.calls < y.calls ? x.calls : y.calls) / 2);
		least = fmin(least, pairing[lag + MAX_LAG].width_ns);
	}
	return least;
}

/* The call of b that ends last before the time; 0: none does. */
static size_t call_at(const struct nt_clocks_member *b, uint64_t end_ns)
{
	size_t low = 0, high = b->calls;

	while (low + 1 < high) {
		const size_t middle = low + (high - low) / 2;

		if (b->call[middle].end_ns <= end_ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The order by which the clocks are equal, or nearly: width_ns INFINITY if it does not fit. */
static struct clock_pairing pair_by_time(const struct nt_clocks_member *a,
					 const struct nt_clocks_member *b, double width_ns)
{
	struct clock_pairing near = {.width_ns = INFINITY};
	size_t middle, at;

	if (!a->calls || !b->calls)
		return near;
	middle = a->call[0].end_ns > b->call[0].end_ns ? 0 : call_at(a, b->call[0].end_ns);
	at = call_at(b, a->call[middle].end_ns);
	for (int i = -NEAR_LAG; i <= NEAR_LAG; i++) {
		const struct clock_pairing other =
			pair(a, b, (ptrdiff_t)at - (ptrdiff_t)middle + i, MIN_CALLS);

		if (other.width_ns <= width_ns && fabs(other.ahead_ns) <= 2 * width_ns &&
		    other.width_ns < near.width_ns)
			near = other;
	}
	return near;
}

/*
 * How far b's clock is ahead of a's. Fewer calls are compared if they fit better: one of the others
 * was lost. Where several orders fit alike, as in a job without any jitter, the clocks are taken to
 * differ least. They are taken to be equal if that fits, unless another order fits far better.
 */
static bool compare(const struct nt_clocks_member *a, const struct nt_clocks_member *b,
		    uint64_t width_ns, double *ret_ahead_ns)
{
	struct clock_pairing pairing[2][ORDERS];
	const struct clock_pairing *best = pairing[0], near = pair_by_time(a, b, (double)width_ns);
	double least = compare_first(a, b, NT_CLOCKS_MAX_CALLS, pairing[0]), ahead = INFINITY;

	for (size_t calls = NT_CLOCKS_MAX_CALLS / 2; calls >= MIN_CALLS && least > equal_ns;
	     calls /= 2) {
		struct clock_pairing *other = pairing[best == pairing[0]];
		const double width = compare_first(a, b, calls, other);

		if (worse * width >= least)
			continue;
		least = width;
		best = other;
	}
	for (size_t i = 0; i < ORDERS; i++)
		if (best[i].width_ns <= worse * least + significant_ns &&
		    fabs(best[i].ahead_ns) < fabs(ahead))
			ahead = best[i].ahead_ns;
	if (isfinite(near.width_ns) &&
	    (least > surely_ns || near.width_ns <= NEAR_WORSE * least + significant_ns))
		ahead = near.ahead_ns;
	else if (least > fmin(surely_ns, (double)width_ns))
		return false;
	*ret_ahead_ns = ahead;
	return true;
}

static int by_group(const void *a, const void *b)
{
	const struct nt_clocks_member *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Compares the members of a communicator with the first whose clock is known. Whether any was found. */
static bool spread(const struct nt_clocks_member *member, size_t members, uint64_t width_ns,
		   struct nt_clock *clock)
{
	const struct nt_clocks_member *known = NULL;
	bool found = false;

	for (size_t i = 0; i < members && !known; i++)
		if (clock[member[i].rank].known)
			known = &member[i];
	for (size_t i = 0; known && i < members; i++) {
		struct nt_clock *mine = &clock[member[i].rank];
		double ahead_ns = 0;

		if (mine->known || !compare(known, &member[i], width_ns, &ahead_ns))
			continue;
		ahead_ns += (double)clock[known->rank].ahead_ns;
		if (fabs(ahead_ns) > (double)(INT64_MAX / 2))
			continue;
		mine->ahead_ns = (int64_t)ahead_ns;
		mine->known = found = true;
	}
	return found;
}

void nt_clocks_find(struct nt_clocks_member *member, size_t members, size_t ranks,
		    uint32_t reference, uint64_t width_ns, struct nt_clock *clock)
{
	for (size_t i = 0; i < ranks; i++)
		clock[i] = (struct nt_clock){.known = i == reference};
	if (members)
		qsort(member, members, sizeof(*member), by_group);
	for (bool found = true; found;) {
		found = false;
		for (size_t i = 0, end; i < members; i = end) {
			for (end = i; end < members && member[end].group == member[i].group;)
				end++;
			found |= spread(&member[i], end - i, width_ns, clock);
		}
	}
}
