/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The runtime's calls. As in the real library each ends in an exported call of libcuda, which is
 * opened at the first use; without it every call fails with cudaErrorInsufficientDriver.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/lib/cuda.h"
#include "tests/sim/lib/standin.h"

#define DRIVER(X)                                                                                  \
	X(cuInit)                                                                                  \
	X(cuGetProcAddress_v2)                                                                     \
	X(cuDriverGetVersion)                                                                      \
	X(cuDeviceGetCount)                                                                        \
	X(cuDeviceGetAttribute)                                                                    \
	X(cuDeviceGetName)                                                                         \
	X(cuDeviceGetUuid_v2)                                                                      \
	X(cuDeviceGetPCIBusId)                                                                     \
	X(cuDeviceTotalMem_v2)                                                                     \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuCtxGetCurrent)                                                                         \
	X(cuCtxSetCurrent)                                                                         \
	X(cuCtxGetDevice)                                                                          \
	X(cuCtxSynchronize)                                                                        \
	X(cuCtxGetStreamPriorityRange)                                                             \
	X(cuMemGetInfo_v2)                                                                         \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMemFree_v2)                                                                            \
	X(cuMemAllocAsync)                                                                         \
	X(cuMemFreeAsync)                                                                          \
	X(cuMemAllocManaged)                                                                       \
	X(cuMemHostAlloc)                                                                          \
	X(cuMemFreeHost)                                                                           \
	X(cuMemHostRegister_v2)                                                                    \
	X(cuMemHostUnregister)                                                                     \
	X(cuMemHostGetDevicePointer_v2)                                                            \
	X(cuMemcpy)                                                                                \
	X(cuMemcpyAsync)                                                                           \
	X(cuMemcpyHtoD_v2)                                                                         \
	X(cuMemcpyDtoH_v2)                                                                         \
	X(cuMemcpyDtoD_v2)                                                                         \
	X(cuMemcpyHtoDAsync_v2)                                                                    \
	X(cuMemcpyDtoHAsync_v2)                                                                    \
	X(cuMemcpyDtoDAsync_v2)                                                                    \
	X(cuMemsetD8_v2)                                                                           \
	X(cuMemsetD8Async)                                                                         \
	X(cuPointerGetAttribute)                                                                   \
	X(cuStreamCreateWithPriority)                                                              \
	X(cuStreamDestroy_v2)                                                                      \
	X(cuStreamSynchronize)                                                                     \
	X(cuStreamQuery)                                                                           \
	X(cuStreamWaitEvent)                                                                       \
	X(cuStreamGetFlags)                                                                        \
	X(cuStreamGetPriority)                                                                     \
	X(cuStreamAddCallback)                                                                     \
	X(cuStreamBeginCapture_v2)                                                                 \
	X(cuStreamEndCapture)                                                                      \
	X(cuStreamIsCapturing)                                                                     \
	X(cuStreamGetCaptureInfo_v2)                                                               \
	X(cuThreadExchangeStreamCaptureMode)                                                       \
	X(cuEventCreate)                                                                           \
	X(cuEventDestroy_v2)                                                                       \
	X(cuEventRecord)                                                                           \
	X(cuEventRecordWithFlags)                                                                  \
	X(cuEventQuery)                                                                            \
	X(cuEventSynchronize)                                                                      \
	X(cuEventElapsedTime_v2)                                                                   \
	X(cuLaunchKernel)                                                                          \
	X(cuLaunchKernelEx)                                                                        \
	X(cuLaunchCooperativeKernel)                                                               \
	X(cuLaunchHostFunc)                                                                        \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                             \
	X(cuGraphInstantiateWithFlags)                                                             \
	X(cuGraphLaunch)                                                                           \
	X(cuGraphExecDestroy)                                                                      \
	X(cuGraphDestroy)                                                                          \
	X(cuGraphGetNodes)

#define MEMBER(name) __typeof__(name) *name;
static struct {
	DRIVER(MEMBER)
} driver;

static const char *const names[] = {
#define NAME(name) #name,
	DRIVER(NAME)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t loaded = cudaErrorInsufficientDriver;
static __thread cudaError_t last;
static __thread int device;

static void load(void)
{
	CUresult (*get)(const char *, void **, int, uint64_t, int *);
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void **slot = (void **)&driver;

	if (!library)
		return;
	*(void **)&get = dlsym(library, "cuGetProcAddress_v2");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char name[128];
		size_t len = strlen(names[i]);

		/* The real runtime asks for the plain name and gets the newest version. */
		(void)snprintf(name, sizeof(name), "%s", names[i]);
		if (len > 3 && name[len - 3] == '_' && name[len - 2] == 'v')
			name[len - 3] = '\0';
		if (!get || get(name, &slot[i], 13000, 0, NULL) != CUDA_SUCCESS)
			return;
	}
	loaded = driver.cuInit(0);
}

/* Every call begins here. The thread gets the context of its device at its first call. */
static cudaError_t enter(void)
{
	CUcontext context;
	cudaError_t r;

	(void)pthread_once(&once, load);
	if (loaded != cudaSuccess)
		return last = loaded;
	if (driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
		return cudaSuccess;
	r = driver.cuDevicePrimaryCtxRetain(&context, device);
	if (r == CUDA_SUCCESS)
		r = driver.cuCtxSetCurrent(context);
	return r == CUDA_SUCCESS ? cudaSuccess : (last = r);
}

static cudaError_t leave(CUresult r)
{
	/* "Not ready" is an answer, which the real runtime keeps as the last error all the same. */
	if (r != CUDA_SUCCESS)
		last = r;
	return r;
}

#define CALL(function, ...)                                                                        \
	({                                                                                         \
		cudaError_t entered_ = enter();                                                    \
		entered_ == cudaSuccess ? leave(driver.function(__VA_ARGS__)) : entered_;          \
	})

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
	return CALL(cuDeviceGetCount, count);
}

cudaError_t cudaSetDevice(int to)
{
	CUcontext context;
	cudaError_t r = enter();

	if (r == cudaSuccess)
		r = leave(driver.cuDevicePrimaryCtxRetain(&context, to));
	if (r == cudaSuccess)
		r = leave(driver.cuCtxSetCurrent(context));
	if (r == cudaSuccess)
		device = to;
	return r;
}

cudaError_t cudaGetDevice(int *ret)
{
	cudaError_t r = enter();

	if (r == cudaSuccess)
		*ret = device;
	return r;
}

cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int of)
{
	return CALL(cuDeviceGetAttribute, value, attribute, of);
}

cudaError_t cudaDeviceSynchronize(void)
{
	return CALL(cuCtxSynchronize);
}

cudaError_t cudaDeviceReset(void)
{
	return CALL(cuCtxSynchronize);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	return CALL(cuCtxGetStreamPriorityRange, least, greatest);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int from, int peer)
{
	*can = from != peer;
	return enter();
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	(void)peer;
	(void)flags;
	return enter();
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int of)
{
	return CALL(cuDeviceGetPCIBusId, id, len, of);
}

cudaError_t cudaDriverGetVersion(int *version)
{
	return CALL(cuDriverGetVersion, version);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = SIM_CUDART_VERSION;
	return cudaSuccess;
}

/* What the driver lacks is no error, but said in the status: as the real call has it. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **ret, unsigned int version,
					     unsigned long long flags, int *status)
{
	cudaError_t r = enter();

	if (r != cudaSuccess)
		return r;
	if (driver.cuGetProcAddress_v2(symbol, ret, (int)version, flags, status) != CUDA_SUCCESS)
		*ret = NULL;
	return cudaSuccess;
}

cudaError_t cudaProfilerStart(void)
{
	return enter();
}

cudaError_t cudaProfilerStop(void)
{
	return enter();
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t r = last;

	last = cudaSuccess;
	return r;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last;
}

const char *cudaGetErrorName(cudaError_t error)
{
	return error == cudaSuccess ? "cudaSuccess" : "cudaError";
}

const char *cudaGetErrorString(cudaError_t error)
{
	switch (error) {
	case cudaSuccess:
		return "no error";
	case cudaErrorInsufficientDriver:
		return "CUDA driver version is insufficient for CUDA runtime version";
	case cudaErrorMemoryAllocation:
		return "out of memory";
	case cudaErrorNotReady:
		return "device not ready";
	default:
		return "error of the stand-in device";
	}
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
	if (bytes == 0) {
		*ret = NULL;
		return enter();
	}
	return CALL(cuMemAlloc_v2, (CUdeviceptr *)ret, bytes);
}

cudaError_t cudaFree(void *pointer)
{
	return CALL(cuMemFree_v2, (CUdeviceptr)pointer);
}

cudaError_t cudaMallocAsync(void **ret, size_t bytes, cudaStream_t stream)
{
	return CALL(cuMemAllocAsync, (CUdeviceptr *)ret, bytes, stream);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	return CALL(cuMemFreeAsync, (CUdeviceptr)pointer, stream);
}

cudaError_t cudaMallocManaged(void **ret, size_t bytes, unsigned int flags)
{
	return CALL(cuMemAllocManaged, (CUdeviceptr *)ret, bytes, flags);
}

cudaError_t cudaMallocHost(void **ret, size_t bytes)
{
	return CALL(cuMemHostAlloc, ret, bytes, 0);
}

cudaError_t cudaHostAlloc(void **ret, size_t bytes, unsigned int flags)
{
	return CALL(cuMemHostAlloc, ret, bytes, flags);
}

cudaError_t cudaFreeHost(void *pointer)
{
	return CALL(cuMemFreeHost, pointer);
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
	return CALL(cuMemHostRegister_v2, pointer, bytes, flags);
}

cudaError_t cudaHostUnregister(void *pointer)
{
	return CALL(cuMemHostUnregister, pointer);
}

cudaError_t cudaHostGetDevicePointer(void **ret, void *pointer, unsigned int flags)
{
	return CALL(cuMemHostGetDevicePointer_v2, (CUdeviceptr *)ret, pointer, flags);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	return CALL(cuMemGetInfo_v2, free_bytes, total_bytes);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return CALL(cuMemcpyHtoD_v2, (CUdeviceptr)to, from, bytes);
	case cudaMemcpyDeviceToHost:
		return CALL(cuMemcpyDtoH_v2, to, (CUdeviceptr)from, bytes);
	case cudaMemcpyDeviceToDevice:
		return CALL(cuMemcpyDtoD_v2, (CUdeviceptr)to, (CUdeviceptr)from, bytes);
	default:
		return CALL(cuMemcpy, (CUdeviceptr)to, (CUdeviceptr)from, bytes);
	}
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return CALL(cuMemcpyHtoDAsync_v2, (CUdeviceptr)to, from, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return CALL(cuMemcpyDtoHAsync_v2, to, (CUdeviceptr)from, bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return CALL(cuMemcpyDtoDAsync_v2, (CUdeviceptr)to, (CUdeviceptr)from, bytes,
			    stream);
	default:
		return CALL(cuMemcpyAsync, (CUdeviceptr)to, (CUdeviceptr)from, bytes, stream);
	}
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
				size_t bytes, cudaStream_t stream)
{
	(void)to_device;
	(void)from_device;
	return CALL(cuMemcpyDtoDAsync_v2, (CUdeviceptr)to, (CUdeviceptr)from, bytes, stream);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
	return CALL(cuMemsetD8_v2, (CUdeviceptr)to, (unsigned char)value, bytes);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	return CALL(cuMemsetD8Async, (CUdeviceptr)to, (unsigned char)value, bytes, stream);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
	CUdeviceptr address = (CUdeviceptr)pointer;
	int kind = 0, managed = 0, on = 0;
	cudaError_t r = enter();

	if (r != cudaSuccess)
		return r;
	*attributes = (struct cudaPointerAttributes){.host_pointer = (void *)address};
	if (driver.cuPointerGetAttribute(&kind, 2, address) != CUDA_SUCCESS)
		return cudaSuccess; /* type 0: unregistered */
	(void)driver.cuPointerGetAttribute(&managed, 8, address);
	(void)driver.cuPointerGetAttribute(&on, 9, address);
	attributes->type = managed ? 3 : kind;
	attributes->device = on;
	attributes->device_pointer = (void *)address;
	if (kind == CU_MEMORYTYPE_DEVICE && !managed)
		attributes->host_pointer = NULL;
	return cudaSuccess;
}

/* ---- streams and events ---- */

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
	return CALL(cuStreamSynchronize, stream);
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
	return CALL(cuEventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return CALL(cuEventElapsedTime_v2, ms, start, end);
}

/* ---- kernels ---- */

/* A function of ours is its own handle; anything else, even a host stub, the driver finds out. */
static CUfunction handle_of(const void *function)
{
	return (CUfunction)(uintptr_t)function;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
			     size_t shared_bytes, cudaStream_t stream)
{
	if (!function)
		return last = cudaErrorInvalidDeviceFunction;
	return CALL(cuLaunchKernel, handle_of(function), grid.x, grid.y, grid.z, block.x, block.y,
		    block.z, (unsigned int)shared_bytes, stream, args, NULL);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args)
{
	CUlaunchConfig driver_config = {.grid_x = config->grid.x,
					.grid_y = config->grid.y,
					.grid_z = config->grid.z,
					.block_x = config->block.x,
					.block_y = config->block.y,
					.block_z = config->block.z,
					.shared_bytes = (unsigned int)config->shared_bytes,
					.stream = config->stream};

	if (!function)
		return last = cudaErrorInvalidDeviceFunction;
	return CALL(cuLaunchKernelEx, &driver_config, handle_of(function), args, NULL);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args,
					size_t shared_bytes, cudaStream_t stream)
{
	if (!function)
		return last = cudaErrorInvalidDeviceFunction;
	return CALL(cuLaunchCooperativeKernel, handle_of(function), grid.x, grid.y, grid.z, block.x,
		    block.y, block.z, (unsigned int)shared_bytes, stream, args);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, CUhostFn fn, void *data)
{
	return CALL(cuLaunchHostFunc, stream, fn, data);
}

cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value)
{
	(void)function;
	(void)attribute;
	(void)value;
	return enter();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
							  int block_size, size_t shared_bytes)
{
	return CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, handle_of(function),
		    block_size, shared_bytes);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, const void *function, int block_size, size_t shared_bytes, unsigned int flags)
{
	(void)flags;
	return CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, handle_of(function),
		    block_size, shared_bytes);
}

/* ---- graphs ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t graph, unsigned long long flags)
{
	return CALL(cuGraphInstantiateWithFlags, ret, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ret, cudaGraph_t graph,
					  unsigned long long flags)
{
	return CALL(cuGraphInstantiateWithFlags, ret, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return CALL(cuGraphLaunch, exec, stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	return CALL(cuGraphExecDestroy, exec);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return CALL(cuGraphDestroy, graph);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void **nodes, size_t *count)
{
	return CALL(cuGraphGetNodes, graph, nodes, count);
}
