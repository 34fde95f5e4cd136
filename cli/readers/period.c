/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/period.h"

#include <errno.h>
#include <string.h>

#include "cli/readers/recurrence.h"
#include "common/base/hash.h"

enum {
	MAX_CALLS = 1 << 16, /* the last ones: the start of a job is not representative */
	MAX_CANDIDATES = 64,
	MIN_TIMES = 3, /* required repetitions of a period */
	/* repetitions before it is preferred to a shorter one that fits less well */
	SURE_TIMES = 20,
};

/* Fractions of calls equal to the one a period later: acceptable, and practically all. */
static const double fits = 0.9, fits_well = 0.98;
/* An anchor is single if there are at most so many per step. */
static const double often = 1.25;
/* Fraction of calls of one kind: gradient buckets of one size, and calls between some steps. */
static const double one_kind = 0.8;

/* A run of equal calls: what is launched forty times in a step occurs once as a run. */
struct run {
	uint64_t key; /* of kind and length */
	uint32_t at;
};

static int by_key(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double fit(const uint32_t *call, size_t n, uint32_t period)
{
	size_t equal = 0;

	for (size_t i = 0; i + period < n; i++)
		equal += call[i] == call[i + period];
	return (double)equal / (double)(n - period);
}

static uint32_t cut_runs(const uint32_t *call, uint32_t n, struct run *run)
{
	uint32_t runs = 0;

	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && call[end] == call[i];)
			end++;
		run[runs++] = (struct run){nt_hash_mix((uint64_t)call[i] << 32 | (end - i)), i};
	}
	return runs;
}

/*
 * The median distance between equal runs, of the rarest runs; one by one, with the short periods.
 */
static uint32_t list_candidates(struct run *run, uint32_t runs, uint32_t *gap, uint32_t n,
				uint32_t *candidate)
{
	uint32_t count[MAX_CANDIDATES] = {0}, found = 0, short_ones = 0;

	qsort(run, runs, sizeof(*run), by_key);
	for (uint32_t i = 0, end; i < runs; i = end) {
		uint32_t times, at;

		for (end = i + 1; end < runs && run[end].key == run[i].key; end++)
			gap[end - i - 1] = run[end].at - run[end - 1].at;
		times = end - i;
		if (times < MIN_TIMES)
			continue;
		qsort(gap, times - 1, sizeof(*gap), by_value);
		/* Insertion sort: rarest first; the most frequent one is dropped. */
		for (at = found; at > 0 && count[at - 1] > times; at--) {
			if (at < MAX_CANDIDATES) {
				count[at] = count[at - 1];
				candidate[at] = candidate[at - 1];
			}
		}
		if (at == MAX_CANDIDATES)
			continue;
		count[at] = times;
		candidate[at] = gap[(times - 1) / 2];
		found += found < MAX_CANDIDATES;
	}
	while (short_ones < MAX_CANDIDATES / 4 && (short_ones + 1) * MIN_TIMES <= n)
		candidate[found++] = ++short_ones;
	return found;
}

/* Whether every kind of call occurs in each period, as far as their number tells. */
static bool has_all_kinds(uint32_t n, uint32_t period, const uint32_t *times, uint32_t kinds)
{
	for (uint32_t i = 0; i < kinds; i++)
		if (times[i] && times[i] + 1.0 < 0.9 * n / period)
			return false;
	return true;
}

static uint32_t choose(const uint32_t *call, uint32_t n, const uint32_t *candidate, uint32_t count,
		       const uint32_t *times, uint32_t kinds)
{
	uint32_t shortest = 0, best = 0;
	double least = 0.0;

	for (uint32_t i = 0; i < count; i++) {
		if (candidate[i] > n / MIN_TIMES || (shortest && candidate[i] >= shortest))
			continue;
		if (fit(call, n, candidate[i]) >= fits)
			shortest = candidate[i];
	}
	if (!shortest)
		return 1;
	/* Steps with a barrier beside each twentieth one: a longer period adds nothing. */
	if (has_all_kinds(n, shortest, times, kinds))
		return shortest;
	/* Forty equal layers, then something else: the layer fits, but is no step. */
	least = fit(call, n, shortest);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t longer = candidate[i];

		if (longer <= shortest || longer > n / SURE_TIMES || (best && longer >= best))
			continue;
		if (fit(call, n, longer) > (least > fits_well ? least : fits_well))
			best = longer;
	}
	return best ? best : shortest;
}

/* Kinds that occur once per period; of several, the same one on all ranks. */
static void find_anchor(uint32_t n, const uint64_t *shape, const uint32_t *times, uint32_t kinds,
			struct nt_period *period)
{
	const double want = (double)n / period->calls;

	for (uint32_t i = 0; i < kinds; i++) {
		if (times[i] + 1.0 < want * 0.9 || times[i] - 1.0 > want * 1.1)
			continue;
		if (period->has_anchor && shape[i] >= shape[period->anchor])
			continue;
		period->has_anchor = true;
		period->anchor = i;
	}
}

static bool has_one_kind(uint32_t n, const uint32_t *times, uint32_t kinds)
{
	for (uint32_t i = 0; i < kinds; i++)
		if (times[i] >= one_kind * n)
			return true;
	return false;
}

bool nt_period_ends(const struct nt_period *period, const uint32_t *call, size_t calls, size_t i)
{
	uint32_t run = 1;

	if (!period->anchor_run)
		return call[i] == period->anchor;
	if (call[i] != period->anchor || (i + 1 < calls && call[i + 1] == period->anchor))
		return false;
	while (run < period->anchor_run && run <= i && call[i - run] == period->anchor)
		run++;
	return run >= period->anchor_run;
}

int nt_period_find(const uint32_t *call, size_t calls, const uint64_t *idle_ns,
		   const uint64_t *shape, uint32_t kinds, struct nt_period *ret_period)
{
	const uint32_t n = calls < MAX_CALLS ? (uint32_t)calls : MAX_CALLS;
	uint32_t candidate[MAX_CANDIDATES + MAX_CANDIDATES / 4];
	struct nt_period period = {.calls = 1};
	nt_autofree struct run *run = calloc((size_t)n + 1, sizeof(*run));
	nt_autofree uint32_t *gap = calloc((size_t)n + 1, sizeof(*gap));
	nt_autofree uint32_t *times = calloc((size_t)kinds + 1, sizeof(*times));
	struct nt_recurrence step;
	uint32_t count;
	int r;

	if (!run || !gap || !times)
		return -ENOMEM;
	call += calls - n;
	idle_ns = idle_ns ? idle_ns + (calls - n) : NULL;
	for (uint32_t i = 0; i < n; i++)
		times[call[i]]++;
	r = nt_recurrence_find(call, n, idle_ns, shape, times, kinds, &step);
	if (r < 0)
		return r;
	if (step.calls) {
		period = (struct nt_period){.calls = step.calls,
					    .has_anchor = true,
					    .anchor = step.anchor,
					    .anchor_run = step.run};
		/* A barrier of the same kind may follow some steps: what is between the two is no step's work. */
		if (step.run == 1 && times[step.anchor] <= often * n / step.calls)
			period.anchor_run = 0;
	} else {
		count = list_candidates(run, cut_runs(call, n, run), gap, n, candidate);
		period.calls = choose(call, n, candidate, count, times, kinds);
		if (period.calls > 1)
			find_anchor(n, shape, times, kinds, &period);
	}
	period.doubtful = period.calls > n / SURE_TIMES && has_one_kind(n, times, kinds);
	*ret_period = period;
	return 0;
}
