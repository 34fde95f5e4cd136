/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's calls on events. */
#include <stdlib.h>

#include "tests/sim/lib/activity.h"
#include "tests/sim/lib/driver.h"

CUresult cuEventCreate(CUevent *ret, unsigned int flags)
{
	struct sim_event *event = calloc(1, sizeof(*event));

	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->flags = flags;
	*ret = event;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_model_lock();
	sim_event_drop(event);
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	struct sim_stream *on = sim_driver_enter(stream);

	return sim_driver_leave(event ? sim_event_record(event, on) : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	struct sim_stream *on = sim_driver_enter(stream);

	(void)flags;
	return sim_driver_leave(event ? sim_event_record(event, on) : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuEventQuery(CUevent event)
{
	sim_model_lock();
	return sim_driver_leave(sim_event_ready(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent event)
{
	struct sim_api api;

	sim_api_begin(&api, SIM_DRIVER_EVENT_SYNCHRONIZE);
	sim_model_lock();
	sim_event_wait(event);
	return sim_api_end(&api, sim_driver_leave(CUDA_SUCCESS));
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	CUresult r = CUDA_SUCCESS;

	sim_model_lock();
	if (!start->point || !end->point)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!sim_event_ready(start) || !sim_event_ready(end))
		r = CUDA_ERROR_NOT_READY;
	else
		*ms = (float)((double)(int64_t)(end->point->time_ns - start->point->time_ns) / 1e6);
	return sim_driver_leave(r);
}
