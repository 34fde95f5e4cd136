/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/device_clock.h"

#define RATE_NS 1000000000 /* over which rates are compared, at least */
#define LATE_NS 1000000000

enum {
	RATE_PART = 5, /* rates differ by more than one in so many: it is another unit */
	/* A host that stands still makes two in a row: times before it are late, later ones are not. */
	RATES_APART = 4,
};

void nt_device_clock_reset(struct nt_device_clock *clock)
{
	*clock = (struct nt_device_clock){0};
}

static void compare_rates(struct nt_device_clock *clock, uint64_t device, uint64_t boot)
{
	const uint64_t boot_ns = boot - clock->boot, device_ns = device - clock->device;
	const uint64_t apart_ns = boot_ns > device_ns ? boot_ns - device_ns : device_ns - boot_ns;

	if (boot_ns < RATE_NS)
		return;
	clock->apart = apart_ns > boot_ns / RATE_PART ? clock->apart + 1 : 0;
	clock->boot = boot;
	clock->device = device;
}

enum nt_device_clock_result nt_device_clock_seen(struct nt_device_clock *clock, uint64_t device,
						 uint64_t boot)
{
	const uint64_t ahead = boot - device;
	int64_t later_ns;

	if (!clock->is_known)
		*clock = (struct nt_device_clock){1, ahead, boot, device, 0};
	compare_rates(clock, device, boot);
	if (clock->apart >= RATES_APART)
		return NT_DEVICE_CLOCK_OTHER;
	later_ns =
		(int64_t)(ahead - clock->ahead); /* modulo 2^64: a wrong time may be any number */
	if (later_ns < 0)
		clock->ahead = ahead;
	return later_ns < LATE_NS ? NT_DEVICE_CLOCK_GOOD : NT_DEVICE_CLOCK_LATE;
}

uint64_t nt_device_clock_boot(const struct nt_device_clock *clock, uint64_t device)
{
	return device + clock->ahead;
}
