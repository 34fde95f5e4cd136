/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What libnccl launches as one kernel: its tasks, as the profiler's mask was when the program called
 * for each, and its works, as GPU and host count them. A send and a receive of one group are one work.
 */
#ifndef NT_SIM_NCCL_PLAN_H
#define NT_SIM_NCCL_PLAN_H

#include "tests/sim/lib/nccl/flight.h"
#include "tests/sim/lib/nccl/profiled.h"

struct sim_task {
	enum sim_call_kind kind; /* a send, a receive, or a collective that is not made of these */
	int mask; /* frozen by the call */
	int type;
	void *group_api, *api; /* events; NULL: none */
	void *event;
	const void *send;
	void *recv;
	size_t count;
	unsigned int peer; /* or root */
	int work; /* of the plan */
};

struct sim_work {
	unsigned int first, channels;
	bool is_observed; /* the GPU writes its times */
	bool is_counted; /* the host knows of it */
	uint64_t expected[SIM_CHANNELS]; /* by the host */
};

struct sim_plan {
	unsigned int refs; /* atomic */
	struct sim_profiled *comm; /* a reference */
	void *stream;
	bool is_persistent; /* in a graph */
	bool by_callback; /* a host function posts it */
	void *group, *launch; /* events */
	struct sim_flight *flights,
		**flights_end; /* not posted yet; under the communicator's mutex */
	struct sim_work *work;
	size_t works, tasks;
	struct sim_task task[];
};

/* With copies of the tasks. NULL: no memory. */
struct sim_plan *sim_plan_new(struct sim_profiled *comm, void *stream, bool is_captured,
			      const struct sim_task *task, size_t tasks);
struct sim_plan *sim_plan_ref(struct sim_plan *plan);
void sim_plan_unref(struct sim_plan *plan);

/* Around the call of libcuda that launches it, or that puts it into a graph. */
void sim_plan_launch_begin(struct sim_plan *plan);
void sim_plan_launch_end(struct sim_plan *plan);
/* Its events of group and tasks, and what its GPU and network events hang on. */
void sim_plan_post(struct sim_plan *plan);
/* The same as a host function; the argument is the plan. */
void sim_plan_callback(void *data);

/* The next flight that is to be posted. */
void sim_plan_add_flight(struct sim_plan *plan, struct sim_flight *flight);
/* It could not be launched. */
void sim_plan_forget_flights(struct sim_plan *plan);

const char *sim_function_name(enum sim_call_kind kind);
const char *sim_type_name(int type);

#endif
