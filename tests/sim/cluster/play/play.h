/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Plays a scenario step by step: hosts launch, devices compute, groups wait for their last member.
 * What comes out are the calls that each rank's host made, with their times, as a probe would see
 * them. Nothing here knows what own work is.
 */
#ifndef NT_SIM_CLUSTER_PLAY_H
#define NT_SIM_CLUSTER_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/cluster/device.h"
#include "tests/sim/cluster/parallelism.h"
#include "tests/sim/cluster/scenario.h"
#include "tests/sim/cluster/sent.h"

#define CL_NEVER INT64_MAX /* the return of a call that has none */

enum cl_call_kind {
	CL_CALL_COLLECTIVE, /* sends and receives too */
	CL_CALL_RECORD, /* an event on the stream of the kernels */
	CL_CALL_WAIT, /* for which the stream of the gradients waits */
	CL_CALL_SYNC_LOCAL, /* of the stream of the kernels */
	CL_CALL_SYNC_ALL, /* of the device */
	CL_CALL_HOST, /* no call: what the thread did in `host` since the last */
	CL_CALL_EXIT,
};

/* What a thread did, ns or bytes. */
struct cl_host {
	uint64_t on_cpu_ns, run_queue_ns, gc_ns, read_bytes, write_bytes;
};

struct cl_call {
	int64_t entry_ns, ret_ns; /* since the start of the job; equal where only the entry shows */
	uint32_t count;
	uint32_t launches; /* of the rank so far */
	uint8_t kind; /* enum cl_call_kind */
	uint8_t group, op;
	uint8_t generation; /* of the group: 1 once the job has changed its size */
	bool overlaps, forward;
	bool asleep; /* with CL_CALL_HOST: how the thread is found in it */
	struct cl_host host;
};

/* A rank's calls that are not taken yet, by time. */
struct cl_calls {
	struct cl_call *call; /* owned */
	size_t first, count, room;
};

/* False: no memory. */
bool cl_calls_add(struct cl_calls *calls, const struct cl_call *call);

struct cl_play;

/* 0 or -ENOMEM. The scenario is borrowed and has passed cl_scenario_check(). */
int cl_play_new(const struct cl_scenario *scenario, struct cl_play **ret_play);
void cl_play_free(struct cl_play *play);

/* One more step of all ranks. 0 or -ENOMEM. */
int cl_play_step(struct cl_play *play);

/* When the rank's process begins. */
int64_t cl_play_start_ns(const struct cl_play *play, uint32_t rank);

/* All calls that begin before this are known. */
int64_t cl_play_known_ns(const struct cl_play *play);

/* Nothing goes on any more: since when. */
bool cl_play_stands(const struct cl_play *play, int64_t *ret_since_ns);

struct cl_calls *cl_play_calls(struct cl_play *play, uint32_t rank);
/* Only with CL_PLUGIN; otherwise none. */
struct cl_busies *cl_play_busies(struct cl_play *play, uint32_t rank);
/* Only where proxies report; otherwise none. */
struct cl_sents *cl_play_sent(struct cl_play *play, uint32_t rank);

/* What the node's ports have counted so far, of what was sent again. */
uint64_t cl_play_counted(const struct cl_play *play, uint32_t node);

#endif
