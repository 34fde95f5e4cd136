/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams and events. */
#include "tests/sim/lib/runtime/runtime.h"

cudaError_t cudaStreamCreate(cudaStream_t *ret)
{
	return CALL(cuStreamCreateWithPriority, ret, 0, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned int flags)
{
	return CALL(cuStreamCreateWithPriority, ret, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret, unsigned int flags, int priority)
{
	return CALL(cuStreamCreateWithPriority, ret, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return CALL(cuStreamDestroy_v2, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return CALL_AS(SIM_RUNTIME_STREAM_SYNCHRONIZE, cuStreamSynchronize, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return CALL(cuStreamQuery, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return CALL(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	return CALL(cuStreamGetPriority, stream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	return CALL(cuStreamGetFlags, stream, flags);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, CUstreamCallback fn, void *data,
				  unsigned int flags)
{
	return CALL(cuStreamAddCallback, stream, fn, data, flags);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
	return CALL(cuStreamBeginCapture_v2, stream, mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret)
{
	return CALL(cuStreamEndCapture, stream, ret);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
	return CALL(cuStreamIsCapturing, stream, status);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int *status, unsigned long long *id,
				     cudaGraph_t *graph, const void **dependencies,
				     const void **edges, size_t *count)
{
	if (edges)
		*edges = NULL;
	return CALL(cuStreamGetCaptureInfo_v2, stream, status, (uint64_t *)id, graph, dependencies,
		    count);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode)
{
	return CALL(cuThreadExchangeStreamCaptureMode, mode);
}

cudaError_t cudaEventCreate(cudaEvent_t *ret)
{
	return CALL(cuEventCreate, ret, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned int flags)
{
	return CALL(cuEventCreate, ret, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	return CALL(cuEventDestroy_v2, event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return CALL(cuEventRecord, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	return CALL(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return CALL(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return CALL_AS(SIM_RUNTIME_EVENT_SYNCHRONIZE, cuEventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return CALL(cuEventElapsedTime_v2, ms, start, end);
}
