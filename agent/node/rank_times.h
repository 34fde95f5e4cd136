/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step time and own work of the node's ranks between two node vectors, as means. */
#ifndef NT_AGENT_NODE_RANK_TIMES_H
#define NT_AGENT_NODE_RANK_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

enum {
	NT_RANK_TIMES_METRICS = 2,
};

/* Zero-initialised; needs no release. A window is an equal time of a rank, so each counts as much. */
struct nt_rank_times {
	double step_seconds, own_seconds; /* sums of the windows' means of a step */
	uint64_t windows, own_windows; /* of own_seconds: own work is not always observable */
};

void nt_rank_times_add(struct nt_rank_times *times, const struct nt_window *window);

/* The metrics since the last call, whose names are static. Returns their number. */
size_t nt_rank_times_take(struct nt_rank_times *times,
			  struct nt_metric_value ret_metric[NT_RANK_TIMES_METRICS]);

#endif
