/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The counters of several devices, summed so that only what is counted moves the sum.
 *
 * The sum begins with the values of the first reading, so that it usually goes on where an earlier run
 * of the agent stopped. From then on the growth of each device is added. A device that comes later
 * brings none of its past, one that goes takes nothing away, and one that was reset adds nothing once.
 */
#ifndef NT_AGENT_NODE_COUNTER_SUM_H
#define NT_AGENT_NODE_COUNTER_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_COUNTER_SUM_DEVICES = 64, /* further ones are counted and left out */
	NT_COUNTER_SUM_VALUES = 5, /* counters of a device */
	NT_COUNTER_SUM_NAME = 72, /* bytes with the NUL; longer names are cut */
};

struct nt_counter_sum_device {
	char name[NT_COUNTER_SUM_NAME];
	uint64_t value[NT_COUNTER_SUM_VALUES];
	bool is_present; /* in this reading */
};

/* Zero-initialised; needs no release. */
struct nt_counter_sum {
	struct nt_counter_sum_device device[NT_COUNTER_SUM_DEVICES];
	size_t devices;
	uint64_t total[NT_COUNTER_SUM_VALUES];
	uint32_t wraps; /* bits of the counters that wrap at 32 bits; set by the user */
	bool has_begun; /* a reading is complete */
	uint64_t over_cap; /* so far */
};

/*
 * A reading: begin, an add for each device, end. Names differ within a reading. ret_growth may be
 * NULL. False: the growth is not known, as the device is new or over the cap.
 */
void nt_counter_sum_begin(struct nt_counter_sum *sum);
bool nt_counter_sum_add(struct nt_counter_sum *sum, const char *name, size_t name_len,
			const uint64_t value[NT_COUNTER_SUM_VALUES],
			uint64_t ret_growth[NT_COUNTER_SUM_VALUES]);
void nt_counter_sum_end(struct nt_counter_sum *sum);

#endif
