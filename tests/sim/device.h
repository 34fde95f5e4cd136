/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One stream of the stand-in device, and kernels on it that take as long as they are told. */
#ifndef NT_SIM_DEVICE_H
#define NT_SIM_DEVICE_H

#include <stdint.h>

struct sim_device {
	struct sim_stream *stream; /* a cudaStream_t */
};

/* 0 or -ENODEV. */
int sim_device_open(struct sim_device *device);
void sim_device_close(struct sim_device *device);
void sim_device_kernel(struct sim_device *device, uint64_t ns);
void sim_device_wait(struct sim_device *device);

#endif
