/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Process groups in PyTorch profiler traces. They are listed in distributedInfo.pg_config (PyTorch
 * 2.3 and later), and named in the arguments of NCCL's kernels.
 */
#include "cli/kineto/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/collective.h"
#include "common/base/hash.h"
#include "common/base/search.h"
#include "engine/frame_builder.h"
#include "proto/text.h"

int nt_kineto_find_group(struct nt_kineto_rank *rank, const char *name,
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
static bool read_ranks(const struct nt_json_value *ranks, uint32_t rank,
		       struct nt_kineto_group *group)
{
	uint32_t place = 0;

	group->place = UINT32_MAX;
	group->id = group->name_hash;
	nt_json_value_each(ranks, number)
	{
		const int64_t value = nt_json_value_integer(number);

		if (!nt_json_value_is(number, NT_JSON_INTEGER) || value < 0 ||
		    value >= NT_FRAME_MAX_RANKS)
			return false;
		if (value == rank)
			group->place = place;
		group->id = nt_hash_u64(group->id, (uint64_t)value);
		place++;
	}
	group->size = (uint32_t)nt_json_value_size(ranks);
	group->id = nt_hash_mix(group->id);
	return group->size <= NT_FRAME_MAX_RANKS;
}

int nt_kineto_read_groups(struct nt_kineto_rank *rank, const struct nt_json_value *info,
			  struct nt_trace_error *ret_error)
{
	const struct nt_json_value *config = nt_json_value_get(info, "pg_config");

	if (!config)
		return 0;
	if (!nt_json_value_is(config, NT_JSON_ARRAY))
		return nt_trace_refuse(ret_error, "pg_config is not a list");
	nt_json_value_each(config, listed)
	{
		const char *name = nt_json_value_text(nt_json_value_get(listed, "pg_name"));
		const struct nt_json_value *ranks = nt_json_value_get(listed, "ranks");
		const struct nt_json_value *size = nt_json_value_get(listed, "pg_size");
		struct nt_kineto_group *group = NULL;
		int r;

		/* Some releases list no ranks, or omit the group's name. */
		if (!name || !nt_json_value_is(ranks, NT_JSON_ARRAY) || !nt_json_value_size(ranks))
			continue;
		r = nt_kineto_find_group(rank, name, &group);
		if (r < 0)
			return r;
		if (!group)
			continue;
		group->listed = true;
		if (!read_ranks(ranks, rank->rank, group))
			return nt_trace_refuse(
				ret_error,
				"pg_config: the ranks of '%.24s' are not numbers from 0 to %d",
				name, NT_FRAME_MAX_RANKS - 1);
		if (nt_json_value_is(size, NT_JSON_INTEGER) &&
		    nt_json_value_integer(size) != group->size)
			return nt_trace_refuse(
				ret_error,
				"pg_config: '%.24s' lists %u ranks, but its pg_size is %lld", name,
				group->size, (long long)nt_json_value_integer(size));
	}
	return 0;
}

/*
 * Of a group that is not listed: all members report the same, even if its ranks are omitted or cut.
 */
static void learn_group(struct nt_kineto_group *group, const struct nt_json_value *args)
{
	const struct nt_json_value *ranks = nt_json_value_get(args, "Process Group Ranks");
	const char *text = nt_json_value_text(ranks);
	const struct nt_json_value *size = nt_json_value_get(args, "Group size");

	if (group->id)
		return;
	group->id = nt_hash_text(group->name_hash, text ? text : "");
	if (nt_json_value_size(ranks))
		nt_json_value_each(ranks, number) group->id =
			nt_hash_u64(group->id, (uint64_t)nt_json_value_integer(number));
	group->id = nt_hash_mix(group->id);
	if (nt_json_value_is(size, NT_JSON_INTEGER) && nt_json_value_integer(size) > 0 &&
	    nt_json_value_integer(size) <= NT_FRAME_MAX_RANKS)
		group->size = (uint32_t)nt_json_value_integer(size);
}

static int check_call(const struct nt_kineto_rank *rank, const struct nt_kineto_group *group,
		      const char *name, const struct nt_json_value *args,
		      struct nt_trace_error *error)
{
	const struct nt_json_value *size = nt_json_value_get(args, "Group size");

	if (group->listed && group->place == UINT32_MAX)
		return nt_trace_refuse(
			error,
			"rank %u has calls in process group '%.24s', but pg_config does not list it as a member: is the file of another rank?",
			rank->rank, name);
	if (group->listed && nt_json_value_is(size, NT_JSON_INTEGER) &&
	    nt_json_value_integer(size) != group->size)
		return nt_trace_refuse(
			error,
			"a call in process group '%.24s' states %lld ranks; pg_config lists %u",
			name, (long long)nt_json_value_integer(size), group->size);
	return 0;
}

/* What a call says of itself. */
static int describe_call(const struct nt_json_value *args, struct nt_kineto_interval *kernel,
			 struct nt_trace_error *ret_error)
{
	const char *collective = nt_json_value_text(nt_json_value_get(args, "Collective name"));
	const struct nt_json_value *seq = nt_json_value_get(args, "Seq");
	const struct nt_json_value *size = nt_json_value_get(args, "Group size");
	const struct nt_json_value *elements;
	const char *elements_name;
	bool uneven = false;

	kernel->op = (uint8_t)nt_collective_op(collective, &uneven);
	elements_name = kernel->op == NT_OP_REDUCE_SCATTER ? "Out msg nelems" : "In msg nelems";
	elements = nt_json_value_get(args, elements_name);
	if (elements &&
	    (!nt_json_value_is(elements, NT_JSON_INTEGER) || nt_json_value_integer(elements) < 0))
		return nt_trace_refuse(ret_error, "%s is not a number of elements from 0",
				       elements_name);
	if (__builtin_mul_overflow(
		    (uint64_t)nt_json_value_integer(elements),
		    nt_collective_type_bytes(nt_json_value_text(nt_json_value_get(args, "dtype"))),
		    &kernel->bytes))
		kernel->bytes = UINT64_MAX;
	if (nt_json_value_is(seq, NT_JSON_INTEGER) && nt_json_value_integer(seq) > 0)
		kernel->number = (uint64_t)nt_json_value_integer(seq);
	kernel->stated = kernel->number > 0;
	if (nt_json_value_is(size, NT_JSON_INTEGER) && nt_json_value_integer(size) > 0 &&
	    nt_json_value_integer(size) <= UINT16_MAX)
		kernel->stated_size = (uint16_t)nt_json_value_integer(size);
	return 0;
}

int nt_kineto_read_call(struct nt_kineto_rank *rank, const struct nt_json_value *args,
			struct nt_kineto_interval *kernel, struct nt_trace_error *ret_error)
{
	const char *name = nt_json_value_text(nt_json_value_get(args, "Process Group Name"));
	struct nt_kineto_group *group = NULL;
	int r;

	if (!nt_json_value_text(nt_json_value_get(args, "Collective name")))
		return 0;
	r = describe_call(args, kernel, ret_error);
	if (r < 0 || !name)
		return r;
	r = nt_kineto_find_group(rank, name, &group);
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

/* The place of a group of a later file in those of the rank, from 1; 0 beyond the cap. */
static uint16_t join_group(struct nt_kineto_rank *to, const struct nt_kineto_group *group)
{
	for (size_t i = 0; i < to->groups; i++)
		if (to->group[i].name_hash == group->name_hash && to->group[i].id == group->id)
			return (uint16_t)(i + 1);
	if (to->groups == NT_FRAME_MAX_COMMS)
		return 0;
	to->group[to->groups] = *group;
	return (uint16_t)++to->groups;
}

int nt_kineto_join_groups(struct nt_kineto_rank *to, struct nt_kineto_rank *from)
{
	uint16_t place[NT_FRAME_MAX_COMMS] = {0};

	if (!from->groups)
		return 0;
	if (!to->group)
		to->group = calloc(NT_FRAME_MAX_COMMS, sizeof(*to->group));
	if (!to->group)
		return -ENOMEM;
	for (size_t i = 0; i < from->groups; i++)
		place[i] = join_group(to, &from->group[i]);
	for (size_t i = 0; i < from->kernels; i++) {
		struct nt_kineto_interval *kernel = &from->kernel[i];

		if (!kernel->group)
			continue;
		kernel->group = place[kernel->group - 1];
		from->dropped += !kernel->group;
	}
	for (size_t i = 0; i < from->groups; i++)
		if (place[i])
			to->group[place[i] - 1].used |= from->group[i].used;
	return 0;
}

bool nt_kineto_has_groups(const struct nt_kineto_ranks *in)
{
	for (size_t i = 0; i < in->ranks; i++)
		for (size_t j = 0; j < in->rank[i].groups; j++)
			if (in->rank[i].group[j].used)
				return true;
	return false;
}

/* ---- frames ------------------------------------------------------------------------------- */

bool nt_kineto_is_synchronising(const struct nt_kineto_interval *kernel)
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
		n += nt_kineto_is_synchronising(rank->comm[i]);
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
		if (!nt_kineto_is_synchronising(kernel))
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

void nt_kineto_sort_samples(struct nt_trace_frame *frame)
{
	if (frame->frame.samples)
		qsort(frame->sample, frame->frame.samples, sizeof(*frame->sample),
		      nt_trace_compare_samples);
}
