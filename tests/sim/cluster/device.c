/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/device.h"

#include <stdlib.h>

enum {
	PIECES = 3, /* in which kernels that follow each other are told */
	GAP_NS = 2000, /* between them */
};

bool cl_busies_add(struct cl_busies *busies, const struct cl_busy *busy)
{
	if (busies->count == busies->room) {
		size_t room = busies->room ? 2 * busies->room : 64;
		struct cl_busy *grown = reallocarray(busies->busy, room, sizeof(*grown));

		if (!grown)
			return false;
		busies->busy = grown;
		busies->room = room;
	}
	busies->busy[busies->count++] = *busy;
	return true;
}

bool cl_busies_compute(struct cl_busies *busies, int64_t entry_ns, int64_t launch_ns,
		       uint32_t kernels, int64_t start_ns, int64_t end_ns)
{
	int64_t gap_ns = GAP_NS * PIECES < end_ns - start_ns ? GAP_NS : 0;

	for (int i = 0; i < PIECES; i++) {
		struct cl_busy busy = {
			.entry_ns = entry_ns + i * (int64_t)kernels / PIECES * launch_ns,
			.start_ns = start_ns + (end_ns - start_ns) * i / PIECES + gap_ns,
			.end_ns = start_ns + (end_ns - start_ns) * (i + 1) / PIECES,
			.kernels = kernels / PIECES,
		};

		/* The host may not be done with enqueuing when the first begins. */
		if (busy.start_ns < busy.entry_ns)
			busy.start_ns = busy.entry_ns;
		if (busy.start_ns < busy.end_ns && !cl_busies_add(busies, &busy))
			return false;
	}
	return true;
}
