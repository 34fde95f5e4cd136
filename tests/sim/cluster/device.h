/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank's device did, as a plugin inside the process sees it. */
#ifndef NT_SIM_CLUSTER_DEVICE_H
#define NT_SIM_CLUSTER_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stretch in which a stream of the device ran. */
struct cl_busy {
	int64_t entry_ns, start_ns, end_ns; /* entry: when the host enqueued it */
	uint32_t kernels;
	uint32_t nth; /* of the communicator's calls of that operation, from 1 on */
	uint8_t group, op; /* of communication */
	uint8_t generation; /* of the group */
	bool communicates, overlaps;
};

/* What a rank's device did and nobody has taken yet, in no order of time. */
struct cl_busies {
	struct cl_busy *busy; /* owned */
	size_t count, room;
};

/* False: no memory. */
bool cl_busies_add(struct cl_busies *busies, const struct cl_busy *busy);

/*
 * Kernels that the host enqueues from entry_ns on, one each launch_ns, and that run from start_ns to
 * end_ns. False: no memory.
 */
bool cl_busies_compute(struct cl_busies *busies, int64_t entry_ns, int64_t launch_ns,
		       uint32_t kernels, int64_t start_ns, int64_t end_ns);

#endif
