/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/device.h"

#include "tests/sim/job.h"

int sim_device_open(struct sim_device *device)
{
	device->owed_ns = 0;
	return 0;
}

void sim_device_close(struct sim_device *device)
{
	device->owed_ns = 0;
}

void sim_device_kernel(struct sim_device *device, uint64_t ns)
{
	device->owed_ns += ns;
}

void sim_device_wait(struct sim_device *device)
{
	sim_sleep_ns(device->owed_ns);
	device->owed_ns = 0;
}
