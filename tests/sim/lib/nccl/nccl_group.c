/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/nccl_group.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/nccl/nccl_cuda.h"
#include "tests/sim/lib/nccl/nccl_handle.h"
#include "tests/sim/lib/nccl/profiler_call.h"
#include "tests/sim/lib/reduce.h"

enum {
	GROUP_MAX_CALLS = 4096,
	GROUP_MAX_INITS = SIM_MAX_RANKS,
};

struct pending {
	struct ncclComm *comm;
	cudaStream_t stream;
	struct sim_call call;
	struct sim_tasks tasks; /* for a profiler */
};

/* A group belongs to a thread. */
static __thread struct {
	unsigned int depth;
	struct pending *pending;
	size_t calls;
	struct sim_init *init;
	size_t inits;
	ncclResult_t result;
} group;

static const struct sim_function transfer_function = {
	.magic = SIM_FUNCTION_MAGIC, .kind = SIM_FUNCTION_MODEL, .model = &sim_transfer_model};
static uint64_t data_most = SIM_DATA_BYTES;

void ncclSimMoveData(uint64_t bytes)
{
	data_most = bytes < SIM_DATA_BYTES ? bytes : SIM_DATA_BYTES;
}

static void *run_init(void *data)
{
	struct sim_init *init = data;
	struct sim_comm *comm;
	ncclComm_t handle = NULL;

	if (init->kind == SIM_INIT_SPLIT)
		sim_comm_split(init->parent->comm, init->color, init->key, &init->rank,
			       &init->ranks, &init->id);
	if (init->ranks == 0) {
		*init->ret = NULL;
		init->result = ncclSuccess;
		return NULL;
	}
	comm = sim_comm_join(&init->id, init->ranks, init->rank, init->device);
	if (comm)
		handle = sim_handle_new(comm, init->name);
	if (handle)
		*init->ret = handle;
	init->result = handle ? ncclSuccess : ncclSystemError;
	return NULL;
}

ncclResult_t sim_group_init(const struct sim_init *init)
{
	struct sim_init now = *init;

	if (!sim_cuda_load())
		return ncclUnhandledCudaError;
	now.device =
		init->parent && init->parent->comm ? init->parent->comm->device : sim_cuda_device();
	if (init->device >= 0)
		now.device = init->device;
	if (group.depth == 0) {
		(void)run_init(&now);
		return now.result;
	}
	if (group.inits == GROUP_MAX_INITS)
		return ncclInternalError;
	if (!group.init)
		group.init = calloc(GROUP_MAX_INITS, sizeof(*group.init));
	if (!group.init)
		return ncclSystemError;
	group.init[group.inits++] = now;
	return ncclSuccess;
}

/* Several ranks of one process wait for each other, so each comes by a thread of its own. */
static ncclResult_t end_inits(void)
{
	ncclResult_t result = ncclSuccess;

	for (size_t i = 0; i < group.inits; i++)
		if (pthread_create(&group.init[i].thread, NULL, run_init, &group.init[i]) != 0)
			return ncclSystemError;
	for (size_t i = 0; i < group.inits; i++) {
		(void)pthread_join(group.init[i].thread, NULL);
		if (group.init[i].result != ncclSuccess)
			result = group.init[i].result;
	}
	group.inits = 0;
	return result;
}

static bool is_captured(cudaStream_t stream)
{
	int status = CU_STREAM_CAPTURE_STATUS_NONE;

	(void)sim_cuda.is_capturing((CUstream)stream, &status);
	return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* NULL: nobody observes it. */
static struct sim_plan *plan_for(struct ncclComm *handle, cudaStream_t stream,
				 const struct sim_tasks *tasks)
{
	if (!handle->profiled || tasks->count == 0)
		return NULL;
	return sim_plan_new(handle->profiled, stream, is_captured(stream), tasks->task,
			    tasks->count);
}

static ncclResult_t launch_batch(cudaStream_t stream, struct sim_plan *plan,
				 struct sim_batch *batch)
{
	CUlaunchConfig config = {.grid_x = 1,
				 .grid_y = 1,
				 .grid_z = 1,
				 .block_x = 512,
				 .block_y = 1,
				 .block_z = 1,
				 .stream = stream};
	void *params[] = {batch};
	CUresult r = CUDA_SUCCESS;

	if (plan && plan->by_callback)
		r = sim_cuda.launch_host((CUstream)stream, sim_plan_callback, plan);
	if (r == CUDA_SUCCESS && plan)
		sim_plan_launch_begin(plan);
	if (r == CUDA_SUCCESS)
		r = sim_cuda.launch(&config, (CUfunction)(uintptr_t)&transfer_function, params,
				    NULL);
	if (r == CUDA_SUCCESS && plan) {
		sim_plan_launch_end(plan);
		if (!plan->is_persistent && !plan->by_callback)
			sim_plan_post(plan);
	}
	return r == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

static ncclResult_t launch(struct ncclComm *handle, cudaStream_t stream,
			   const struct sim_call *call, size_t calls, const struct sim_tasks *tasks)
{
	struct sim_plan *plan = plan_for(handle, stream, tasks);
	struct sim_batch *batch;
	ncclResult_t result;

	sim_cuda.lock();
	batch = sim_batch_new(handle->comm, call, calls);
	if (batch)
		sim_batch_observe(batch, plan);
	sim_cuda.unlock();
	if (!batch) {
		sim_plan_unref(plan);
		return ncclSystemError;
	}
	sim_handle_count(handle);
	result = launch_batch(stream, plan, batch);
	if (result != ncclSuccess) {
		if (plan)
			sim_plan_forget_flights(plan);
		sim_cuda.lock();
		sim_transfer_model.release(batch);
		sim_cuda.unlock();
	}
	/* A host function that was put on the stream still has the plan. */
	if (result == ncclSuccess || !plan || !plan->by_callback)
		sim_plan_unref(plan);
	return result;
}

static void append_tasks(struct sim_tasks *to, struct sim_tasks *from)
{
	struct sim_task *grown;

	if (from->count == 0)
		return;
	grown = reallocarray(to->task, to->count + from->count, sizeof(*grown));
	if (!grown)
		return;
	memcpy(grown + to->count, from->task, from->count * sizeof(*grown));
	to->task = grown;
	to->count += from->count;
}

/* One launch for each communicator and stream of the group, in the order of their first calls. */
static ncclResult_t end_calls(void)
{
	struct sim_call *batch = calloc(group.calls + 1, sizeof(*batch));
	ncclResult_t result = batch ? ncclSuccess : ncclSystemError;

	for (size_t i = 0; batch && i < group.calls; i++) {
		struct ncclComm *comm = group.pending[i].comm;
		cudaStream_t stream = group.pending[i].stream;
		struct sim_tasks tasks = {NULL, 0};
		size_t calls = 0;

		if (!comm)
			continue;
		for (size_t k = i; k < group.calls; k++) {
			struct pending *pending = &group.pending[k];

			if (pending->comm != comm || pending->stream != stream)
				continue;
			batch[calls++] = pending->call;
			append_tasks(&tasks, &pending->tasks);
			pending->comm = NULL;
		}
		if (launch(comm, stream, batch, calls, &tasks) != ncclSuccess)
			result = ncclUnhandledCudaError;
		free(tasks.task);
	}
	free(batch);
	return result;
}

static void clear_calls(void)
{
	for (size_t i = 0; i < group.calls; i++)
		free(group.pending[i].tasks.task);
	group.calls = 0;
}

ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	ncclResult_t result;

	if (group.depth == 0)
		return ncclInvalidUsage;
	sim_profiler_leave();
	if (--group.depth > 0) {
		sim_profiler_left();
		return ncclSuccess;
	}
	result = group.result;
	group.result = ncclSuccess;
	if (group.inits > 0 && result == ncclSuccess)
		result = end_inits();
	if (group.calls > 0 && result == ncclSuccess)
		result = end_calls();
	group.inits = 0;
	clear_calls();
	free(group.init);
	group.init = NULL;
	sim_profiler_left();
	return result;
}

ncclResult_t ncclGroupSimulateEnd(void *info)
{
	(void)info;
	clear_calls();
	return ncclGroupEnd();
}

/* Device memory, or pinned, that holds all of it. */
static bool holds(const void *buffer, size_t bytes)
{
	char *start = NULL;
	size_t size = 0;

	if (bytes == 0)
		return true;
	if (!buffer || sim_cuda.attribute(&start, 11, (CUdeviceptr)buffer) != CUDA_SUCCESS ||
	    sim_cuda.attribute(&size, 12, (CUdeviceptr)buffer) != CUDA_SUCCESS)
		return false;
	return bytes <= size - (size_t)((const char *)buffer - start);
}

static ncclResult_t check_call(struct ncclComm *comm, struct sim_call *call)
{
	size_t sends, receives, most = data_most;

	if (!sim_handle_is_valid(comm) || sim_type_bytes(call->type) == 0 ||
	    call->peer >= comm->comm->ranks)
		return ncclInvalidArgument;
	sends = sim_call_send_bytes(call, comm->comm);
	receives = sim_call_recv_bytes(call, comm->comm);
	if (call->kind >= SIM_CALL_SEND && most > SIM_CHANNEL_DATA_BYTES)
		most = SIM_CHANNEL_DATA_BYTES;
	call->has_data = sends <= most && receives <= most * comm->comm->ranks &&
			 holds(call->send, sends) && holds(call->recv, receives);
	return ncclSuccess;
}

static ncclResult_t call_alone(struct ncclComm *comm, cudaStream_t stream,
			       const struct sim_call *call)
{
	struct sim_tasks tasks = {NULL, 0};
	ncclResult_t result;

	if (comm->profiled)
		sim_profiler_call(comm->profiled, call, stream, is_captured(stream), 1, &tasks);
	sim_profiler_leave();
	result = launch(comm, stream, call, 1, &tasks);
	sim_profiler_left();
	free(tasks.task);
	return result;
}

ncclResult_t sim_group_call(struct ncclComm *comm, cudaStream_t stream, struct sim_call *call)
{
	ncclResult_t result = check_call(comm, call);
	struct pending *pending;

	if (group.depth == 0)
		return result == ncclSuccess ? call_alone(comm, stream, call) : result;
	if (result == ncclSuccess && !group.pending) {
		group.pending = calloc(GROUP_MAX_CALLS, sizeof(*group.pending));
		if (!group.pending)
			result = ncclSystemError;
	}
	if (result == ncclSuccess && group.calls == GROUP_MAX_CALLS)
		result = ncclInternalError;
	if (result != ncclSuccess)
		return group.result = result;
	pending = &group.pending[group.calls++];
	*pending = (struct pending){.comm = comm, .stream = stream, .call = *call};
	if (comm->profiled) {
		sim_profiler_enter();
		sim_profiler_call(comm->profiled, call, stream, is_captured(stream),
				  (int)group.depth + 1, &pending->tasks);
		sim_profiler_leave();
		sim_profiler_left();
	}
	return ncclSuccess;
}
