/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * When the node's GPUs are measured from inside their processes: in short windows, and continuously
 * while a job is new or its steps are longer than they were.
 *
 * Windows begin at multiples of the interval in real time, so that all nodes of a job measure the
 * same steps. A window lasts three steps of the slowest rank if they take longer, and half of the
 * interval at most.
 *
 * Measuring costs the job, and a job may start ranks or slow its steps as it likes. So continuous
 * measurement for either reason has a credit, which is earned in the time without it. New ranks do not
 * use up that of longer steps.
 */
#ifndef NT_AGENT_GPU_GPU_SCHEDULE_H
#define NT_AGENT_GPU_GPU_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/system/clock.h"

enum {
	NT_GPU_SCHEDULE_RANKS =
		64, /* whose steps are followed, first come; others measure in windows */
	NT_GPU_SCHEDULE_MEANS = 16, /* windows of a rank that its steps are compared with */
};

#define NT_GPU_SCHEDULE_NEW_NS    (90 * NT_SECOND) /* of continuous measurement, of a new rank */
#define NT_GPU_SCHEDULE_LONGER_NS (60 * NT_SECOND) /* the same since the steps became longer */
#define NT_GPU_SCHEDULE_CREDIT_NS                                                                  \
	(300 * NT_SECOND) /* of continuous measurement for one reason, at most and at first */

struct nt_gpu_schedule_rank {
	uint64_t key; /* process and rank; 0: the entry is free */
	uint64_t seen_ns;
	uint64_t mean_ns[NT_GPU_SCHEDULE_MEANS]; /* of a step; a ring */
	uint32_t next, means, longer;
};

/* A reason for continuous measurement. */
struct nt_gpu_schedule_reason {
	uint64_t until_ns; /* monotonic */
	uint64_t spent_ns; /* of the credit */
	bool is_spent; /* until some is earned */
};

struct nt_gpu_schedule {
	uint64_t window_ns; /* 0: nothing is measured */
	uint64_t interval_ns;
	uint64_t seen_ns; /* when it was looked at last; 0: never */
	struct nt_gpu_schedule_reason fresh, longer; /* a new rank; longer steps */
	struct nt_gpu_schedule_rank rank[NT_GPU_SCHEDULE_RANKS];
};

/* A process has become a rank. now_ns: monotonic time, as below. */
void nt_gpu_schedule_add(struct nt_gpu_schedule *schedule, uint64_t now_ns);
/* `steps` steps of a rank took step_ns together. */
void nt_gpu_schedule_steps(struct nt_gpu_schedule *schedule, uint32_t pid, uint32_t rank,
			   uint32_t steps, uint64_t step_ns, uint64_t now_ns);
/*
 * True if the GPUs are to be measured now. To be called several times a second. measures: some process
 * is measured, else no credit is spent.
 */
bool nt_gpu_schedule_is_open(struct nt_gpu_schedule *schedule, bool measures, uint64_t now_ns,
			     uint64_t real_ns);

#endif
