/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams: queues of operations, and how they wait for each other. */
#include <stdlib.h>

#include "tests/sim/lib/activity.h"
#include "tests/sim/lib/graph.h"
#include "tests/sim/lib/operation.h"
#include "tests/sim/lib/thread.h"

static struct sim_stream *streams;
static struct sim_stream *default_stream[SIM_DEVICES][2]; /* legacy, per-thread */
static uint64_t stream_ids;

struct sim_stream *sim_stream_new(int device, unsigned int flags, int priority)
{
	struct sim_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->tail = &stream->head;
	stream->flags = flags;
	stream->priority = priority;
	stream->device = device;
	stream->last_node = -1;
	stream->id = ++stream_ids;
	stream->next = streams;
	streams = stream;
	return stream;
}

static void stream_free(struct sim_stream *stream)
{
	struct sim_stream **at = &streams;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	free(stream);
}

void sim_stream_drop(struct sim_stream *stream)
{
	stream->gone = true;
	if (!stream->head && !stream->wanted)
		stream_free(stream);
}

struct sim_stream *sim_stream_of(CUstream handle, int device)
{
	int which = handle == CU_STREAM_PER_THREAD;

	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
		return handle;
	if (!default_stream[device][which])
		default_stream[device][which] = sim_stream_new(device, 0, 0);
	return default_stream[device][which];
}

static bool stream_moves(struct sim_stream *stream)
{
	bool any = false;

	while (stream->head) {
		struct sim_op *op = stream->head;
		uint64_t start_ns = sim_later(stream->cursor_ns, op->at_ns), end_ns = 0;

		if (!sim_op_moves(op, start_ns, &end_ns))
			break;
		sim_activity_report(stream, op, start_ns, end_ns);
		stream->cursor_ns = end_ns;
		stream->done++;
		stream->head = op->next;
		if (!stream->head)
			stream->tail = &stream->head;
		sim_op_clear(op);
		free(op);
		any = true;
	}
	return any;
}

void sim_model_progress(void)
{
	bool any = true, ever = false;

	while (any) {
		struct sim_stream *next;

		any = false;
		for (struct sim_stream *stream = streams; stream; stream = next) {
			next = stream->next;
			if (stream->head && stream_moves(stream))
				any = true;
			if (stream->gone && !stream->head && !stream->wanted)
				stream_free(stream);
		}
		ever |= any;
	}
	if (ever)
		sim_model_moved();
}

static CUresult put(struct sim_stream *stream, const struct sim_op *op)
{
	struct sim_op *copy;

	/* The most common case costs no memory: the end is known at once. */
	if (op->kind == SIM_OP_KERNEL && !stream->head) {
		uint64_t start_ns = sim_later(stream->cursor_ns, op->at_ns);

		stream->cursor_ns = start_ns + op->kernel.ns;
		sim_activity_report(stream, op, start_ns, stream->cursor_ns);
		stream->put++;
		stream->done++;
		return CUDA_SUCCESS;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*copy = *op;
	copy->next = NULL;
	*stream->tail = copy;
	stream->tail = &copy->next;
	stream->put++;
	return CUDA_SUCCESS;
}

/* What comes next on `waiting` starts when all that is now on `first` has ended. */
static CUresult order(struct sim_stream *first, struct sim_stream *waiting)
{
	struct sim_op op = {.at_ns = sim_model_now()};
	CUresult r;

	if (first->head == NULL && waiting->head == NULL) {
		waiting->cursor_ns = sim_later(waiting->cursor_ns, first->cursor_ns);
		return CUDA_SUCCESS;
	}
	op.point = sim_point_new();
	if (!op.point)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op.kind = SIM_OP_RECORD;
	r = put(first, &op);
	if (r == CUDA_SUCCESS) {
		op.point->refs++;
		op.kind = SIM_OP_WAIT;
		r = put(waiting, &op);
	}
	if (r != CUDA_SUCCESS)
		sim_point_drop(op.point);
	return r;
}

/* The legacy default stream and the blocking streams of its device wait for each other. */
static CUresult order_by_default_stream(struct sim_stream *stream)
{
	struct sim_stream *legacy = default_stream[stream->device][0];
	CUresult r = CUDA_SUCCESS;

	if (!legacy || stream->flags & CU_STREAM_NON_BLOCKING)
		return CUDA_SUCCESS;
	if (stream != legacy)
		return order(legacy, stream);
	for (struct sim_stream *other = streams; other && r == CUDA_SUCCESS; other = other->next)
		if (other != legacy && other->device == stream->device &&
		    !(other->flags & CU_STREAM_NON_BLOCKING) && !other->capture)
			r = order(other, stream);
	return r;
}

CUresult sim_stream_put(struct sim_stream *stream, const struct sim_op *op)
{
	struct sim_op timed = *op;
	CUresult r;

	if (stream->capture)
		return sim_graph_add(stream->capture, stream->last_node, -1, op,
				     &stream->last_node);

	timed.at_ns = sim_model_now();
	if (sim_activity_observer())
		timed.correlation = sim_activity_correlation();
	r = order_by_default_stream(stream);
	if (r == CUDA_SUCCESS)
		r = put(stream, &timed);
	if (r != CUDA_SUCCESS)
		return r;
	if (op->kind == SIM_OP_MODEL)
		op->model.model->launched(op->model.state);
	if (op->kind == SIM_OP_HOST || op->kind == SIM_OP_GRAPH)
		sim_thread_start();
	if (stream->head)
		sim_model_progress();
	return CUDA_SUCCESS;
}

void sim_stream_wait(struct sim_stream *stream)
{
	uint64_t end_ns, target = stream->put;

	stream->wanted++;
	while (stream->done < target)
		sim_model_await();
	stream->wanted--;
	end_ns = stream->cursor_ns;
	sim_model_unlock();
	sim_model_sleep_until(end_ns);
	sim_model_lock();
}

/* Of a graph's nodes the launch alone counts. */
uint64_t cuSimUnfinished(void)
{
	uint64_t count = 0;

	sim_model_lock();
	for (const struct sim_stream *stream = streams; stream; stream = stream->next)
		count += stream->put - stream->done;
	sim_model_unlock();
	return count;
}

static struct sim_stream *find_busy(int device)
{
	struct sim_stream *stream = streams;

	while (stream && (stream->device != device || !stream->head))
		stream = stream->next;
	return stream;
}

void sim_device_wait_all(int device)
{
	uint64_t end_ns = 0;

	while (find_busy(device))
		sim_model_await();
	for (struct sim_stream *stream = streams; stream; stream = stream->next)
		if (stream->device == device)
			end_ns = sim_later(end_ns, stream->cursor_ns);
	sim_model_unlock();
	sim_model_sleep_until(end_ns);
	sim_model_lock();
}

bool sim_stream_ready(const struct sim_stream *stream)
{
	return !stream->head && stream->cursor_ns <= sim_model_now();
}

void sim_stream_end_capture(const struct sim_graph *graph)
{
	for (struct sim_stream *other = streams; other; other = other->next) {
		if (other->capture != graph)
			continue;
		other->capture = NULL;
		other->captures_as_origin = false;
		other->last_node = -1;
	}
}
