/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A communicator as its profiler plugin sees it: its context, and how its GPU's times reach the events.
 *
 * The GPU counts the works of each channel, whether anybody observes them or not. Of a work that is
 * observed it writes start and stop into the ring slot of its number. The host counts the works too, and
 * polls the slot of the number that it expects: as soon as the slot holds that number or a later one, its
 * time is the event's. A host that has missed works expects too small a number and gets the times of
 * another work. [src/device/common.h, src/transport/profiler.cc and src/plugin/profiler.cc of NCCL]
 */
#ifndef NT_SIM_NCCL_PROFILED_H
#define NT_SIM_NCCL_PROFILED_H

#include <pthread.h>

#include "tests/sim/lib/nccl/poller.h"
#include "tests/sim/lib/nccl/profiler_plugin.h"
#include "tests/sim/lib/transfer.h"

enum {
	SIM_CHANNELS = 8,
	SIM_TIMER_SLOTS = 64,
	SIM_FUNCTIONS = SIM_CALL_PUT + 1,
};

struct sim_timer {
	uint64_t counter, timer;
};

/* What the GPU will have written at a time that is known already. */
struct sim_timer_write {
	struct sim_timer_write *next;
	uint64_t at_ns; /* monotonic */
	uint64_t counter;
	unsigned int channel;
	bool is_stop;
};

struct sim_profiled {
	unsigned int refs; /* atomic: of the handle, of plans and of flights */
	struct sim_profiler_comm_info info;
	char *name; /* of info */
	void *context;
	unsigned int channels; /* of a collective */
	bool has_proxy, has_pxn;
	unsigned int captured; /* atomic: plans in graphs */
	uint64_t seq[SIM_FUNCTIONS]; /* atomic */
	uint64_t device[SIM_CHANNELS]; /* works of the GPU; under the device's lock */
	pthread_mutex_t mutex; /* after the device's lock; for all that follows */
	uint64_t host[SIM_CHANNELS]; /* works that the host has counted */
	struct sim_timer_write *writes; /* by time */
	struct sim_timer started[SIM_CHANNELS][SIM_TIMER_SLOTS];
	struct sim_timer completed[SIM_CHANNELS][SIM_TIMER_SLOTS];
	struct sim_poller progress; /* NCCL's progress thread */
	struct sim_poller profiler; /* the thread that 2.31 brought for works */
};

/* NULL: there is no plugin. The plugin's init has been called. */
struct sim_profiled *sim_profiled_new(const struct sim_profiler_comm_info *info);
/* Ends the threads. With `drains`, first what the GPU is known to finish has its events. */
void sim_profiled_stop(struct sim_profiled *comm, bool drains);
/* Calls the plugin's finalize, and drops the handle's reference. NULL is nobody. */
void sim_profiled_finalize(struct sim_profiled *comm);

struct sim_profiled *sim_profiled_ref(struct sim_profiled *comm);
void sim_profiled_unref(struct sim_profiled *comm);

/* The thread that polls the slots. */
struct sim_poller *sim_profiled_poller(struct sim_profiled *comm);

/* ---- with the mutex held ---- */

/* At that time the GPU writes the slot. */
void sim_profiled_write(struct sim_profiled *comm, uint64_t at_ns, unsigned int channel,
			uint64_t counter, bool is_stop);
/* Fills slots whose time has come, a few at once. True when there were any. */
bool sim_profiled_advance(struct sim_profiled *comm, uint64_t now_ns);

#endif
