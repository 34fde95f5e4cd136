/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/cupti/cupti_record.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/lib/cupti/cupti_buffer.h"

enum {
	KEPT_MOST = 1 << 20,
	MEMORY_DEVICE = 3,
};

struct kept {
	uint64_t number; /* operations that end together stay in order */
	struct sim_activity activity;
};

/* A heap: the first to end is the first. */
static struct kept *heap;
static size_t count, room;
static uint64_t numbers;
static pthread_mutex_t heap_mutex = PTHREAD_MUTEX_INITIALIZER; /* innermost */

/* Operations are recorded by one thread at a time, so that they stay in order. */
static pthread_mutex_t ended_mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- operations that have not ended ---- */

static bool is_before(const struct kept *a, const struct kept *b)
{
	if (a->activity.end_ns != b->activity.end_ns)
		return a->activity.end_ns < b->activity.end_ns;
	return a->number < b->number;
}

static void swap(size_t a, size_t b)
{
	struct kept kept = heap[a];

	heap[a] = heap[b];
	heap[b] = kept;
}

static void rise(size_t i)
{
	while (i > 0 && is_before(&heap[i], &heap[(i - 1) / 2])) {
		swap(i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static void sink(size_t i)
{
	for (;;) {
		size_t first = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++)
			if (is_before(&heap[child], &heap[first]))
				first = child;
		if (first == i)
			return;
		swap(i, first);
		i = first;
	}
}

static bool keep(const struct sim_activity *activity)
{
	if (count == room) {
		size_t more = room ? 2 * room : 1024;
		struct kept *grown;

		if (count == KEPT_MOST)
			return false;
		grown = reallocarray(heap, more, sizeof(*heap));
		if (!grown)
			return false;
		heap = grown;
		room = more;
	}
	heap[count] = (struct kept){.number = ++numbers, .activity = *activity};
	rise(count++);
	return true;
}

/* The first that has ended by now_ns. */
static bool take(uint64_t now_ns, struct sim_activity *ret)
{
	bool has_ended;

	(void)pthread_mutex_lock(&heap_mutex);
	has_ended = count > 0 && heap[0].activity.end_ns <= now_ns;
	if (has_ended) {
		*ret = heap[0].activity;
		heap[0] = heap[--count];
		sink(0);
	}
	(void)pthread_mutex_unlock(&heap_mutex);
	return has_ended;
}

bool sim_cupti_keeps_any(void)
{
	bool any;

	(void)pthread_mutex_lock(&heap_mutex);
	any = count > 0;
	(void)pthread_mutex_unlock(&heap_mutex);
	return any;
}

void sim_cupti_forget(void)
{
	(void)pthread_mutex_lock(&heap_mutex);
	count = 0;
	(void)pthread_mutex_unlock(&heap_mutex);
}

/* ---- records ---- */

size_t sim_cupti_kernel_bytes(void)
{
	static const size_t known[] = {SIM_CUPTI_KERNEL_BYTES_11, SIM_CUPTI_KERNEL_BYTES_12,
				       SIM_CUPTI_KERNEL_BYTES_13_0, SIM_CUPTI_KERNEL_BYTES_13_5};
	static size_t chosen;
	size_t bytes = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
	uint64_t wanted;

	if (bytes)
		return bytes;
	bytes = SIM_CUPTI_KERNEL_BYTES_12;
	wanted = sim_cupti_setting("SIM_CUPTI_KERNEL_BYTES", bytes);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (wanted == known[i])
			bytes = known[i];
	__atomic_store_n(&chosen, bytes, __ATOMIC_RELAXED);
	return bytes;
}

static void write_kernel(const struct sim_activity *activity, enum sim_cupti_kind kind)
{
	struct sim_cupti_kernel record = {.kind = kind,
					  .registers_per_thread = 32,
					  .start = sim_cupti_time(activity->start_ns),
					  .end = sim_cupti_time(activity->end_ns),
					  .device = activity->device,
					  .context = activity->device + 1,
					  .stream = activity->stream,
					  .grid = {1, 1, 1},
					  .block = {512, 1, 1},
					  .correlation = activity->correlation,
					  .grid_id = activity->correlation,
					  .name = activity->name,
					  .graph_node = activity->node,
					  .graph = activity->graph,
					  .channel = activity->stream,
					  .channel_type = 1};

	sim_cupti_write_operation(&record, sim_cupti_kernel_bytes());
}

static uint8_t copy_kind(const struct sim_activity *activity)
{
	bool from_host = activity->from <= SIM_PLACE_PINNED;
	bool to_host = activity->to <= SIM_PLACE_PINNED;

	if (from_host)
		return to_host ? SIM_CUPTI_MEMCPY_HTOH : SIM_CUPTI_MEMCPY_HTOD;
	return to_host ? SIM_CUPTI_MEMCPY_DTOH : SIM_CUPTI_MEMCPY_DTOD;
}

static void write_memcpy(const struct sim_activity *activity)
{
	struct sim_cupti_memcpy record = {.kind = SIM_CUPTI_MEMCPY,
					  .copy_kind = copy_kind(activity),
					  .source_kind = (uint8_t)activity->from,
					  .target_kind = (uint8_t)activity->to,
					  .bytes = activity->bytes,
					  .start = sim_cupti_time(activity->start_ns),
					  .end = sim_cupti_time(activity->end_ns),
					  .device = activity->device,
					  .context = activity->device + 1,
					  .stream = activity->stream,
					  .correlation = activity->correlation,
					  .graph_node = activity->node,
					  .graph = activity->graph,
					  .channel = activity->stream,
					  .channel_type = 2,
					  .copies = 1};

	sim_cupti_write_operation(&record, sizeof(record));
}

static void write_memset(const struct sim_activity *activity)
{
	struct sim_cupti_memset record = {.kind = SIM_CUPTI_MEMSET,
					  .value = activity->value,
					  .bytes = activity->bytes,
					  .start = sim_cupti_time(activity->start_ns),
					  .end = sim_cupti_time(activity->end_ns),
					  .device = activity->device,
					  .context = activity->device + 1,
					  .stream = activity->stream,
					  .correlation = activity->correlation,
					  .memory_kind = MEMORY_DEVICE,
					  .graph_node = activity->node,
					  .graph = activity->graph,
					  .channel = activity->stream,
					  .channel_type = 1};

	sim_cupti_write_operation(&record, sizeof(record));
}

static void write_graph(const struct sim_activity *activity)
{
	struct sim_cupti_graph_trace record = {.kind = SIM_CUPTI_GRAPH_TRACE,
					       .correlation = activity->correlation,
					       .start = sim_cupti_time(activity->start_ns),
					       .end = sim_cupti_time(activity->end_ns),
					       .device = activity->device,
					       .graph = activity->graph,
					       .context = activity->device + 1,
					       .stream = activity->stream,
					       .end_device = activity->device,
					       .end_context = activity->device + 1};

	sim_cupti_write_operation(&record, sizeof(record));
}

static enum sim_cupti_kind kind_of(const struct sim_activity *activity)
{
	bool concurrent = sim_cupti_is_enabled(SIM_CUPTI_CONCURRENT_KERNEL);

	switch (activity->kind) {
	case SIM_ACTIVITY_COPY:
		return SIM_CUPTI_MEMCPY;
	case SIM_ACTIVITY_SET:
		return SIM_CUPTI_MEMSET;
	case SIM_ACTIVITY_GRAPH:
		return SIM_CUPTI_GRAPH_TRACE;
	default:
		return concurrent ? SIM_CUPTI_CONCURRENT_KERNEL : SIM_CUPTI_KERNEL;
	}
}

void sim_cupti_record_ended(void)
{
	uint64_t now_ns = sim_cupti_cuda.now();
	struct sim_activity activity;

	(void)pthread_mutex_lock(&ended_mutex);
	while (take(now_ns, &activity)) {
		switch (activity.kind) {
		case SIM_ACTIVITY_COPY:
			write_memcpy(&activity);
			break;
		case SIM_ACTIVITY_SET:
			write_memset(&activity);
			break;
		case SIM_ACTIVITY_GRAPH:
			write_graph(&activity);
			break;
		default:
			write_kernel(&activity, kind_of(&activity));
			break;
		}
	}
	(void)pthread_mutex_unlock(&ended_mutex);
}

/* ---- what the driver reports ---- */

static void operated(const struct sim_activity *activity)
{
	bool is_node = activity->graph != 0 && activity->kind != SIM_ACTIVITY_GRAPH;
	bool was_empty, kept;

	/* With traces of graphs there are no records of their nodes. */
	if (!sim_cupti_is_enabled(kind_of(activity)) ||
	    (is_node && sim_cupti_is_enabled(SIM_CUPTI_GRAPH_TRACE)))
		return;
	(void)pthread_mutex_lock(&heap_mutex);
	was_empty = count == 0;
	kept = keep(activity);
	(void)pthread_mutex_unlock(&heap_mutex);
	if (!kept)
		sim_cupti_count_dropped();
	if (was_empty)
		sim_cupti_wake();
}

static uint32_t thread_number(void)
{
	if (sim_cupti_thread_type() == SIM_CUPTI_THREAD_SYSTEM)
		return (uint32_t)syscall(SYS_gettid);
	return (uint32_t)pthread_self();
}

static void called(const struct sim_api_call *call)
{
	struct sim_cupti_api record = {.kind = call->is_driver ? SIM_CUPTI_DRIVER
							       : SIM_CUPTI_RUNTIME,
				       .cbid = call->cbid,
				       .start = sim_cupti_time(call->begin_ns),
				       .end = sim_cupti_time(call->end_ns),
				       .process = (uint32_t)getpid(),
				       .thread = thread_number(),
				       .correlation = call->correlation,
				       .result = (uint32_t)call->result};

	if (sim_cupti_is_call_enabled(call->is_driver, call->cbid))
		sim_cupti_write_call(&record, sizeof(record));
}

const struct sim_observer sim_cupti_observer = {.called = called, .operated = operated};
