/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/device_clock.h"

#define RATE_NS     1000000000 /* between the two times from which a rate is taken */
#define RATE_PART   20 /* a difference of more than one in so many is of another unit */
#define REPORTED_NS 1000000000 /* a report that is later is of something else */

void nt_device_clock_reset(struct nt_device_clock *clock)
{
	*clock = (struct nt_device_clock){0};
}

/* Reports are late by up to REPORTED_NS, so that short times show nothing. */
static int has_rate(const struct nt_device_clock *clock, uint64_t device, uint64_t boot)
{
	const uint64_t boot_ns = boot - clock->first_boot;
	const uint64_t device_ns = device - clock->first_device;
	const uint64_t apart_ns = boot_ns > device_ns ? boot_ns - device_ns : device_ns - boot_ns;

	return boot_ns < RATE_NS || apart_ns < boot_ns / RATE_PART + REPORTED_NS;
}

int nt_device_clock_seen(struct nt_device_clock *clock, uint64_t device, uint64_t boot)
{
	const int64_t ahead = (int64_t)(boot - device);

	if (!clock->is_known) {
		*clock = (struct nt_device_clock){1, ahead, boot, device};
		return 1;
	}
	if (device > clock->first_device && !has_rate(clock, device, boot))
		return 0;
	if (ahead < clock->ahead)
		clock->ahead = ahead;
	return ahead - clock->ahead < REPORTED_NS;
}

uint64_t nt_device_clock_boot(const struct nt_device_clock *clock, uint64_t device)
{
	return device + (uint64_t)clock->ahead;
}
