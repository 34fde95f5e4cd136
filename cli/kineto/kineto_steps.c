/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Steps of a profiler trace whose program did not call the profiler's step(). They are derived from
 * the period of the rank's NCCL kernels, as for calls that are observed live.
 */
#include "cli/kineto/kineto.h"

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
		const uint64_t bytes = rank->comm[keyed[i].at]->bytes;

		kinds += i == 0 || keyed[i].key != keyed[i - 1].key;
		call[keyed[i].at] = kinds - 1;
		shape[kinds - 1] =
			(bytes < UINT32_MAX ? bytes : UINT32_MAX) << 32 | keyed[i].shape >> 32;
	}
	return kinds;
}

/* Marks the calls with which a step ends. */
static void mark_ends(const struct nt_kineto_rank *rank, const uint32_t *call,
		      const struct nt_period *period)
{
	for (size_t i = 0; i < rank->comms; i++)
		rank->comm[i]->ends_step = period->has_anchor
						   ? nt_period_ends(period, call, rank->comms, i)
						   : (i + 1) % period->calls == 0;
}

/* The intervals between ends: a step cut by the beginning of the trace does not count. */
static int cut_steps(struct nt_kineto_rank *rank)
{
	const struct nt_kineto_interval *last = NULL;
	size_t count = 0;

	for (size_t i = 0; i < rank->comms; i++)
		count += rank->comm[i]->ends_step;
	if (count <= MIN_STEPS)
		return 0;
	rank->step = calloc(count, sizeof(*rank->step));
	if (!rank->step)
		return -ENOMEM;
	for (size_t i = 0; i < rank->comms; i++) {
		if (!rank->comm[i]->ends_step)
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

/* Before each call the time in which none runs. */
static void list_idle(const struct nt_kineto_rank *rank, uint64_t *idle_ns)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < rank->comms; i++) {
		const struct nt_kineto_interval *kernel = rank->comm[i];

		idle_ns[i] = kernel->start_ns > end_ns ? kernel->start_ns - end_ns : 0;
		end_ns = kernel->end_ns > end_ns ? kernel->end_ns : end_ns;
	}
}

int nt_kineto_find_steps(struct nt_kineto_rank *rank)
{
	nt_autofree struct keyed *keyed = calloc(rank->comms + 1, sizeof(*keyed));
	nt_autofree uint32_t *call = calloc(rank->comms + 1, sizeof(*call));
	nt_autofree uint64_t *shape = calloc(rank->comms + 1, sizeof(*shape));
	nt_autofree uint64_t *idle_ns = calloc(rank->comms + 1, sizeof(*idle_ns));
	struct nt_period period = {0};
	uint32_t kinds;
	int r;

	if (!keyed || !call || !shape || !idle_ns)
		return -ENOMEM;
	kinds = number_kinds(rank, keyed, call, shape);
	list_idle(rank, idle_ns);
	r = nt_period_find(call, rank->comms, idle_ns, shape, kinds, &period);
	if (r < 0)
		return r;
	/* Equal calls have no period of their own. */
	if (period.calls > 1)
		mark_ends(rank, call, &period);
	else
		r = nt_kineto_mark_steps(rank);
	return r < 0 ? r : cut_steps(rank);
}

/* The group of all calls of a rank; 0: none, or several. */
static uint64_t sole_group(const struct nt_kineto_rank *rank)
{
	const uint16_t group = rank->comms ? rank->comm[0]->group : 0;

	for (size_t i = 0; i < rank->comms; i++)
		if (rank->comm[i]->group != group)
			return 0;
	return group ? rank->group[group - 1].id : 0;
}

/* The rank whose steps have the most frequent length; of those, the one with the most calls. */
static const struct nt_kineto_rank *find_reference(const struct nt_kineto_ranks *in,
						   const uint64_t *group, uint64_t id)
{
	const struct nt_kineto_rank *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < in->ranks; i++) {
		const struct nt_kineto_rank *rank = &in->rank[i];
		size_t equal = 0;

		if (group[i] != id || !rank->step_calls)
			continue;
		for (size_t j = 0; j < in->ranks; j++)
			equal += group[j] == id && in->rank[j].step_calls == rank->step_calls;
		if (equal < most || (equal == most && rank->comms <= best->comms))
			continue;
		most = equal;
		best = rank;
	}
	return best;
}

int nt_kineto_agree_steps(const struct nt_kineto_ranks *in)
{
	nt_autofree uint64_t *group = calloc(in->ranks + 1, sizeof(*group));
	const struct nt_kineto_rank *reference = NULL;

	if (!group)
		return -ENOMEM;
	for (size_t i = 0; i < in->ranks; i++)
		group[i] = sole_group(&in->rank[i]);
	for (size_t i = 0; i < in->ranks; i++) {
		struct nt_kineto_rank *rank = &in->rank[i];
		int r;

		if (!group[i] || (rank->steps && !rank->step_calls))
			continue;
		if (i == 0 || group[i] != group[i - 1])
			reference = find_reference(in, group, group[i]);
		if (!reference || rank->step_calls == reference->step_calls)
			continue;
		for (size_t c = 0; c < rank->comms; c++)
			rank->comm[c]->ends_step =
				c < reference->comms && reference->comm[c]->ends_step;
		/* The gaps were those of the steps of the profiler, of which none had a kernel. */
		free(rank->gap_ns);
		rank->gap_ns = NULL;
		free(rank->step);
		rank->step = NULL;
		rank->steps = 0;
		r = cut_steps(rank);
		if (r < 0)
			return r;
	}
	return 0;
}
