/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A proxy operation: what NCCL's progress thread sends or receives for one channel of one task, in steps.
 * The stand-in has no network of its own; the times of the steps follow from those of the kernel. Until
 * the last rank has come a send has no credit from its peer, and a receive has no data; then the steps
 * share the rest of the kernel's time. If another rank's card is slower, a send waits for its data first. [states: src/transport/net.cc of NCCL]
 */
#ifndef NT_SIM_NCCL_PROXY_H
#define NT_SIM_NCCL_PROXY_H

#include "tests/sim/lib/nccl/flight.h"
#include "tests/sim/lib/nccl/plan.h"

enum {
	SIM_PROXY_STEPS = 8, /* slots for the events of steps */
};

enum sim_step_stage {
	SIM_STEP_BEGUN,
	SIM_STEP_HAS_DATA, /* a send: the own GPU's */
	SIM_STEP_SENT, /* or a receive: arrived, and given to the GPU */
	SIM_STEP_DONE,
};

struct sim_proxy {
	struct sim_proxy *next;
	struct sim_flight *flight; /* a reference */
	void *parent; /* the task's event */
	int mask;
	int peer;
	unsigned int channel;
	bool is_send, is_started;
	bool is_foreign; /* of another process, whose pointers come along */
	int steps;
	size_t bytes; /* of a step */
	void *event;
	void *step[SIM_PROXY_STEPS]; /* events */
	enum sim_step_stage stage[SIM_PROXY_STEPS];
	uint64_t sent_ns[SIM_PROXY_STEPS]; /* when the thread got to it, which may be late */
};

/*
 * NULL: no memory. With PXN a process also sends for the ranks of others on its node: `is_foreign`, and the
 * plugin gets the context and the parent of that process.
 */
struct sim_proxy *sim_proxy_new(struct sim_flight *flight, const struct sim_task *task,
				unsigned int channel, int peer, bool is_send, bool is_foreign,
				size_t bytes);
void sim_proxy_free(struct sim_proxy *proxy);

/*
 * Takes all steps whose time has come. True when there were any; *next_ns is lowered to the time of the
 * next, if that is known. With the communicator's mutex, which is released around calls of the plugin.
 */
bool sim_proxy_moves(struct sim_proxy *proxy, uint64_t now_ns, uint64_t *next_ns,
		     bool *ret_is_done);

#endif
