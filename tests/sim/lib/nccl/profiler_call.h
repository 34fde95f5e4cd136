/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The program's calls, as a profiler plugin sees them on the thread that makes them: events of the group
 * and of each call, and the tasks that a call becomes. Without a plugin there are no tasks.
 *
 * A call outside of a group is a group of its own. [src/group.cc, src/enqueue.cc of NCCL]
 */
#ifndef NT_SIM_NCCL_PROFILER_CALL_H
#define NT_SIM_NCCL_PROFILER_CALL_H

#include "tests/sim/lib/nccl/plan.h"

struct sim_tasks {
	struct sim_task *task; /* owned */
	size_t count;
};

/* A call begins, and is part of the group. */
void sim_profiler_enter(void);
/* Its tasks; `depth` is that of groups, the call's own included. */
void sim_profiler_call(struct sim_profiled *comm, const struct sim_call *call, void *stream,
		       bool is_captured, int depth, struct sim_tasks *ret);
/* The call, or the group, ends: what it holds is launched now if it is the outermost. */
void sim_profiler_leave(void);
/* After that. */
void sim_profiler_left(void);

#endif
