/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread of a communicator that polls what the GPU and the network have done, and calls the plugin:
 * NCCL's progress thread, or its profiler thread. It sleeps until the next time that is known.
 *
 * Fields are under the communicator's mutex. The plugin is called without it.
 */
#ifndef NT_SIM_NCCL_POLLER_H
#define NT_SIM_NCCL_POLLER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_profiled;
struct sim_proxy;

/* The event of one channel of a work. */
struct sim_kernel_op {
	struct sim_kernel_op *next;
	unsigned int channel;
	uint64_t counter; /* the work that the host expects */
	void *parent; /* the task's event */
	void *event;
	bool is_started;
};

struct sim_poller {
	struct sim_profiled *comm; /* whose this is part of */
	const char *name; /* of the thread, before the number of the device */
	pthread_t thread;
	pthread_cond_t changed;
	bool runs, stops, drains;
	struct sim_kernel_op *kernels, **kernels_end;
	struct sim_proxy *proxies, **proxies_end;
	int appended; /* proxies since the thread has looked */
};

void sim_poller_init(struct sim_poller *poller, struct sim_profiled *comm, const char *name);
void sim_poller_destroy(struct sim_poller *poller);
/*
 * Takes the mutex itself, and waits for the thread's end. What is queued then is dropped without events,
 * as is all that comes later.
 */
void sim_poller_stop(struct sim_poller *poller, bool drains);

/* ---- with the mutex held ---- */

/* If it does not run yet. */
void sim_poller_start(struct sim_poller *poller);
/* Both start the thread. */
void sim_poller_add_kernel(struct sim_poller *poller, unsigned int channel, uint64_t counter,
			   void *parent);
void sim_poller_add_proxy(struct sim_poller *poller, struct sim_proxy *proxy);
/* Has the thread look again. */
void sim_poller_wake(struct sim_poller *poller);

#endif
