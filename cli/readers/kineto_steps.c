/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Steps of a profiler trace whose program did not call the profiler's step(): from the period of
 * the rank's NCCL kernels, as for calls that are observed live.
 */
#include "cli/readers/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/period.h"
#include "common/base/hash.h"

enum {
	MIN_STEPS = 3,
};

/* A kernel and its identity. */
struct keyed {
	uint64_t key; /* with the group */
	uint64_t shape; /* without it: equal on all ranks */
	uint32_t at;
};

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Numbers equal kernels equally, from 0. Returns the count. */
static uint32_t number_kinds(const struct nt_kineto_rank *rank, struct keyed *keyed, uint32_t *call,
			     uint64_t *shape)
{
	uint32_t kinds = 0;

	for (uint32_t i = 0; i < rank->comms; i++) {
		const struct nt_kineto_interval *kernel = rank->comm[i];

		keyed[i].at = i;
		keyed[i].shape =
			nt_hash_u64(nt_hash_text(NT_HASH_SEED, kernel->name), kernel->bytes);
		keyed[i].key = nt_hash_u64(keyed[i].shape, kernel->group);
	}
	qsort(keyed, rank->comms, sizeof(*keyed), by_key);
	for (uint32_t i = 0; i < rank->comms; i++) {
		kinds += i == 0 || keyed[i].key != keyed[i - 1].key;
		call[keyed[i].at] = kinds - 1;
		shape[kinds - 1] = keyed[i].shape;
	}
	return kinds;
}

/* Nine of ten calls equal the previous one. */
static bool is_uniform(const uint32_t *call, size_t calls)
{
	size_t equal = 0;

	for (size_t i = 1; i < calls; i++)
		equal += call[i] == call[i - 1];
	return calls > MIN_STEPS && equal * 10 >= (calls - 1) * 9;
}

/* Whether the rank computes between a call and the next: *at advances through its kernels. */
static bool computes_before(const struct nt_kineto_rank *rank,
			    const struct nt_kineto_interval *next, size_t *at)
{
	bool computes = false;

	for (; *at < rank->kernels && &rank->kernel[*at] < next; ++*at)
		computes |= !rank->kernel[*at].comm;
	return computes;
}

/* Marks the calls with which a step ends. */
static void mark_ends(const struct nt_kineto_rank *rank, const uint32_t *call,
		      const struct nt_period *period, bool *ends)
{
	const bool one_by_one = period->calls == 1;
	size_t at = 0;

	for (size_t i = 0; i < rank->comms; i++) {
		if (period->has_anchor)
			ends[i] = call[i] == period->anchor;
		else if (!one_by_one)
			ends[i] = (i + 1) % period->calls == 0;
		/* Gradients in several equal buckets are one step. */
		else if (computes_before(rank, rank->comm[i], &at) && i)
			ends[i - 1] = true;
	}
}

/* The intervals between ends: a step cut by the beginning of the trace does not count. */
static int cut_steps(struct nt_kineto_rank *rank, const bool *ends)
{
	const struct nt_kineto_interval *last = NULL;
	size_t count = 0;

	for (size_t i = 0; i < rank->comms; i++)
		count += ends[i];
	if (count <= MIN_STEPS)
		return 0;
	rank->step = calloc(count, sizeof(*rank->step));
	if (!rank->step)
		return -ENOMEM;
	for (size_t i = 0; i < rank->comms; i++) {
		if (!ends[i])
			continue;
		if (last)
			rank->step[rank->steps++] = (struct nt_kineto_interval){
				.start_ns = last->end_ns,
				.end_ns = rank->comm[i]->end_ns > last->end_ns
						  ? rank->comm[i]->end_ns
						  : last->end_ns};
		last = rank->comm[i];
	}
	rank->cuts = true;
	return 0;
}

int nt_kineto_find_steps(struct nt_kineto_rank *rank)
{
	nt_autofree struct keyed *keyed = calloc(rank->comms + 1, sizeof(*keyed));
	nt_autofree uint32_t *call = calloc(rank->comms + 1, sizeof(*call));
	nt_autofree uint64_t *shape = calloc(rank->comms + 1, sizeof(*shape));
	nt_autofree bool *ends = calloc(rank->comms + 1, sizeof(*ends));
	struct nt_period period = {0};
	uint32_t kinds;
	int r;

	if (!keyed || !call || !shape || !ends)
		return -ENOMEM;
	kinds = number_kinds(rank, keyed, call, shape);
	r = nt_period_find(call, rank->comms, shape, kinds, &period);
	if (r < 0)
		return r;
	if (period.calls == 1 && !is_uniform(call, rank->comms))
		return 0;
	mark_ends(rank, call, &period, ends);
	return cut_steps(rank, ends);
}
