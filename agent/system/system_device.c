/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The block devices for which a process waited. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/system/system_impl.h"

/* As the kernel calls it, such as sda; else its numbers. */
static void name_device(uint32_t device, char *name)
{
	char path[64], target[PATH_MAX];
	ssize_t len;

	(void)snprintf(name, NT_SYSTEM_DEVICE_NAME, "%u:%u", device >> 20, device & 0xfffff);
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", device >> 20, device & 0xfffff);
	len = readlink(path, target, sizeof(target) - 1);
	if (len <= 0)
		return;
	target[len] = '\0';
	(void)snprintf(name, NT_SYSTEM_DEVICE_NAME, "%.31s", basename(target));
}

void nt_system_devices_read(const struct nt_host_process *process, struct nt_system_total *total)
{
	const struct nt_host_device *most = NULL;

	for (int i = 0; i < NT_HOST_DEVICES; i++) {
		const struct nt_host_device *device = &process->device[i];

		total->requests += device->requests;
		total->request_ns += device->ns;
		if (device->device && (!most || device->ns > most->ns))
			most = device;
	}
	if (!most)
		return;
	total->device_requests = most->requests;
	total->device_ns = most->ns;
	name_device(most->device, total->device);
}
