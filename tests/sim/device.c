/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/device.h"

#include <errno.h>
#include <stddef.h>

#include "tests/sim/lib/cuda.h"
#include "tests/sim/lib/standin.h"

static const struct sim_function timed = {.magic = SIM_FUNCTION_MAGIC, .kind = SIM_FUNCTION_TIMED};

int sim_device_open(struct sim_device *device)
{
	cudaStream_t stream = NULL;

	if (cudaSetDevice(0) != cudaSuccess ||
	    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
		return -ENODEV;
	device->stream = stream;
	return 0;
}

void sim_device_close(struct sim_device *device)
{
	if (device->stream)
		(void)cudaStreamDestroy(device->stream);
	device->stream = NULL;
}

void sim_device_kernel(struct sim_device *device, uint64_t ns)
{
	void *args[] = {&ns};
	dim3 grid = {132, 1, 1}, block = {256, 1, 1};

	(void)cudaLaunchKernel(&timed, grid, block, args, 0, device->stream);
}

void sim_device_wait(struct sim_device *device)
{
	(void)cudaStreamSynchronize(device->stream);
}
