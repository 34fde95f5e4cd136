/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's calls. Each takes the device's lock once, and leaves the work to model.c. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/model.h"

struct sim_context {
	int device;
};

static struct sim_context contexts[SIM_DEVICES];
static __thread struct sim_context *current;
static bool has_context;
static const struct sim_function short_function = {.magic = SIM_FUNCTION_MAGIC,
						   .kind = SIM_FUNCTION_SHORT};

#define DEVICE_BYTES ((size_t)80 << 30)

static int device_now(void)
{
	return current ? current->device : 0;
}

static CUresult locked(CUresult r)
{
	sim_model_unlock();
	return r;
}

static struct sim_stream *lock_stream(CUstream handle)
{
	sim_model_lock();
	return sim_stream_of(handle, device_now());
}

CUresult cuInit(unsigned int flags)
{
	for (int i = 0; i < SIM_DEVICES; i++)
		contexts[i].device = i;
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	if (ordinal < 0 || ordinal >= SIM_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = SIM_DEVICES;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	(void)device;
	(void)snprintf(name, (size_t)len, "Stand-in H100");
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	(void)device;
	*bytes = DEVICE_BYTES;
	return CUDA_SUCCESS;
}

/* The attributes that programs look at; the others are 0, that is "no". */
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	static const struct {
		int attribute, value;
	} known[] = {
		{1, 1024}, /* threads per block */
		{2, 1024},       {3, 1024},  {4, 64}, /* block dimensions */
		{5, 0x7fffffff}, {6, 65535}, {7, 65535}, /* grid dimensions */
		{8, 49152}, /* shared memory per block */
		{9, 65536}, /* constant memory */
		{10, 32}, /* warp */
		{12, 65536}, /* registers per block */
		{13, 1980000}, /* clock, kHz */
		{16, 132}, /* multiprocessors */
		{31, 1}, /* concurrent kernels */
		{36, 2619000},   {37, 5120}, /* memory clock and bus */
		{38, 52428800}, /* L2 */
		{39, 2048}, /* threads per multiprocessor */
		{40, 3}, /* copy engines */
		{41, 1}, /* unified addressing */
		{75, 9},         {76, 0}, /* compute capability */
		{78, 1}, /* stream priorities */
		{81, 233472}, /* shared memory per multiprocessor */
		{82, 65536}, /* registers per multiprocessor */
		{83, 1}, /* managed memory */
		{95, 1}, /* cooperative launch */
		{97, 232448}, /* shared memory per block, opt-in */
		{106, 32}, /* blocks per multiprocessor */
	};

	*value = 0;
	if (device < 0 || device >= SIM_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	if (attribute == 33) /* PCI bus */
		*value = device + 1;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].attribute == attribute)
			*value = known[i].value;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	*uuid = (CUuuid){.bytes = "sim-device-0000"};
	uuid->bytes[15] = (char)device;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device)
{
	(void)snprintf(id, (size_t)len, "0000:%02X:00.0", device + 1);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	if (device < 0 || device >= SIM_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_model_lock();
	if (!has_context) {
		/* Making the first context takes real drivers some hundred milliseconds. */
		sim_model_sleep_until(sim_model_now() + 250000000);
		has_context = true;
	}
	contexts[device].device = device;
	*context = &contexts[device];
	return locked(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return device < 0 || device >= SIM_DEVICES ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	*flags = 0;
	*active = current && current->device == device;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	(void)device;
	(void)flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	if (context)
		*context = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = device_now();
	return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSynchronize(void)
{
	sim_model_lock();
	sim_device_wait_all(device_now());
	return locked(CUDA_SUCCESS);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

/* ---- memory ---- */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	sim_model_lock();
	*total_bytes = DEVICE_BYTES;
	*free_bytes = DEVICE_BYTES - sim_memory_used(device_now());
	return locked(CUDA_SUCCESS);
}

static CUresult allocate(void **ret, size_t bytes, enum sim_memory kind)
{
	void *memory;

	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	sim_model_lock();
	if (kind == SIM_MEMORY_DEVICE && bytes > DEVICE_BYTES - sim_memory_used(device_now()))
		return locked(CUDA_ERROR_OUT_OF_MEMORY);
	memory = sim_memory_alloc(bytes, kind, device_now());
	if (memory)
		*ret = memory;
	return locked(memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult allocate_device(CUdeviceptr *ret, size_t bytes, enum sim_memory kind)
{
	void *memory = NULL;
	CUresult r = allocate(&memory, bytes, kind);

	if (r == CUDA_SUCCESS)
		*ret = (CUdeviceptr)memory;
	return r;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
	return allocate_device(ret, bytes, SIM_MEMORY_DEVICE);
}

CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream)
{
	(void)stream;
	return allocate_device(ret, bytes, SIM_MEMORY_DEVICE);
}

CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned int flags)
{
	(void)flags;
	return allocate_device(ret, bytes, SIM_MEMORY_MANAGED);
}

CUresult cuMemAllocHost_v2(void **ret, size_t bytes)
{
	return allocate(ret, bytes, SIM_MEMORY_HOST);
}

CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned int flags)
{
	(void)flags;
	return allocate(ret, bytes, SIM_MEMORY_HOST);
}

/* Freeing waits for the device, as the real call does. */
static CUresult release(void *pointer)
{
	if (!pointer)
		return CUDA_SUCCESS;
	sim_model_lock();
	sim_device_wait_all(device_now());
	return locked(sim_memory_free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	return release((void *)pointer);
}

CUresult cuMemFreeHost(void *pointer)
{
	return release(pointer);
}

static void free_memory(void *pointer)
{
	sim_model_lock();
	(void)sim_memory_free(pointer);
	sim_model_unlock();
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	struct sim_op op = {.kind = SIM_OP_HOST,
			    .host = {.fn = free_memory, .data = (void *)pointer}};
	struct sim_stream *on = lock_stream(stream);

	return locked(sim_stream_put(on, &op));
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	sim_model_lock();
	return locked(sim_memory_register(pointer, bytes, device_now()) ? CUDA_SUCCESS
									: CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuMemHostUnregister(void *pointer)
{
	sim_model_lock();
	return locked(sim_memory_free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *pointer, unsigned int flags)
{
	(void)flags;
	*ret = (CUdeviceptr)pointer;
	return CUDA_SUCCESS;
}

static bool on_device(enum sim_memory kind)
{
	return kind == SIM_MEMORY_DEVICE || kind == SIM_MEMORY_MANAGED;
}

/* What the real calls do with pageable memory: read it before they return, or wait until written. */
static CUresult copy(void *to, const void *from, size_t bytes, CUstream stream, bool wait)
{
	struct sim_op op = {.kind = SIM_OP_COPY, .copy = {.to = to, .from = from, .bytes = bytes}};
	struct sim_stream *on;
	enum sim_memory source, target;
	CUresult r;

	if (bytes == 0)
		return CUDA_SUCCESS;
	if (!to || !from)
		return CUDA_ERROR_INVALID_VALUE;
	on = lock_stream(stream);
	source = sim_memory_find(from, NULL, NULL, NULL);
	target = sim_memory_find(to, NULL, NULL, NULL);
	op.copy.across = !on_device(source) || !on_device(target);
	if (source == SIM_MEMORY_NONE && !wait && !on->capture && on->head) {
		op.copy.staged = malloc(bytes);
		if (!op.copy.staged)
			return locked(CUDA_ERROR_OUT_OF_MEMORY);
		memcpy(op.copy.staged, from, bytes);
	}
	r = sim_stream_put(on, &op);
	if (r != CUDA_SUCCESS)
		free(op.copy.staged);
	else if ((wait || target == SIM_MEMORY_NONE) && !on->capture)
		sim_stream_wait(on);
	return locked(r);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy((void *)to, (const void *)from, bytes, NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy((void *)to, (const void *)from, bytes, stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return copy((void *)to, from, bytes, NULL, true);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	return copy(to, (const void *)from, bytes, NULL, true);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy((void *)to, (const void *)from, bytes, NULL, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return copy((void *)to, from, bytes, stream, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(to, (const void *)from, bytes, stream, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy((void *)to, (const void *)from, bytes, stream, false);
}

static CUresult set(CUdeviceptr to, uint32_t value, unsigned int width, size_t count,
		    CUstream stream)
{
	struct sim_op op = {
		.kind = SIM_OP_SET,
		.set = {.to = (void *)to, .value = value, .width = width, .count = count}};
	struct sim_stream *on = lock_stream(stream);

	return locked(sim_stream_put(on, &op));
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	return set(to, value, 1, count, NULL);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	return set(to, value, 1, count, stream);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
	return set(to, value, 4, count, NULL);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
	return set(to, value, 4, count, stream);
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer)
{
	int device = 0;
	void *start = NULL;
	size_t bytes = 0;
	enum sim_memory kind;

	sim_model_lock();
	kind = sim_memory_find((void *)pointer, &device, &start, &bytes);
	sim_model_unlock();
	if (kind == SIM_MEMORY_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case 1: /* context */
		*(struct sim_context **)value = &contexts[device];
		return CUDA_SUCCESS;
	case 2: /* memory type */
		*(int *)value = kind == SIM_MEMORY_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case 3: /* device pointer */
	case 4: /* host pointer */
		*(CUdeviceptr *)value = pointer;
		return CUDA_SUCCESS;
	case 7: /* buffer id */
	case 11: /* start of the range */
		*(void **)value = start;
		return CUDA_SUCCESS;
	case 8: /* managed */
		*(int *)value = kind == SIM_MEMORY_MANAGED;
		return CUDA_SUCCESS;
	case 9: /* device */
		*(int *)value = device;
		return CUDA_SUCCESS;
	case 12: /* size of the range */
		*(size_t *)value = bytes;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* ---- streams ---- */

CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned int flags, int priority)
{
	struct sim_stream *stream;

	sim_model_lock();
	stream = sim_stream_new(device_now(), flags, priority);
	if (stream)
		*ret = stream;
	return locked(stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuStreamCreate(CUstream *ret, unsigned int flags)
{
	struct sim_stream *stream;

	sim_model_lock();
	stream = sim_stream_new(device_now(), flags, 0);
	if (stream)
		*ret = stream;
	return locked(stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_model_lock();
	sim_stream_drop(stream);
	return locked(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	struct sim_stream *on = lock_stream(stream);
	struct sim_op nothing = {.kind = SIM_OP_NOTHING};
	CUresult r = CUDA_SUCCESS;

	if (on->capture)
		return locked(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	/* The default stream ends after the blocking streams: what is put on it waits for them. */
	if (!stream || stream == CU_STREAM_LEGACY)
		r = sim_stream_put(on, &nothing);
	if (r == CUDA_SUCCESS)
		sim_stream_wait(on);
	return locked(r);
}

CUresult cuStreamQuery(CUstream stream)
{
	struct sim_stream *on = lock_stream(stream);

	return locked(sim_stream_ready(on) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	struct sim_stream *on = lock_stream(stream);

	(void)flags;
	return locked(sim_event_await(event, on));
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	struct sim_stream *on = lock_stream(stream);

	*flags = on->flags;
	return locked(CUDA_SUCCESS);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	struct sim_stream *on = lock_stream(stream);

	*priority = on->priority;
	return locked(CUDA_SUCCESS);
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	struct sim_stream *on = lock_stream(stream);

	*id = on->id;
	return locked(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	struct sim_stream *on = lock_stream(stream);

	*context = &contexts[on->device];
	return locked(CUDA_SUCCESS);
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
	struct sim_stream *on = lock_stream(stream);

	return locked(sim_stream_put(on, &op));
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
	on = lock_stream(stream);
	r = sim_stream_put(on, &op);
	if (r != CUDA_SUCCESS)
		free(callback);
	return locked(r);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	struct sim_stream *on = lock_stream(stream);

	(void)mode;
	if (!stream || stream == CU_STREAM_LEGACY)
		return locked(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return locked(sim_capture_begin(on));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *ret)
{
	struct sim_stream *on = lock_stream(stream);

	return locked(sim_capture_end(on, ret));
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	struct sim_stream *on = lock_stream(stream);

	*status = on->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return locked(CUDA_SUCCESS);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
				   const void **dependencies, size_t *count)
{
	struct sim_stream *on = lock_stream(stream);

	*status = on->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	if (id)
		*id = (uint64_t)(uintptr_t)on->capture;
	if (graph)
		*graph = on->capture;
	if (dependencies)
		*dependencies = NULL;
	if (count)
		*count = 0;
	return locked(CUDA_SUCCESS);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	static __thread int now;
	int before = now;

	now = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

/* ---- events ---- */

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
	return locked(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	struct sim_stream *on = lock_stream(stream);

	return locked(event ? sim_event_record(event, on) : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	struct sim_stream *on = lock_stream(stream);

	(void)flags;
	return locked(event ? sim_event_record(event, on) : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuEventQuery(CUevent event)
{
	sim_model_lock();
	return locked(sim_event_ready(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent event)
{
	sim_model_lock();
	sim_event_wait(event);
	return locked(CUDA_SUCCESS);
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
	return locked(r);
}

/* ---- kernels ---- */

static CUresult launch(CUfunction function, CUstream stream, void **params)
{
	struct sim_op op = {.kind = SIM_OP_KERNEL, .kernel_ns = 2000};
	struct sim_stream *on;

	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (function->magic != SIM_FUNCTION_MAGIC)
		function = (CUfunction)(uintptr_t)&short_function;
	if (function->kind == SIM_FUNCTION_TIMED && params) {
		op.kernel_ns = *(const uint64_t *)params[0];
	} else if (function->kind == SIM_FUNCTION_MODEL && params) {
		op.kind = SIM_OP_MODEL;
		op.model.model = function->model;
		op.model.state = params[0];
	}
	on = lock_stream(stream);
	return locked(sim_stream_put(on, &op));
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared_bytes, CUstream stream,
			void **params, void **extra)
{
	(void)extra;
	(void)shared_bytes;
	if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(function, stream, params);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
			  void **extra)
{
	(void)extra;
	return launch(function, config->stream, params);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
				   void **params)
{
	(void)shared_bytes;
	if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(function, stream, params);
}

/* A module holds any function that is asked for: it does nothing. */
CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
	(void)image;
	*ret = (CUmodule)(uintptr_t)&short_function;
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
	(void)module;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
	(void)name;
	*ret = (CUfunction)(void *)module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
	(void)function;
	*value = attribute == 0 ? 1024 : 0;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
	(void)function;
	(void)attribute;
	(void)value;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
						     int block_size, size_t shared_bytes)
{
	(void)function;
	(void)shared_bytes;
	*blocks = block_size > 0 ? 2048 / block_size : 0;
	return CUDA_SUCCESS;
}

/* ---- graphs ---- */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, unsigned long long flags)
{
	(void)flags;
	sim_model_lock();
	return locked(sim_graph_instantiate(graph, ret));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	struct sim_stream *on = lock_stream(stream);

	return locked(sim_graph_launch(exec, on));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	sim_model_lock();
	sim_graph_exec_free(exec);
	return locked(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph)
{
	sim_model_lock();
	sim_graph_free(graph);
	return locked(CUDA_SUCCESS);
}

CUresult cuGraphGetNodes(CUgraph graph, void **nodes, size_t *count)
{
	sim_model_lock();
	if (!nodes)
		*count = sim_graph_nodes(graph);
	return locked(CUDA_SUCCESS);
}

/* ---- errors and entry points ---- */

CUresult cuGetErrorName(CUresult error, const char **name)
{
	*name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR";
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	*text = error == CUDA_SUCCESS ? "no error" : "error of the stand-in device";
	return CUDA_SUCCESS;
}

/* Answers with the exported function, in its newest version, as the real driver does. */
CUresult cuGetProcAddress_v2(const char *symbol, void **ret, int version, uint64_t flags,
			     int *status)
{
	static const char *const suffix[] = {"_v2", "", "_v3"};
	char name[128];
	Dl_info self;
	void *library, *found = NULL;

	(void)version;
	(void)flags;
	if (!dladdr((const void *)(uintptr_t)cuInit, &self))
		return CUDA_ERROR_NOT_FOUND;
	library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	for (size_t i = 0; library && !found && i < sizeof(suffix) / sizeof(*suffix); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", symbol, suffix[i]);
		found = dlsym(library, name);
	}
	if (library)
		(void)dlclose(library);
	if (status)
		*status = found ? 0 : 1;
	*ret = found;
	return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)table;
	(void)id;
	return CUDA_ERROR_NOT_FOUND;
}

/* ---- for libnccl ---- */

void cuSimLock(void)
{
	sim_model_lock();
}

void cuSimUnlock(void)
{
	sim_model_unlock();
}

void cuSimProgress(void)
{
	sim_model_progress();
}

uint64_t cuSimNow(void)
{
	return sim_model_now();
}
