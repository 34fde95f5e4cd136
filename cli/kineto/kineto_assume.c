/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The group of a trace that names none. */
#include "cli/kineto/kineto.h"

#include <stdlib.h>
#include <string.h>

#include "cli/readers/collective.h"
#include "common/base/hash.h"
#include "engine/frame_builder.h"
#include "proto/wire.h"

static int by_launch(const void *a, const void *b)
{
	const struct nt_kineto_interval *x = *(struct nt_kineto_interval *const *)a;
	const struct nt_kineto_interval *y = *(struct nt_kineto_interval *const *)b;

	if (!x->stated && !y->stated && x->number != y->number) /* files follow each other */
		return x->number < y->number ? -1 : 1;
	if (x->launched_ns != y->launched_ns)
		return x->launched_ns < y->launched_ns ? -1 : 1;
	return (x > y) - (x < y);
}

/*
 * The calls in the order in which the host made them, which is the same on all ranks. Kernels of
 * two streams may begin in another order. Until order_by_start().
 */
static void order_by_launch(const struct nt_kineto_ranks *in)
{
	for (size_t i = 0; i < in->ranks; i++)
		if (in->rank[i].has_launches)
			qsort(in->rank[i].comm, in->rank[i].comms, sizeof(*in->rank[i].comm),
			      by_launch);
}

static int by_address(const void *a, const void *b)
{
	const struct nt_kineto_interval *x = *(struct nt_kineto_interval *const *)a;
	const struct nt_kineto_interval *y = *(struct nt_kineto_interval *const *)b;

	return (x > y) - (x < y);
}

/* Kernels are stored by their start. */
static void order_by_start(const struct nt_kineto_ranks *in)
{
	for (size_t i = 0; i < in->ranks; i++)
		if (in->rank[i].has_launches)
			qsort(in->rank[i].comm, in->rank[i].comms, sizeof(*in->rank[i].comm),
			      by_address);
}

/* A call of fewer ranks than there are is one of several groups'. */
static bool is_of_some(const struct nt_kineto_ranks *in, const struct nt_kineto_interval *call)
{
	return call->stated_size && call->stated_size < in->ranks;
}

/* Whether all ranks make the same calls, as far as they go, and none is point-to-point. */
static bool is_one_sequence(const struct nt_kineto_ranks *in)
{
	const struct nt_kineto_rank *most = &in->rank[0];
	bool uneven = false;

	for (size_t i = 1; i < in->ranks; i++)
		if (in->rank[i].comms > most->comms)
			most = &in->rank[i];
	for (size_t c = 0; c < most->comms; c++) {
		const uint8_t op = (uint8_t)nt_collective_op(most->comm[c]->name, &uneven);

		if ((nt_frame_builder_kind(op) != NT_FRAME_SYNCHRONISING &&
		     nt_frame_builder_kind(op) != NT_FRAME_ROOTED) ||
		    is_of_some(in, most->comm[c]))
			return false;
		for (size_t i = 0; i < in->ranks; i++)
			if (c < in->rank[i].comms &&
			    strcmp(in->rank[i].comm[c]->name, most->comm[c]->name) != 0)
				return false;
	}
	for (size_t i = 0; i < in->ranks; i++)
		if (!in->rank[i].comms)
			return false;
	return true;
}

static int assume_group(const struct nt_kineto_ranks *in)
{
	if (!is_one_sequence(in))
		return 0;
	for (size_t i = 0; i < in->ranks; i++) {
		struct nt_kineto_rank *rank = &in->rank[i];
		struct nt_kineto_group *group = NULL;
		uint64_t before = 0, calls = 0; /* in the files before this one, and in this one */
		bool uneven = false;
		int r = nt_kineto_find_group(rank, "", &group);

		if (r < 0)
			return r;
		if (!group)
			return 0;
		group->id = nt_hash_mix(group->name_hash);
		group->size = rank->world;
		group->used = true;
		for (size_t c = 0; c < rank->comms; c++) {
			struct nt_kineto_interval *kernel = rank->comm[c];

			kernel->op = (uint8_t)nt_collective_op(kernel->name, &uneven);
			kernel->group = (uint16_t)(group - rank->group + 1);
			if (!kernel->stated && kernel->number != before) {
				before = kernel->number;
				calls = 0;
			}
			kernel->number = before + ++calls;
		}
	}
	return 0;
}

int nt_kineto_assume_group(struct nt_kineto_ranks *in)
{
	int r;

	if (in->ranks < 2)
		return 0;
	order_by_launch(in);
	r = assume_group(in);
	order_by_start(in);
	return r;
}
