/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The frequency of the node's processors, and the time for which they are throttled, from sysfs. A
 * machine may state neither, as virtual ones do. Times of throttling are those of Intel processors.
 */
#ifndef NT_AGENT_NODE_PROCESSOR_CLOCK_H
#define NT_AGENT_NODE_PROCESSOR_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/node/counter_sum.h"

enum {
	NT_PROCESSOR_CLOCK_SAMPLES = 16, /* processors whose frequency is read */
	NT_PROCESSOR_CLOCK_PACKAGES = 16, /* further ones are counted and left out */
	NT_PROCESSOR_CLOCK_PROCESSORS = 8192, /* as many as the kernel supports */
};

/* Zero-initialised; needs no release. */
struct nt_processor_clock {
	bool is_listed; /* the processors below are chosen: once, as they hardly change */
	uint32_t sample[NT_PROCESSOR_CLOCK_SAMPLES]; /* spread over all */
	size_t samples;
	/* One processor of each package. */
	uint32_t package_processor[NT_PROCESSOR_CLOCK_PACKAGES];
	uint64_t package[NT_PROCESSOR_CLOCK_PACKAGES]; /* its number */
	size_t packages;
	uint64_t packages_over_cap;
	struct nt_counter_sum throttled; /* value 0: milliseconds */
	/* Of the last reading. */
	bool has_frequency, has_throttled;
	double frequency_hertz; /* mean of those that could be read */
};

/* `sys` is "/sys/devices/system/cpu", except in tests. */
void nt_processor_clock_read(const char *sys, struct nt_processor_clock *clock);

#endif
