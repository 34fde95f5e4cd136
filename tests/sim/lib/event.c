/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events: places in streams, for the host and for other streams. */
#include <stdlib.h>

#include "tests/sim/lib/graph.h"
#include "tests/sim/lib/operation.h"

CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_RECORD};
	CUresult r;

	if (stream->capture) {
		event->capture = stream->capture;
		event->node = stream->last_node;
		return CUDA_SUCCESS;
	}
	op.point = sim_point_new();
	if (!op.point)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op.point->refs++; /* the event's own; the queue may already be done with its */
	r = sim_stream_put(stream, &op);
	sim_point_drop(r == CUDA_SUCCESS ? event->point : op.point);
	if (r != CUDA_SUCCESS) {
		sim_point_drop(op.point);
		return r;
	}
	event->point = op.point;
	event->capture = NULL;
	return CUDA_SUCCESS;
}

CUresult sim_event_await(struct sim_event *event, struct sim_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_WAIT, .point = event->point};
	CUresult r;

	if (event->capture) {
		struct sim_op nothing = {.kind = SIM_OP_NOTHING};

		if (stream->capture && stream->capture != event->capture)
			return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		stream->capture = event->capture;
		return sim_graph_add(stream->capture, stream->last_node, event->node, &nothing,
				     &stream->last_node);
	}
	if (!event->point || stream->capture)
		return CUDA_SUCCESS;
	op.point->refs++;
	r = sim_stream_put(stream, &op);
	if (r != CUDA_SUCCESS)
		sim_point_drop(op.point);
	return r;
}

void sim_event_wait(struct sim_event *event)
{
	struct sim_point *point = event->point;
	uint64_t end_ns;

	if (!point)
		return;
	point->refs++;
	while (!point->known)
		sim_model_await();
	end_ns = point->time_ns;
	sim_point_drop(point);
	sim_model_unlock();
	sim_model_sleep_until(end_ns);
	sim_model_lock();
}

bool sim_event_ready(const struct sim_event *event)
{
	return !event->point || (event->point->known && event->point->time_ns <= sim_model_now());
}

void sim_event_drop(struct sim_event *event)
{
	if (!event)
		return;
	sim_point_drop(event->point);
	free(event);
}
