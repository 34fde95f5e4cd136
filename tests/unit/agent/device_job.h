/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank whose host runs ahead of its device. */
#ifndef NT_TEST_DEVICE_JOB_H
#define NT_TEST_DEVICE_JOB_H

#include "common/base/hash.h"
#include "tests/unit/agent/agent_job.h"

enum {
	STEP_MS = 100,
	WORK_MS = 60,
};

struct device {
	struct node node;
	uint64_t kernels, calls; /* intervals told so far */
	uint64_t work_ms; /* of the device in a step */
	bool silent;
	uint16_t row; /* of NCCL's profiler: communication alone is reported. 0: CUPTI's */
};

static inline void start(struct device *device)
{
	struct node *node = &device->node;

	*device = (struct device){.work_ms = WORK_MS};
	node_start(node);
	ENVIRON(node, PID, "PATH=/bin\0");
	node_map(node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(node, PID, PID, 0x5000, 0, 2, 0x11);
}

/* The newest window with steps. */
static inline const struct node_window *last_with_steps(const struct node *node)
{
	for (size_t i = node->windows; i-- > 0;) {
		if (node->window[i].window.steps)
			return &node->window[i];
	}
	fail_msg("no window has steps");
	return NULL;
}

static inline struct nt_tracker_stats stats_of(const struct device *device)
{
	struct nt_tracker_stats stats;

	nt_tracker_stats(device->node.tracker, &stats);
	return stats;
}

#endif
