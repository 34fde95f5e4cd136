/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/operations.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"

/* Steps follow each other; times in files are untrusted. */
static const uint64_t MAX_BASE_NS = UINT64_MAX / 4;

enum {
	SEQ_BITS = 27, /* of a call's number, below the operation and the step */
};

_Static_assert(NT_OP_END <= 1 << (32 - SEQ_BITS), "an operation in the number of a call");

enum operation_use {
	USE_COMM, /* or waits for other ranks otherwise */
	USE_DATA, /* a collective among the data-parallel ranks of one stage */
	USE_PASS, /* computes as soon as its input is there */
	USE_COMPUTE,
	USE_GC,
};

/* The kinds of operations. */
static const struct operation_kind {
	const char *name;
	enum operation_use use;
	enum nt_op op;
} kinds[] = {
	{"forward-compute", USE_PASS, NT_OP_UNKNOWN},
	{"backward-compute", USE_PASS, NT_OP_UNKNOWN},
	{"grads-reduce-scatter", USE_DATA, NT_OP_REDUCE_SCATTER},
	{"params-all-gather", USE_DATA, NT_OP_ALL_GATHER},
	{"layernorm-grads-all-reduce", USE_COMM, NT_OP_ALL_REDUCE},
	{"embedding-grads-all-reduce", USE_COMM, NT_OP_ALL_REDUCE},
	{"forward-send", USE_COMM, NT_OP_SEND},
	{"forward-recv", USE_COMM, NT_OP_RECV},
	{"backward-send", USE_COMM, NT_OP_SEND},
	{"backward-recv", USE_COMM, NT_OP_RECV},
	{"gc", USE_GC, NT_OP_UNKNOWN},
	{"optimizer", USE_COMPUTE, NT_OP_UNKNOWN},
	{"optimizer-clip-main-grad", USE_COMM, NT_OP_UNKNOWN},
	/* Not in tables: of sources with other names. */
	{"compute", USE_COMPUTE, NT_OP_UNKNOWN},
	{"communication", USE_COMM, NT_OP_ALL_REDUCE},
};

void nt_operations_release(struct nt_operations *operations)
{
	free(operations->operation);
	*operations = (struct nt_operations){0};
}

int nt_operation_kind(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i].name) == len && memcmp(name, kinds[i].name, len) == 0)
			return (int)i;
	return -1;
}

int nt_operations_add(struct nt_operations *operations, const struct nt_operation *operation)
{
	if (operations->count == NT_OPERATIONS_MAX)
		return -E2BIG;
	if (operations->count == operations->cap) {
		const size_t cap = operations->cap ? operations->cap * 2 : 4096;
		struct nt_operation *list = reallocarray(operations->operation, cap, sizeof(*list));

		if (!list)
			return -ENOMEM;
		operations->operation = list;
		operations->cap = cap;
	}
	operations->operation[operations->count++] = *operation;
	return 0;
}

static int by_step_rank_start(const void *a, const void *b)
{
	const struct nt_operation *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* One identity per data-parallel group; any constant far from 0 will do. */
static uint64_t data_group(uint32_t stage)
{
	return 0x6e740000ULL << 24 | stage;
}

/*
 * The sum of the transfers of a data-parallel group in one step, whose samples are sorted. The
 * transfer of a call is its shortest duration: the member that enters last waits for no other. 0:
 * not known, as a call lacks one of `size` members.
 */
static uint64_t sum_transfers(const struct nt_frame_sample *call, size_t n, uint32_t size)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0, members; i < n; i += members) {
		uint64_t shortest_ns = UINT64_MAX;

		for (members = 0; i + members < n && call[i + members].number == call[i].number;
		     members++) {
			const struct nt_frame_sample *at = &call[i + members];

			if (members && at->rank == at[-1].rank)
				return 0;
			if (at->release_ns - at->arrive_ns < shortest_ns)
				shortest_ns = at->release_ns - at->arrive_ns;
		}
		if (members != size || __builtin_add_overflow(sum_ns, shortest_ns, &sum_ns))
			return 0;
	}
	return sum_ns;
}

/*
 * Reports the group's calls of a step, if their transfer is known, as one all-reduce on each member.
 * Its reduce-scatter and all-gather together are one, and only the operation that moves most is
 * judged.
 */
static void add_group(struct nt_trace_frame *frame, const struct nt_frame_sample *call, size_t n,
		      uint64_t step, uint32_t size)
{
	const uint64_t transfer_ns = sum_transfers(call, n, size);

	if (size < 2 || !transfer_ns)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct nt_frame_rank *member = nt_frame_find(&frame->frame, call[i].rank);
		const size_t at = (size_t)(member - frame->rank);
		struct nt_frame_comm *comm = &frame->comm[at];
		struct nt_frame_op *op = &frame->op[at];

		assert(member);
		if (!comm->id) {
			*comm = (struct nt_frame_comm){.id = call[i].comm,
						       .rank = (uint32_t)member->replica,
						       .size = size,
						       .epoch = 1,
						       .last = step + 1,
						       .op = op,
						       .ops = 1};
			*op = (struct nt_frame_op){.op = NT_OP_ALL_REDUCE,
						   .kind = NT_FRAME_SYNCHRONISING,
						   .by_gpu = true,
						   .calls = 1,
						   .first = step + 1,
						   .last = step + 1,
						   .timed_calls = 1,
						   .min_ns = transfer_ns};
			frame->rank[at].comm = comm;
			frame->rank[at].comms = 1;
		}
		if (comm->id == call[i].comm)
			op->sum_ns += call[i].release_ns - call[i].arrive_ns;
	}
}

/* Sorts the samples of a step, and adds the groups that made these calls. -ENOMEM. */
static int add_groups(struct nt_trace_frame *frame, uint64_t step, uint32_t size)
{
	const size_t samples = frame->frame.samples;
	const struct nt_frame_sample *sample = frame->sample;

	if (!samples)
		return 0;
	qsort(frame->sample, samples, sizeof(*frame->sample), nt_trace_compare_samples);
	frame->comm = calloc(frame->frame.ranks, sizeof(*frame->comm));
	frame->op = calloc(frame->frame.ranks, sizeof(*frame->op));
	if (!frame->comm || !frame->op)
		return -ENOMEM;
	for (size_t i = 0, n; i < samples; i += n) {
		for (n = 1; i + n < samples && sample[i + n].comm == sample[i].comm;)
			n++;
		add_group(frame, sample + i, n, step, size);
	}
	return 0;
}

/* What all steps have in common. */
struct operations_job {
	uint32_t ranks, replicas, stages;
	bool with_samples;
	uint64_t *begin_ns; /* of a step, for each stage: when the first of its ranks begins */
};

static void find_begins(const struct operations_job *job, const struct nt_operation *row,
			size_t rows)
{
	for (size_t i = 0; i < rows; i++)
		job->begin_ns[row[i].stage] = UINT64_MAX;
	for (size_t i = 0; i < rows; i++)
		if (row[i].start_ns < job->begin_ns[row[i].stage])
			job->begin_ns[row[i].stage] = row[i].start_ns;
}

/*
 * The time of a rank's step that its host takes: garbage collection, and time in which no operation
 * runs and after which a pass, send or receive does, as when it loads data: a stage after the first
 * does so before it receives; also until its first operation, since that of another rank of its stage.
 * Stages wait for each other in receives; if these are not recorded, so may be the wait, and idle time
 * is nobody's.
 */
static uint64_t host_work(const struct operations_job *job, const struct nt_operation *row,
			  size_t rows)
{
	uint64_t end_ns = row->start_ns, idle_ns = end_ns - job->begin_ns[row->stage], gc_ns = 0;
	bool receives = false;

	for (size_t i = 0; i < rows; i++) {
		const struct operation_kind *kind = &kinds[row[i].kind];
		const bool at_once =
			kind->use == USE_PASS || kind->op == NT_OP_SEND || kind->op == NT_OP_RECV;

		if (at_once && row[i].start_ns > end_ns)
			idle_ns += row[i].start_ns - end_ns;
		if (row[i].start_ns + row[i].duration_ns > end_ns)
			end_ns = row[i].start_ns + row[i].duration_ns;
		if (kind->use == USE_GC)
			gc_ns += row[i].duration_ns;
		receives = receives || kind->op == NT_OP_RECV;
	}
	return gc_ns + (job->stages > 1 && !receives ? 0 : idle_ns);
}

/* Makes the rows of one step, sorted by rank, one frame that starts at base_ns. */
static int add_step(struct nt_trace *trace, const struct nt_operation *row, size_t rows,
		    uint64_t base_ns, const struct operations_job *job)
{
	struct nt_trace_frame *out = NULL;
	struct nt_frame_rank *rank = NULL;
	size_t ranks = 0, samples = 0, first = 0;
	uint64_t span_ns = 1;
	int r;

	for (size_t i = 0; i < rows; i++) {
		ranks += i == 0 || row[i].rank != row[i - 1].rank;
		samples += job->with_samples && kinds[row[i].kind].use == USE_DATA;
		if (row[i].start_ns + row[i].duration_ns > span_ns)
			span_ns = row[i].start_ns + row[i].duration_ns;
	}
	r = nt_trace_frame_add(trace, ranks, samples, &out);
	if (r < 0)
		return r;
	out->frame.start_ns = base_ns;
	out->frame.end_ns = base_ns + span_ns;
	out->frame.ranks = ranks;
	out->frame.expected_ranks = job->ranks;
	out->frame.completeness = (double)ranks / job->ranks;

	if (job->with_samples)
		find_begins(job, row, rows);
	for (size_t i = 0; i < rows; i++) {
		const struct operation_kind *type = &kinds[row[i].kind];

		if (i == 0 || row[i].rank != row[i - 1].rank) {
			rank = rank ? rank + 1 : out->rank;
			*rank = (struct nt_frame_rank){
				.rank = row[i].rank,
				.node = NT_FRAME_NO_NODE,
				.steps = 1,
				.own_tier = NT_FRAME_T3,
				.rank_known = true,
				.observed = true,
				.uses_gpu = true,
				.step_ns = span_ns,
				.window_ns = span_ns,
				.stage = (int32_t)row[i].stage,
				.replica = (int32_t)row[i].replica,
			};
			first = i;
		}
		if (type->use == USE_PASS || type->use == USE_COMPUTE) {
			rank->own_ns += row[i].duration_ns;
			rank->own_blocked_ns += row[i].duration_ns;
		}
		if (job->with_samples && (i + 1 == rows || row[i + 1].rank != row[i].rank))
			rank->host_ns = host_work(job, row + first, i + 1 - first);
		if (type->use == USE_GC)
			rank->gc_ns += row[i].duration_ns;
		if (type->op != NT_OP_UNKNOWN)
			rank->comm_ns += row[i].duration_ns;
		if (type->op != NT_OP_UNKNOWN && type->op != NT_OP_SEND && type->op != NT_OP_RECV)
			rank->collective_ns += row[i].duration_ns;
		if (job->with_samples && type->use == USE_DATA)
			out->sample[out->frame.samples++] = (struct nt_frame_sample){
				.comm = data_group(row[i].stage),
				.number = row[i].step << 32 | (uint64_t)type->op << SEQ_BITS |
					  (row[i].seq & ((1U << SEQ_BITS) - 1)),
				.op = (uint8_t)type->op,
				.kind = NT_FRAME_SYNCHRONISING,
				.rank = row[i].rank,
				.arrive_ns = base_ns + row[i].start_ns,
				.release_ns = base_ns + row[i].start_ns + row[i].duration_ns,
			};
	}
	return add_groups(out, row->step, job->replicas);
}

static uint32_t count_ranks(const struct nt_operation *row, size_t rows)
{
	_Static_assert(NT_FRAME_MAX_RANKS % 8 == 0, "one bit a rank");
	uint8_t seen[NT_FRAME_MAX_RANKS / 8] = {0};
	uint32_t n = 0;

	for (size_t i = 0; i < rows; i++) {
		uint8_t bit = (uint8_t)(1 << row[i].rank % 8);

		n += !(seen[row[i].rank / 8] & bit);
		seen[row[i].rank / 8] |= bit;
	}
	return n;
}

/* Data-parallel ranks of a stage. A group is not judged if the file lacks one of them. */
static uint32_t count_replicas(const struct nt_operation *row, size_t rows)
{
	uint32_t n = 0;

	for (size_t i = 0; i < rows; i++)
		n = row[i].replica >= n ? row[i].replica + 1 : n;
	return n;
}

static uint32_t count_stages(const struct nt_operation *row, size_t rows)
{
	uint32_t n = 0;

	for (size_t i = 0; i < rows; i++)
		n = row[i].stage >= n ? row[i].stage + 1 : n;
	return n;
}

/* Of a step: so that its starts count from it. */
static void shift_to_start(struct nt_operation *row, size_t rows)
{
	uint64_t first_ns = UINT64_MAX;

	for (size_t i = 0; i < rows; i++)
		first_ns = row[i].start_ns < first_ns ? row[i].start_ns : first_ns;
	for (size_t i = 0; i < rows; i++)
		row[i].start_ns -= first_ns;
}

/* Sorts them by step and rank, and makes a frame of each step. */
static int make_frames(struct nt_operations *operations, const struct operations_job *job,
		       struct nt_trace *trace)
{
	struct nt_operation *row = operations->operation;
	const size_t rows = operations->count;
	uint64_t base_ns = 0;

	if (rows)
		qsort(row, rows, sizeof(*row), by_step_rank_start);
	for (size_t i = 0, n; i < rows; i += n) {
		int r;

		for (n = 1; i + n < rows && row[i + n].step == row[i].step;)
			n++;
		if (operations->absolute)
			shift_to_start(row + i, n);
		r = base_ns > MAX_BASE_NS ? -E2BIG : add_step(trace, row + i, n, base_ns, job);
		if (r < 0)
			return r;
		base_ns = trace->frame[trace->frames - 1].frame.end_ns;
	}
	return 0;
}

int nt_operations_frames(struct nt_operations *operations, struct nt_trace *trace)
{
	const struct nt_operation *row = operations->operation;
	const size_t rows = operations->count;
	struct operations_job job = {.ranks = count_ranks(row, rows),
				     .replicas = count_replicas(row, rows),
				     .with_samples = operations->samples};
	int r;

	if (job.with_samples) {
		job.stages = count_stages(row, rows);
		job.begin_ns = calloc(job.stages + 1U, sizeof(*job.begin_ns));
		if (!job.begin_ns)
			return -ENOMEM;
	}
	r = make_frames(operations, &job, trace);
	free(job.begin_ns);
	return r;
}
