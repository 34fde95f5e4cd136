/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the stand-in libraries have beyond the real ones, for our own jobs. A kernel is a pointer
 * to a struct sim_function; any other function is a kernel that does nothing for two microseconds.
 */
#ifndef NT_SIM_STANDIN_H
#define NT_SIM_STANDIN_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_FUNCTION_MAGIC 0x6e7473696d6b726eU

enum sim_function_kind {
	SIM_FUNCTION_SHORT, /* does nothing for two microseconds */
	SIM_FUNCTION_TIMED, /* params[0] points to a uint64_t: how long it runs, ns */
	SIM_FUNCTION_MODEL, /* params[0] points to the state of `model` */
};

/*
 * An operation with a behaviour of its own: libnccl's. All are called under the device's lock, in
 * which no call of the libraries may be made.
 */
struct sim_model {
	/* Once for each time that it is put on a stream: here calls get their numbers. */
	void (*launched)(void *state);
	/* Its stream has reached it at start_ns. True when its end is known; called until then. */
	bool (*progress)(void *state, uint64_t start_ns, uint64_t *ret_end_ns);
	void *(*copy)(const void *state); /* for a launch of a captured graph */
	void (*release)(void *state);
	/* Of the kernel that it is to an observer; valid for ever. */
	const char *(*name)(const void *state);
};

struct sim_function {
	uint64_t magic;
	uint64_t kind;
	const struct sim_model *model;
	const char *name; /* to an observer; NULL: one of the stand-in's own */
};

/*
 * The progress thread of the device also waits on these words of shared memory: whoever changes
 * one and wakes it has the streams looked at again.
 */
int cuSimWatch(uint32_t *word);
void cuSimUnwatch(uint32_t *word);
/* Looks at all streams now, with the device's lock taken. */
void cuSimProgress(void);
void cuSimLock(void);
void cuSimUnlock(void);
/* Monotonic time. */
uint64_t cuSimNow(void);

/* ---- for libcupti: what is reported about calls and operations ---- */

struct sim_api_call {
	bool is_driver; /* else of the runtime */
	uint32_t cbid; /* call_id.h */
	uint32_t correlation; /* numbered from 1 in this process, while there is an observer */
	int result;
	uint64_t begin_ns, end_ns; /* monotonic */
};

enum sim_activity_kind {
	SIM_ACTIVITY_KERNEL,
	SIM_ACTIVITY_COPY,
	SIM_ACTIVITY_SET,
	SIM_ACTIVITY_GRAPH, /* a launch of a graph, after its nodes */
};

/* As CUPTI numbers them. */
enum sim_place {
	SIM_PLACE_PAGEABLE = 1,
	SIM_PLACE_PINNED = 2,
	SIM_PLACE_DEVICE = 3,
	SIM_PLACE_MANAGED = 5,
};

struct sim_activity {
	enum sim_activity_kind kind;
	uint32_t device, stream; /* the number of cuStreamGetId() */
	uint32_t correlation; /* of the call that launched it; 0: nobody observed that */
	uint32_t graph; /* of the executable graph; 0: launched by itself */
	uint64_t node; /* of the graph; 0: none */
	uint64_t start_ns, end_ns; /* monotonic; the end may lie ahead */
	const char *name; /* of a kernel; valid for ever */
	uint64_t bytes; /* of a copy or set */
	enum sim_place from, to; /* of a copy */
	uint32_t value; /* of a set */
};

struct sim_observer {
	/* On the thread of the call, without the device's lock. */
	void (*called)(const struct sim_api_call *call);
	/* As soon as the end is known, in the order of each stream. Under the device's lock. */
	void (*operated)(const struct sim_activity *activity);
};

/* NULL: none. What is set is valid for ever. */
extern const struct sim_observer *cuSimObserver;
void cuSimObserve(const struct sim_observer *observer);
/* By the runtime: the next call of this thread is its call `cbid`, and none of the driver. */
void cuSimRuntimeCall(uint32_t cbid);
/* Operations on all streams whose end is not known yet. */
uint64_t cuSimUnfinished(void);
uint32_t cuSimGraphExecId(const void *exec);

/* Exported by libnccl: transfers that touch this process's ranks take `factor` times as long. */
void ncclSimSlowNic(double factor);
/* Larger calls of this process take their time but move no data; at most, and by default, 8 MiB. */
void ncclSimMoveData(uint64_t bytes);

#endif
