/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's calls on devices and contexts, and the ways to find the others. */
#include "tests/sim/lib/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/lib/activity.h"
#include "tests/sim/lib/injection.h"

static struct sim_context contexts[SIM_DEVICES];
static __thread struct sim_context *current;
static bool has_context;

int sim_driver_device(void)
{
	return current ? current->device : 0;
}

struct sim_context *sim_driver_context(int device)
{
	return &contexts[device];
}

struct sim_stream *sim_driver_enter(CUstream handle)
{
	sim_model_lock();
	return sim_stream_of(handle, sim_driver_device());
}

CUresult sim_driver_leave(CUresult r)
{
	sim_model_unlock();
	return r;
}

CUresult cuInit(unsigned int flags)
{
	for (int i = 0; i < SIM_DEVICES; i++)
		contexts[i].device = i;
	if (!flags)
		sim_injection_load();
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

size_t sim_driver_bytes(void)
{
	const char *text = getenv("SIM_GPU_MEMORY");
	size_t bytes = 0;

	for (; text && *text >= '0' && *text <= '9'; text++)
		bytes = 10 * bytes + (size_t)(*text - '0');
	return bytes ? bytes : (size_t)80 << 30;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	(void)device;
	*bytes = sim_driver_bytes();
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
	return sim_driver_leave(CUDA_SUCCESS);
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
	*device = sim_driver_device();
	return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSynchronize(void)
{
	struct sim_api api;

	sim_api_begin(&api, SIM_DRIVER_CTX_SYNCHRONIZE);
	sim_model_lock();
	sim_device_wait_all(sim_driver_device());
	return sim_api_end(&api, sim_driver_leave(CUDA_SUCCESS));
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
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
