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
};

struct sim_function {
	uint64_t magic;
	uint64_t kind;
	const struct sim_model *model;
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

/* Exported by libnccl: transfers that touch this process's ranks take `factor` times as long. */
void ncclSimSlowNic(double factor);
/* Larger calls of this process take their time but move no data; at most, and by default, 8 MiB. */
void ncclSimMoveData(uint64_t bytes);

#endif
