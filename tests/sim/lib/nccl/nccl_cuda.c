/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/nccl_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct sim_cuda sim_cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_cuda;

static void load(void)
{
	static const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{"cuLaunchKernelEx", &sim_cuda.launch},
		{"cuLaunchHostFunc", &sim_cuda.launch_host},
		{"cuStreamIsCapturing", &sim_cuda.is_capturing},
		{"cuCtxGetDevice", &sim_cuda.get_device},
		{"cuPointerGetAttribute", &sim_cuda.attribute},
		{"cuMemAlloc_v2", &sim_cuda.alloc},
		{"cuMemFree_v2", &sim_cuda.free},
		{"cuSimWatch", &sim_cuda.watch},
		{"cuSimUnwatch", &sim_cuda.unwatch},
		{"cuSimProgress", &sim_cuda.progress},
		{"cuSimLock", &sim_cuda.lock},
		{"cuSimUnlock", &sim_cuda.unlock},
		{"cuSimNow", &sim_cuda.now},
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	has_cuda = library != NULL;
	for (size_t i = 0; has_cuda && i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *found = dlsym(library, wanted[i].name);

		memcpy(wanted[i].slot, &found, sizeof(found));
		has_cuda = found != NULL;
	}
}

bool sim_cuda_load(void)
{
	(void)pthread_once(&once, load);
	return has_cuda;
}

int sim_cuda_device(void)
{
	CUdevice device = 0;

	return sim_cuda.get_device(&device) == CUDA_SUCCESS ? device : 0;
}
