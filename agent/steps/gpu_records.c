/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/gpu_records.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/search.h"
#include "common/system/clock.h"

#define EARLIER_NS (200 * NT_MILLISECOND) /* calls of all threads are fetched in that time */
#define LOST_MOST  (1ULL << 32) /* records between two batches */
#define WAIT_NS    NT_SECOND /* of a kernel for its call, by the times of the batches */

struct call {
	uint64_t entry_ns;
	uint32_t correlation; /* 0: the slot is empty */
	uint32_t thread;
};

struct kernel {
	struct nt_gpu_record record;
	uint64_t since_ns;
};

struct nt_gpu_records {
	uint32_t pid;
	struct call call[NT_GPU_RECORDS_CALLS]; /* by the lower bits of the correlation */
	struct kernel kernel[NT_GPU_RECORDS_KERNELS]; /* a ring */
	uint32_t first, count;
	uint64_t number; /* of the last record; 0: none yet */
	uint64_t intervals[2]; /* handed out, or lost: their numbers; [1]: of communication */
	struct nt_gpu_collective collective[NT_GPU_RECORDS_COLLECTIVES]; /* a ring, by entry_ns */
	uint32_t first_collective, collectives;
	uint64_t open_ns;
	uint32_t first_call; /* lowest correlation of a call since then; 0: none yet */
	bool by_communication;
	bool given_up;
	int32_t result;
	struct nt_gpu_records_stats stats;
};

int nt_gpu_records_new(uint32_t pid, bool by_communication, struct nt_gpu_records **ret_records)
{
	struct nt_gpu_records *records = calloc(1, sizeof(*records));

	if (!records)
		return -ENOMEM;
	records->pid = pid;
	records->by_communication = by_communication;
	*ret_records = records;
	return 0;
}

void nt_gpu_records_free(struct nt_gpu_records *records)
{
	free(records);
}

size_t nt_gpu_records_bytes(void)
{
	return sizeof(struct nt_gpu_records);
}

uint64_t nt_gpu_records_open_ns(const struct nt_gpu_records *records)
{
	return records->open_ns;
}

bool nt_gpu_records_by_communication(const struct nt_gpu_records *records)
{
	return records->by_communication;
}

bool nt_gpu_records_given_up(const struct nt_gpu_records *records, int32_t *ret_result)
{
	*ret_result = records->result;
	return records->given_up;
}

const struct nt_gpu_records_stats *nt_gpu_records_stats(const struct nt_gpu_records *records)
{
	return &records->stats;
}

/* ---- kernels and their calls ----------------------------------------------------------------- */

/* NULL: its call has not come. */
static const struct call *call_of(const struct nt_gpu_records *records, uint32_t correlation)
{
	const struct call *call = &records->call[correlation % NT_GPU_RECORDS_CALLS];

	return correlation && call->correlation == correlation ? call : NULL;
}

/* It was enqueued before calls were reported, and so before the measurement. */
static bool is_earlier(const struct nt_gpu_records *records, uint32_t correlation)
{
	return records->first_call && (int32_t)(correlation - records->first_call) < 0;
}

/* The gap in the numbers of the intervals says that one was lost. */
static void lose(struct nt_gpu_records *records, const struct nt_gpu_record *record)
{
	records->stats.unmatched++;
	records->intervals[record->kind == NT_GPU_RECORD_COMMUNICATION]++;
}

/* ---- collectives ----------------------------------------------------------------------------- */

static struct nt_gpu_collective *collective_at(struct nt_gpu_records *records, uint32_t index)
{
	return &records->collective[(records->first_collective + index) %
				    NT_GPU_RECORDS_COLLECTIVES];
}

void nt_gpu_records_collective(struct nt_gpu_records *records,
			       const struct nt_gpu_collective *collective)
{
	if (records->collectives == NT_GPU_RECORDS_COLLECTIVES) {
		records->first_collective =
			(records->first_collective + 1) % NT_GPU_RECORDS_COLLECTIVES;
		records->collectives--;
	}
	*collective_at(records, records->collectives++) = *collective;
}

static bool is_of(enum nt_gpu_record_op kernel, enum nt_op call)
{
	static const enum nt_op ops[] = {
		[NT_GPU_RECORD_OP_ALL_REDUCE] = NT_OP_ALL_REDUCE,
		[NT_GPU_RECORD_OP_ALL_GATHER] = NT_OP_ALL_GATHER,
		[NT_GPU_RECORD_OP_REDUCE_SCATTER] = NT_OP_REDUCE_SCATTER,
		[NT_GPU_RECORD_OP_BROADCAST] = NT_OP_BROADCAST,
		[NT_GPU_RECORD_OP_REDUCE] = NT_OP_REDUCE,
		[NT_GPU_RECORD_OP_SEND_RECV] = NT_OP_ALL_TO_ALL,
	};

	return kernel != NT_GPU_RECORD_OP_UNKNOWN &&
	       (size_t)kernel < sizeof(ops) / sizeof(ops[0]) && ops[kernel] == call;
}

/* The first call behind those that were made by then. */
static uint32_t calls_until(struct nt_gpu_records *records, uint64_t launch_ns)
{
	return nt_search_first(0, records->collectives, i,
			       collective_at(records, i)->entry_ns > launch_ns);
}

/* Sets the call of the kernel in the interval, or leaves it unknown. */
static void name_collective(struct nt_gpu_records *records, const struct nt_gpu_record *record,
			    struct nt_gpu_interval *interval)
{
	const uint32_t made = calls_until(records, interval->entry_ns);
	struct nt_gpu_collective *call = made ? collective_at(records, made - 1) : NULL;
	const struct nt_gpu_collective *before = made > 1 ? collective_at(records, made - 2) : NULL;

	if (!call || !is_of((enum nt_gpu_record_op)record->op, call->op))
		return;
	if (before && (before->tid != call->tid || (call->group && before->group == call->group)))
		return;
	interval->comm = call->comm;
	interval->comm_rank = call->comm_rank;
	interval->op = call->op;
	interval->nth = call->nth;
	call->op = NT_OP_UNKNOWN; /* it has had its kernel */
}

static void hand_out(struct nt_gpu_records *records, const struct nt_gpu_record *record,
		     const struct call *call, nt_gpu_records_fn fn, void *data)
{
	const bool communicates = record->kind == NT_GPU_RECORD_COMMUNICATION;
	struct nt_gpu_interval interval = {
		.pid = records->pid,
		.kernels = 1,
		.number = ++records->intervals[communicates],
		.communicates = communicates,
		.is_of_graph = record->graph != 0,
		.entry_ns = call->entry_ns,
		.start_ns = record->start_ns,
		.end_ns = record->end_ns,
		.stream = (uint64_t)record->device << 32 | record->stream,
		.thread = call->thread,
	};

	if (communicates)
		name_collective(records, record, &interval);
	fn(data, &interval);
}

static struct kernel *kernel_at(struct nt_gpu_records *records, uint32_t index)
{
	return &records->kernel[(records->first + index) % NT_GPU_RECORDS_KERNELS];
}

static void drop_first(struct nt_gpu_records *records)
{
	records->first = (records->first + 1) % NT_GPU_RECORDS_KERNELS;
	records->count--;
}

/* Those whose call has come since, in their order; those that waited too long are lost. */
static void settle(struct nt_gpu_records *records, uint64_t now_ns, nt_gpu_records_fn fn,
		   void *data)
{
	while (records->count) {
		const struct kernel *kernel = kernel_at(records, 0);
		const struct call *call = call_of(records, kernel->record.correlation);
		const bool earlier = is_earlier(records, kernel->record.correlation) && !call;
		const uint64_t wait_ns = earlier ? EARLIER_NS : WAIT_NS;

		if (!call && now_ns < kernel->since_ns + wait_ns)
			return;
		if (earlier)
			records->stats.earlier++;
		else if (call)
			hand_out(records, &kernel->record, call, fn, data);
		else
			lose(records, &kernel->record);
		drop_first(records);
	}
}

static void add_kernel(struct nt_gpu_records *records, const struct nt_gpu_record *record,
		       uint64_t now_ns, nt_gpu_records_fn fn, void *data)
{
	const struct call *call = call_of(records, record->correlation);

	/* In the order of their streams: behind those that wait. */
	if (call && !records->count) {
		hand_out(records, record, call, fn, data);
		return;
	}
	if (records->count == NT_GPU_RECORDS_KERNELS) {
		lose(records, &kernel_at(records, 0)->record);
		drop_first(records);
	}
	*kernel_at(records, records->count++) = (struct kernel){*record, now_ns};
}

/* ---- records -------------------------------------------------------------------------------- */

static void reopen(struct nt_gpu_records *records, uint64_t from_ns)
{
	records->open_ns = from_ns;
	records->given_up = false;
	records->first = records->count = records->first_call = 0;
}

static void add_call(struct nt_gpu_records *records, const struct nt_gpu_record *record,
		     uint64_t now_ns, nt_gpu_records_fn fn, void *data)
{
	const struct nt_gpu_interval interval = {
		.pid = records->pid,
		.communicates = true,
		.entry_ns = record->start_ns,
		.start_ns = record->start_ns,
		.end_ns = record->start_ns,
	};

	/* The library did not notice that the agent was detached, and is open still. */
	if (!records->open_ns)
		records->open_ns = now_ns;
	if (!records->first_call || is_earlier(records, record->correlation))
		records->first_call = record->correlation;
	records->call[record->correlation % NT_GPU_RECORDS_CALLS] =
		(struct call){record->start_ns, record->correlation, record->stream};
	if (records->by_communication)
		fn(data, &interval);
}

static void add(struct nt_gpu_records *records, const struct nt_gpu_record *record, uint64_t now_ns,
		nt_gpu_records_fn fn, void *data)
{
	if (record->end_ns < record->start_ns || record->start_ns > now_ns) {
		records->stats.malformed++;
		return;
	}
	switch ((enum nt_gpu_record_kind)record->kind) {
	case NT_GPU_RECORD_LAUNCH:
		add_call(records, record, now_ns, fn, data);
		return;
	case NT_GPU_RECORD_KERNEL:
	case NT_GPU_RECORD_COMMUNICATION:
		records->stats.kernels++;
		add_kernel(records, record, now_ns, fn, data);
		return;
	case NT_GPU_RECORD_COPY:
		return; /* no work of its own */
	case NT_GPU_RECORD_OPEN:
		reopen(records, record->start_ns);
		return;
	case NT_GPU_RECORD_GIVEN_UP:
		records->given_up = true;
		records->result = (int32_t)record->stream;
		return;
	default:
		records->stats.malformed++;
	}
}

void nt_gpu_records_add(struct nt_gpu_records *records, const struct nt_event_gpu *event,
			nt_gpu_records_fn fn, void *data)
{
	const uint64_t now_ns = event->h.entry_ns;
	const uint64_t next = records->number + 1;

	/* A number that goes back is of a new count, as is one that no loss explains. */
	if (records->number && event->number > next && event->number - next < LOST_MOST) {
		records->stats.lost += event->number - next;
		records->intervals[0]++;
		records->intervals[1]++;
	}
	records->number = event->number + event->records - 1;
	records->stats.records += event->records;
	for (uint32_t i = 0; i < event->records; i++)
		add(records, &event->record[i], now_ns, fn, data);
	settle(records, now_ns, fn, data);
}
