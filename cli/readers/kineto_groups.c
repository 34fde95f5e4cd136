/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Process groups in PyTorch profiler traces: listed in distributedInfo.pg_config (PyTorch 2.3 and
 * later), and named in the arguments of the kernels that NCCL launched for them.
 */
#include "cli/readers/kineto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/collective.h"
#include "common/base/hash.h"
#include "common/base/search.h"
#include "engine/frame_builder.h"
#include "proto/text.h"

static int find_group(struct nt_kineto_rank *rank, const char *name,
		      struct nt_kineto_group **ret_group)
{
	const uint64_t hash = nt_hash_text(NT_HASH_SEED, name);
	struct nt_kineto_group *group;

	*ret_group = NULL;
	for (size_t i = 0; i < rank->groups; i++) {
		if (rank->group[i].name_hash == hash) {
			*ret_group = &rank->group[i];
			return 0;
		}
	}
	if (!rank->group)
		rank->group = calloc(NT_FRAME_MAX_COMMS, sizeof(*rank->group));
	if (!rank->group)
		return -ENOMEM;
	if (rank->groups == NT_FRAME_MAX_COMMS)
		return 0;
	group = &rank->group[rank->groups++];
	group->name_hash = hash;
	(void)nt_text_clean(name, strlen(name), group->name, sizeof(group->name) - 1);
	*ret_group = group;
	return 0;
}

/* Reads ranks as listed in distributedInfo. False for anything but rank numbers. */
static bool read_ranks(const json_t *ranks, uint32_t rank, struct nt_kineto_group *group)
{
	const json_t *number;
	size_t i;

	group->place = UINT32_MAX;
	group->id = group->name_hash;
	json_array_foreach(ranks, i, number)
	{
		const json_int_t value = json_integer_value(number);

		if (!json_is_integer(number) || value < 0 || value >= NT_FRAME_MAX_RANKS)
			return false;
		if (value == rank)
			group->place = (uint32_t)i;
		group->id = nt_hash_u64(group->id, (uint64_t)value);
	}
	group->size = (uint32_t)json_array_size(ranks);
	group->id = nt_hash_mix(group->id);
	return group->size <= NT_FRAME_MAX_RANKS;
}

int nt_kineto_read_groups(struct nt_kineto_rank *rank, const json_t *info,
			  struct nt_trace_error *ret_error)
{
	const json_t *config = json_object_get(info, "pg_config"), *listed;
	size_t i;

	if (!config)
		return 0;
	if (!json_is_array(config))
		return nt_trace_refuse(ret_error, "pg_config is no list");
	json_array_foreach(config, i, listed)
	{
		const char *name = json_string_value(json_object_get(listed, "pg_name"));
		const json_t *ranks = json_object_get(listed, "ranks");
		const json_t *size = json_object_get(listed, "pg_size");
		struct nt_kineto_group *group = NULL;
		int r;

		/* Some releases list no ranks, or omit the group's name. */
		if (!name || !json_is_array(ranks) || !json_array_size(ranks))
			continue;
		r = find_group(rank, name, &group);
		if (r < 0)
			return r;
		if (!group)
			continue;
		group->listed = true;
		if (!read_ranks(ranks, rank->rank, group))
			return nt_trace_refuse(
				ret_error,
				"pg_config: the ranks of '%.24s' are no numbers from 0 to %d", name,
				NT_FRAME_MAX_RANKS - 1);
		if (json_is_integer(size) && json_integer_value(size) != group->size)
			return nt_trace_refuse(
				ret_error, "pg_config: '%.24s' has %u ranks, and pg_size is %lld",
				name, group->size, (long long)json_integer_value(size));
	}
	return 0;
}

/*
 * Of a group that is not listed: all members report the same, even if its ranks are omitted or cut.
 */
static void learn_group(struct nt_kineto_group *group, const json_t *args)
{
	const json_t *ranks = json_object_get(args, "Process Group Ranks"), *number;
	const char *text = json_string_value(ranks);
	const json_t *size = json_object_get(args, "Group size");
	size_t i;

	if (group->id)
		return;
	group->id = nt_hash_text(group->name_hash, text ? text : "");
	json_array_foreach(ranks, i, number) group->id =
		nt_hash_u64(group->id, (uint64_t)json_integer_value(number));
	group->id = nt_hash_mix(group->id);
	if (json_is_integer(size) && json_integer_value(size) > 0 &&
	    json_integer_value(size) <= NT_FRAME_MAX_RANKS)
		group->size = (uint32_t)json_integer_value(size);
}

static int check_call(const struct nt_kineto_rank *rank, const struct nt_kineto_group *group,
		      const char *name, const json_t *args, struct nt_trace_error *error)
{
	const json_t *size = json_object_get(args, "Group size");

	if (group->listed && group->place == UINT32_MAX)
		return nt_trace_refuse(
			error,
			"rank %u calls in process group '%.24s', of which pg_config says that it is no member",
			rank->rank, name);
	if (group->listed && json_is_integer(size) && json_integer_value(size) != group->size)
		return nt_trace_refuse(
			error,
			"a call in process group '%.24s' of %lld ranks, of which pg_config lists %u",
			name, (long long)json_integer_value(size), group->size);
	return 0;
}

int nt_kineto_read_call(struct nt_kineto_rank *rank, const json_t *args,
			struct nt_kineto_interval *kernel, struct nt_trace_error *ret_error)
{
	const char *name = json_string_value(json_object_get(args, "Process Group Name"));
	const char *collective = json_string_value(json_object_get(args, "Collective name"));
	const json_t *seq = json_object_get(args, "Seq");
	struct nt_kineto_group *group = NULL;
	const json_t *elements;
	bool uneven = false;
	int r;

	if (!name || !collective)
		return 0;
	r = find_group(rank, name, &group);
	if (r < 0)
		return r;
	if (!group) {
		rank->dropped++;
		return 0;
	}
	r = check_call(rank, group, name, args, ret_error);
	if (r < 0)
		return r;
	learn_group(group, args);
	kernel->op = (uint8_t)nt_collective_op(collective, &uneven);
	elements = json_object_get(args, kernel->op == NT_OP_REDUCE_SCATTER ? "Out msg nelems"
									    : "In msg nelems");
	if (elements && (!json_is_integer(elements) || json_integer_value(elements) < 0))
		return nt_trace_refuse(
			ret_error,
			"a call in process group '%.24s' has no sound number of elements: %s is not a number from 0",
			name,
			kernel->op == NT_OP_REDUCE_SCATTER ? "Out msg nelems" : "In msg nelems");
	if (__builtin_mul_overflow(
		    (uint64_t)json_integer_value(elements),
		    nt_collective_type_bytes(json_string_value(json_object_get(args, "dtype"))),
		    &kernel->bytes))
		kernel->bytes = UINT64_MAX;
	if (json_is_integer(seq) && json_integer_value(seq) > 0)
		kernel->number = (uint64_t)json_integer_value(seq);
	kernel->group = (uint16_t)(group - rank->group + 1);
	group->used = true;
	return 0;
}

static bool is_p2p(const struct nt_kineto_interval *kernel)
{
	return nt_frame_builder_kind(kernel->op) == NT_FRAME_POINT_TO_POINT;
}

void nt_kineto_number_calls(struct nt_kineto_rank *rank)
{
	for (size_t i = 0; i < rank->kernels; i++) {
		struct nt_kineto_interval *kernel = &rank->kernel[i];
		struct nt_kineto_group *group;

		if (!kernel->group || kernel->number)
			continue;
		group = &rank->group[kernel->group - 1];
		kernel->number = is_p2p(kernel) ? ++group->p2p_calls : ++group->calls;
	}
}

bool nt_kineto_has_groups(const struct nt_kineto_ranks *in)
{
	for (size_t i = 0; i < in->ranks; i++)
		for (size_t j = 0; j < in->rank[i].groups; j++)
			if (in->rank[i].group[j].used)
				return true;
	return false;
}

/* ---- traces without groups ---------------------------------------------------------------- */

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

		if (nt_frame_builder_kind(op) != NT_FRAME_SYNCHRONISING &&
		    nt_frame_builder_kind(op) != NT_FRAME_ROOTED)
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

int nt_kineto_assume_group(struct nt_kineto_ranks *in)
{
	if (in->ranks < 2 || !is_one_sequence(in))
		return 0;
	for (size_t i = 0; i < in->ranks; i++) {
		struct nt_kineto_rank *rank = &in->rank[i];
		struct nt_kineto_group *group = NULL;
		bool uneven = false;
		int r = find_group(rank, "", &group);

		if (r < 0)
			return r;
		if (!group)
			return 0;
		group->id = nt_hash_mix(group->name_hash);
		group->size = rank->world;
		group->used = true;
		for (size_t k = 0, number = 0; k < rank->kernels; k++) {
			struct nt_kineto_interval *kernel = &rank->kernel[k];

			if (!kernel->comm)
				continue;
			kernel->op = (uint8_t)nt_collective_op(kernel->name, &uneven);
			kernel->group = (uint16_t)(group - rank->group + 1);
			kernel->number = ++number;
		}
	}
	return 0;
}

/* ---- frames ------------------------------------------------------------------------------- */

static bool is_synchronising(const struct nt_kineto_interval *kernel)
{
	const enum nt_frame_kind kind = nt_frame_builder_kind(kernel->op);

	return kernel->group && (kind == NT_FRAME_SYNCHRONISING || kind == NT_FRAME_ALL_TO_ALL);
}

/* The first call that starts at or after that time; calls are sorted. */
static size_t first_call(const struct nt_kineto_rank *rank, uint64_t from)
{
	return nt_search_first(0, rank->comms, i, rank->comm[i]->start_ns >= from);
}

size_t nt_kineto_count_samples(const struct nt_kineto_rank *rank, uint64_t from, uint64_t to)
{
	size_t n = 0;

	for (size_t i = first_call(rank, from); i < rank->comms; i++) {
		if (rank->comm[i]->start_ns >= to)
			break;
		n += is_synchronising(rank->comm[i]);
	}
	return n;
}

static void tally(struct nt_frame_op *op, const struct nt_kineto_interval *kernel)
{
	const uint64_t took_ns = kernel->end_ns - kernel->start_ns;

	if (!op->calls) {
		op->op = kernel->op;
		op->kind = (uint8_t)nt_frame_builder_kind(kernel->op);
		op->first = kernel->number;
	}
	op->calls++;
	op->timed_calls++;
	op->last = kernel->number;
	if (__builtin_add_overflow(op->bytes, kernel->bytes, &op->bytes))
		op->bytes = UINT64_MAX;
	op->sum_ns += took_ns;
}

/* The duration of the shortest call in the size class that moves most. */
static uint64_t find_shortest(const struct nt_kineto_rank *rank, size_t at, uint64_t from,
			      uint64_t to, const struct nt_frame_op *op)
{
	struct {
		uint64_t calls, bytes, min_ns;
	} sizes[65] = {0}, *most = &sizes[0];

	for (size_t i = first_call(rank, from); i < rank->comms; i++) {
		const struct nt_kineto_interval *kernel = rank->comm[i];
		const uint64_t took_ns = kernel->end_ns - kernel->start_ns;
		const uint8_t size = nt_collective_size(kernel->bytes);

		if (kernel->start_ns >= to)
			break;
		if (kernel->group != at + 1 || kernel->op != op->op)
			continue;
		if (!sizes[size].calls || took_ns < sizes[size].min_ns)
			sizes[size].min_ns = took_ns;
		sizes[size].calls++;
		if (__builtin_add_overflow(sizes[size].bytes, kernel->bytes, &sizes[size].bytes))
			sizes[size].bytes = UINT64_MAX;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (!most->calls || (sizes[i].calls && sizes[i].bytes > most->bytes))
			most = &sizes[i];
	return nt_collective_spread(most->min_ns, most->calls, op->calls);
}

/* The number of a group's last collective that starts before that time; 0: none does. */
static uint64_t last_before(const struct nt_kineto_rank *rank, size_t at, uint64_t until)
{
	for (size_t i = first_call(rank, until); i > 0; i--) {
		const struct nt_kineto_interval *kernel = rank->comm[i - 1];

		if (kernel->group == at + 1 && !is_p2p(kernel))
			return kernel->number;
	}
	return 0;
}

static int add_comm(const struct nt_kineto_rank *rank, size_t at, uint64_t from, uint64_t to,
		    struct nt_trace *trace, struct nt_frame_comm *comm)
{
	const struct nt_kineto_group *group = &rank->group[at];
	struct nt_frame_op sum[NT_OP_END] = {0}, *op;
	bool has_last = false;

	*comm = (struct nt_frame_comm){
		.id = group->id,
		.rank = group->listed ? group->place : 0,
		.size = group->size,
		.epoch = 1,
	};
	for (size_t i = first_call(rank, from); i < rank->comms; i++) {
		const struct nt_kineto_interval *kernel = rank->comm[i];

		if (kernel->start_ns >= to)
			break;
		if (kernel->group != at + 1)
			continue;
		has_last |= !is_p2p(kernel);
		if (!is_p2p(kernel))
			comm->last = kernel->number;
		tally(&sum[kernel->op], kernel);
	}
	if (!has_last)
		comm->last = last_before(rank, at, from);
	for (size_t i = 0; i < NT_OP_END; i++)
		comm->ops += sum[i].calls > 0;
	op = nt_arena_alloc(&trace->arena, (comm->ops + 1) * sizeof(*op));
	if (!op)
		return -ENOMEM;
	comm->op = op;
	for (size_t i = 0; i < NT_OP_END; i++) {
		if (!sum[i].calls)
			continue;
		sum[i].min_ns = find_shortest(rank, at, from, to, &sum[i]);
		*op++ = sum[i];
	}
	return 0;
}

int nt_kineto_add_comms(const struct nt_kineto_rank *rank, uint64_t from, uint64_t to,
			struct nt_trace *trace, struct nt_trace_frame *frame,
			struct nt_frame_rank *out)
{
	struct nt_frame_comm *comm =
		nt_arena_alloc(&trace->arena, (rank->groups + 1) * sizeof(*comm));

	if (!comm)
		return -ENOMEM;
	out->comm = comm;
	for (size_t i = 0; i < rank->groups; i++) {
		int r;

		/* Listed, but unused by this job: nothing is known of it. */
		if (!rank->group[i].used)
			continue;
		r = add_comm(rank, i, from, to, trace, &comm[out->comms++]);
		if (r < 0)
			return r;
	}
	for (size_t i = first_call(rank, from); i < rank->comms; i++) {
		const struct nt_kineto_interval *kernel = rank->comm[i];

		if (kernel->start_ns >= to)
			break;
		if (!is_synchronising(kernel))
			continue;
		frame->sample[frame->frame.samples++] = (struct nt_frame_sample){
			.comm = rank->group[kernel->group - 1].id,
			.epoch = 1,
			.number = kernel->number,
			.bytes = kernel->bytes,
			.op = kernel->op,
			.kind = (uint8_t)nt_frame_builder_kind(kernel->op),
			.rank = rank->rank,
			.arrive_ns = kernel->start_ns,
			.release_ns = kernel->end_ns,
		};
	}
	return 0;
}

static int by_comm_number_rank(const void *a, const void *b)
{
	const struct nt_frame_sample *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->arrive_ns > y->arrive_ns) - (x->arrive_ns < y->arrive_ns);
}

void nt_kineto_sort_samples(struct nt_trace_frame *frame)
{
	if (frame->frame.samples)
		qsort(frame->sample, frame->frame.samples, sizeof(*frame->sample),
		      by_comm_number_rank);
}

/* ---- arrival times ------------------------------------------------------------------------ */

/* A call on one rank. */
struct arrival {
	uint64_t comm;
	const struct nt_kineto_interval *kernel;
	const struct nt_kineto_group *group;
	uint32_t rank;
};

static int by_call(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->kernel->number != y->kernel->number)
		return x->kernel->number < y->kernel->number ? -1 : 1;
	/* Sorted by time: lateness is relative to the median. */
	if (x->kernel->start_ns != y->kernel->start_ns)
		return x->kernel->start_ns < y->kernel->start_ns ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

struct row {
	uint64_t start_ns;
	struct nt_trace_collective collective;
};

static int by_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The number of given ranks in the group. */
static size_t count_members(const struct nt_kineto_ranks *in, uint64_t comm)
{
	size_t n = 0;

	for (size_t i = 0; i < in->ranks; i++)
		for (size_t j = 0; j < in->rank[i].groups; j++)
			n += in->rank[i].group[j].used && in->rank[i].group[j].id == comm;
	return n;
}

/* False for a call that is not common to the members. */
static bool describe(const struct arrival *call, size_t n, size_t members, struct row *out)
{
	const struct nt_kineto_interval *first = call[0].kernel, *last = call[n - 1].kernel;

	if (n != members || n < 2)
		return false;
	*out = (struct row){
		.start_ns = first->start_ns,
		.collective = {.number = first->number,
			       .ranks = n,
			       .last_rank = call[n - 1].rank,
			       .lateness_ns = last->start_ns - call[n / 2].kernel->start_ns,
			       .spread_ns = last->start_ns - first->start_ns,
			       .transfer_ns = UINT64_MAX},
	};
	(void)snprintf(out->collective.name, sizeof(out->collective.name), "%s %s", first->name,
		       call[0].group->name);
	for (size_t i = 0; i < n; i++) {
		const uint64_t took_ns = call[i].kernel->end_ns - call[i].kernel->start_ns;

		if (call[i].kernel->op != first->op)
			return false;
		if (took_ns < out->collective.transfer_ns)
			out->collective.transfer_ns = took_ns;
	}
	return true;
}

int nt_kineto_add_collectives(const struct nt_kineto_ranks *in, struct nt_trace *trace)
{
	nt_autofree struct arrival *call = NULL;
	nt_autofree struct row *row = NULL;
	size_t calls = 0, rows = 0, members = 0, end;

	for (size_t i = 0; i < in->ranks; i++)
		calls += in->rank[i].comms;
	call = calloc(calls + 1, sizeof(*call));
	row = calloc(calls + 1, sizeof(*row));
	if (!call || !row)
		return -ENOMEM;
	calls = 0;
	for (size_t i = 0; i < in->ranks; i++) {
		const struct nt_kineto_rank *rank = &in->rank[i];

		for (size_t j = 0; j < rank->comms; j++) {
			const struct nt_kineto_group *group;

			if (!is_synchronising(rank->comm[j]))
				continue;
			group = &rank->group[rank->comm[j]->group - 1];
			call[calls++] =
				(struct arrival){group->id, rank->comm[j], group, rank->rank};
		}
	}
	if (calls)
		qsort(call, calls, sizeof(*call), by_call);
	for (size_t i = 0; i < calls; i = end) {
		for (end = i + 1; end < calls && call[end].comm == call[i].comm &&
				  call[end].kernel->number == call[i].kernel->number;)
			end++;
		if (i == 0 || call[i].comm != call[i - 1].comm)
			members = count_members(in, call[i].comm);
		rows += describe(&call[i], end - i, members, &row[rows]);
	}
	if (rows)
		qsort(row, rows, sizeof(*row), by_start);
	trace->collective = calloc(rows + 1, sizeof(*trace->collective));
	if (!trace->collective)
		return -ENOMEM;
	for (size_t i = 0; i < rows; i++)
		trace->collective[i] = row[i].collective;
	trace->collectives = rows;
	return 0;
}
