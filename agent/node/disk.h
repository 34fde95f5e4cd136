/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the disks of the node do, from /proc/diskstats: sums over whole disks, and the busiest. */
#ifndef NT_AGENT_NODE_DISK_H
#define NT_AGENT_NODE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/node/counter_sum.h"
#include "agent/node/hardware.h"

enum nt_disk_value {
	NT_DISK_READ_BYTES,
	NT_DISK_WRITTEN_BYTES,
	NT_DISK_OPERATIONS, /* with discards and flushes */
	NT_DISK_WAIT_MS, /* of all operations, from issue to completion */
	NT_DISK_BUSY_MS, /* with an operation in flight */
};

/* Zero-initialised; needs no release. */
struct nt_disks {
	struct nt_hardware hardware; /* refreshed by the user */
	struct nt_counter_sum sum; /* by enum nt_disk_value */
	uint64_t before_ns; /* of the last reading; 0: none */
	/* Of the last reading. */
	uint64_t in_flight;
	bool has_busy; /* there was a reading before */
	double busy_most; /* part of the time since, of the busiest disk: 0 to 1 */
};

/* Takes a text of /proc/diskstats. Disks without hardware are left out. now_ns: monotonic. */
void nt_disks_take(struct nt_disks *disks, const char *text, size_t len, uint64_t now_ns);

#endif
