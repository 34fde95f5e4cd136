/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the parts of the driver share. Each call takes the device's lock once, and leaves the work
 * to model.h.
 */
#ifndef NT_SIM_DRIVER_H
#define NT_SIM_DRIVER_H

#include "tests/sim/lib/model.h"

struct sim_context {
	int device;
};

/* The memory of a device: 80 GiB, or SIM_GPU_MEMORY bytes of the environment. */
size_t sim_driver_bytes(void);

/* That of the calling thread's context. */
int sim_driver_device(void);
/* The primary context of a device. */
struct sim_context *sim_driver_context(int device);

/* Takes the lock; the stream of a handle on the calling thread's device. */
struct sim_stream *sim_driver_enter(CUstream handle);
/* Releases the lock and hands on the result. */
CUresult sim_driver_leave(CUresult r);

#endif
