/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What libnccl calls of libcuda. As the real library does, it opens it by itself. */
#ifndef NT_SIM_NCCL_CUDA_H
#define NT_SIM_NCCL_CUDA_H

#include <stdbool.h>

#include "tests/sim/lib/cuda.h"
#include "tests/sim/lib/standin.h"

struct sim_cuda {
	__typeof__(cuLaunchKernelEx) *launch;
	__typeof__(cuLaunchHostFunc) *launch_host;
	__typeof__(cuStreamIsCapturing) *is_capturing;
	__typeof__(cuCtxGetDevice) *get_device;
	__typeof__(cuPointerGetAttribute) *attribute;
	__typeof__(cuMemAlloc_v2) *alloc;
	__typeof__(cuMemFree_v2) *free;
	__typeof__(cuSimWatch) *watch;
	__typeof__(cuSimUnwatch) *unwatch;
	__typeof__(cuSimProgress) *progress;
	__typeof__(cuSimLock) *lock;
	__typeof__(cuSimUnlock) *unlock;
	__typeof__(cuSimNow) *now;
};

extern struct sim_cuda sim_cuda;

/* Opens libcuda, once. False if it, or a function of it, is not there. */
bool sim_cuda_load(void);
/* The device of the calling thread. */
int sim_cuda_device(void);

#endif
