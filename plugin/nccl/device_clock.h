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

enum nt_device_clock_result {
	NT_DEVICE_CLOCK_GOOD,
	NT_DEVICE_CLOCK_LATE, /* reported a second later than it was: the host stood still, or it is wrong */
	NT_DEVICE_CLOCK_OTHER, /* the two do not run at the same rate */
};

struct nt_device_clock {
	int is_known;
	uint64_t ahead; /* of boot time, before the device's; modulo 2^64 */
	uint64_t boot, device; /* since when their rates are compared */
	uint32_t apart; /* comparisons in a row that differed */
};

/* A zeroed one is ready for use. Begins anew. */
void nt_device_clock_reset(struct nt_device_clock *clock);
/* The device's time `device` was reported at `boot`. */
enum nt_device_clock_result nt_device_clock_seen(struct nt_device_clock *clock, uint64_t device,
						 uint64_t boot);
/* The same in boot time; only after the first one was seen. */
uint64_t nt_device_clock_boot(const struct nt_device_clock *clock, uint64_t device);

#endif
