/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The runtime's calls. As in the real library each ends in an exported call of libcuda, which is
 * opened at the first use; without it every call fails with cudaErrorInsufficientDriver.
 */
#include "tests/sim/lib/runtime/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct sim_driver sim_driver;

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
	void **slot = (void **)&sim_driver;

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
	loaded = sim_driver.cuInit(0);
}

cudaError_t sim_enter(void)
{
	CUcontext context;
	cudaError_t r;

	(void)pthread_once(&once, load);
	if (loaded != cudaSuccess)
		return last = loaded;
	if (sim_driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
		return cudaSuccess;
	r = sim_driver.cuDevicePrimaryCtxRetain(&context, device);
	if (r == CUDA_SUCCESS)
		r = sim_driver.cuCtxSetCurrent(context);
	return r == CUDA_SUCCESS ? cudaSuccess : (last = r);
}

cudaError_t sim_leave(CUresult r)
{
	/* "Not ready" is an answer, which the real runtime keeps as the last error all the same. */
	if (r != CUDA_SUCCESS)
		last = r;
	return r;
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
	return CALL(cuDeviceGetCount, count);
}

cudaError_t cudaSetDevice(int to)
{
	CUcontext context;
	cudaError_t r = sim_enter();

	if (r == cudaSuccess)
		r = sim_leave(sim_driver.cuDevicePrimaryCtxRetain(&context, to));
	if (r == cudaSuccess)
		r = sim_leave(sim_driver.cuCtxSetCurrent(context));
	if (r == cudaSuccess)
		device = to;
	return r;
}

cudaError_t cudaGetDevice(int *ret)
{
	cudaError_t r = sim_enter();

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
	return CALL_AS(SIM_RUNTIME_DEVICE_SYNCHRONIZE, cuCtxSynchronize);
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
	return sim_enter();
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	(void)peer;
	(void)flags;
	return sim_enter();
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
	cudaError_t r = sim_enter();

	if (r != cudaSuccess)
		return r;
	if (sim_driver.cuGetProcAddress_v2(symbol, ret, (int)version, flags, status) !=
	    CUDA_SUCCESS)
		*ret = NULL;
	return cudaSuccess;
}

cudaError_t cudaProfilerStart(void)
{
	return sim_enter();
}

cudaError_t cudaProfilerStop(void)
{
	return sim_enter();
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
