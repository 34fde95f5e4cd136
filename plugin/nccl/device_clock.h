/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a GPU (%globaltimer) as boot time. Both count nanoseconds. A time of the device is
 * reported later than it was, so their distance is the least one that was seen; it is found anew
 * for each measurement, as one of them is adjusted.
 *
 * Not safe for several threads at a time. All times in nanoseconds.
 */
#ifndef NT_PLUGIN_NCCL_DEVICE_CLOCK_H
#define NT_PLUGIN_NCCL_DEVICE_CLOCK_H

#include <stdint.h>

struct nt_device_clock {
	int is_known;
	int64_t ahead; /* of boot time, before the device's */
	uint64_t first_boot, first_device; /* where their rates are compared from */
};

/* A zeroed one is ready for use. Begins anew. */
void nt_device_clock_reset(struct nt_device_clock *clock);
/* The device's time `device` was reported at `boot`. 0: the two do not run at the same rate. */
int nt_device_clock_seen(struct nt_device_clock *clock, uint64_t device, uint64_t boot);
/* The same in boot time; only after the first one was seen. */
uint64_t nt_device_clock_boot(const struct nt_device_clock *clock, uint64_t device);

#endif
