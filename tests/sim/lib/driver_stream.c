/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's calls on streams, host functions and captures. */
#include <stdlib.h>

#include "tests/sim/lib/activity.h"
#include "tests/sim/lib/driver.h"

CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned int flags, int priority)
{
	struct sim_stream *stream;

	sim_model_lock();
	stream = sim_stream_new(sim_driver_device(), flags, priority);
	if (stream)
		*ret = stream;
	return sim_driver_leave(stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuStreamCreate(CUstream *ret, unsigned int flags)
{
	struct sim_stream *stream;

	sim_model_lock();
	stream = sim_stream_new(sim_driver_device(), flags, 0);
	if (stream)
		*ret = stream;
	return sim_driver_leave(stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_model_lock();
	sim_stream_drop(stream);
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	struct sim_op nothing = {.kind = SIM_OP_NOTHING};
	CUresult r = CUDA_SUCCESS;
	struct sim_stream *on;
	struct sim_api api;

	sim_api_begin(&api, SIM_DRIVER_STREAM_SYNCHRONIZE);
	on = sim_driver_enter(stream);
	if (on->capture)
		return sim_api_end(&api, sim_driver_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
	/* The default stream ends after the blocking streams: what is put on it waits for them. */
	if (!stream || stream == CU_STREAM_LEGACY)
		r = sim_stream_put(on, &nothing);
	if (r == CUDA_SUCCESS)
		sim_stream_wait(on);
	return sim_api_end(&api, sim_driver_leave(r));
}

CUresult cuStreamQuery(CUstream stream)
{
	struct sim_stream *on = sim_driver_enter(stream);

	return sim_driver_leave(sim_stream_ready(on) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	struct sim_stream *on = sim_driver_enter(stream);

	(void)flags;
	return sim_driver_leave(sim_event_await(event, on));
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	struct sim_stream *on = sim_driver_enter(stream);

	*flags = on->flags;
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	struct sim_stream *on = sim_driver_enter(stream);

	*priority = on->priority;
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	struct sim_stream *on = sim_driver_enter(stream);

	*id = on->id;
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	struct sim_stream *on = sim_driver_enter(stream);

	*context = sim_driver_context(on->device);
	return sim_driver_leave(CUDA_SUCCESS);
}

struct callback {
	CUstreamCallback fn;
	CUstream stream;
	void *data;
};

static void call_back(void *data)
{
	struct callback *callback = data;

	callback->fn(callback->stream, CUDA_SUCCESS, callback->data);
	free(callback);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *data)
{
	struct sim_op op = {.kind = SIM_OP_HOST, .host = {.fn = fn, .data = data}};
	struct sim_stream *on;
	struct sim_api api;

	sim_api_begin(&api, SIM_DRIVER_LAUNCH_HOST_FUNC);
	on = sim_driver_enter(stream);
	return sim_api_end(&api, sim_driver_leave(sim_stream_put(on, &op)));
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *data, unsigned int flags)
{
	struct callback *callback = malloc(sizeof(*callback));
	struct sim_op op = {.kind = SIM_OP_HOST, .host = {.fn = call_back, .data = callback}};
	struct sim_stream *on;
	CUresult r;

	(void)flags;
	if (!callback)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*callback = (struct callback){.fn = fn, .stream = stream, .data = data};
	on = sim_driver_enter(stream);
	r = sim_stream_put(on, &op);
	if (r != CUDA_SUCCESS)
		free(callback);
	return sim_driver_leave(r);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	struct sim_stream *on = sim_driver_enter(stream);

	(void)mode;
	if (!stream || stream == CU_STREAM_LEGACY)
		return sim_driver_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return sim_driver_leave(sim_capture_begin(on));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *ret)
{
	struct sim_stream *on = sim_driver_enter(stream);

	return sim_driver_leave(sim_capture_end(on, ret));
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	struct sim_stream *on = sim_driver_enter(stream);

	*status = on->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
				   const void **dependencies, size_t *count)
{
	struct sim_stream *on = sim_driver_enter(stream);

	*status = on->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	if (id)
		*id = (uint64_t)(uintptr_t)on->capture;
	if (graph)
		*graph = on->capture;
	if (dependencies)
		*dependencies = NULL;
	if (count)
		*count = 0;
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	static __thread int now;
	int before = now;

	now = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
