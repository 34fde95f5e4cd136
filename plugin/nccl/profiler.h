/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is reported of NCCL: for each collective, send and receive, when the host enqueued it and
 * when its kernel ran; and how long the network takes for what is sent to other nodes (proxy_send.h).
 * Each is measured only while a tracer is attached to its mark; else an event costs a look at the
 * requests.
 *
 * NCCL calls from threads of the program and from its own. Nothing here blocks: if another thread
 * holds the tables for too long, the event is lost, and counted. Nothing is allocated. A handle is a
 * number with a generation, so one that is used again, late or twice is recognised.
 */
#ifndef NT_PLUGIN_NCCL_PROFILER_H
#define NT_PLUGIN_NCCL_PROFILER_H

#include <stdint.h>

#include "plugin/batch.h"
#include "plugin/nccl/profiler_abi.h"
#include "plugin/nccl/send_batch.h"

enum {
	NT_PROFILER_COMMS = 1024, /* communicators; those of further ones are lost */
	NT_PROFILER_CALLS = 4096, /* whose kernels have not ended; the oldest is lost */
	NT_PROFILER_CHANNELS = 1 << 14, /* of their kernels */

	/*
	 * Results in a record NT_GPU_RECORD_GIVEN_UP: times of kernels contradict each other, or are
	 * not reported at all.
	 */
	NT_PROFILER_OTHER_CLOCK = -2, /* the device's clock does not run as boot time does */
	NT_PROFILER_BEFORE_CALL = -3, /* a kernel began before it was enqueued */
	NT_PROFILER_BACKWARDS =
		-4, /* a kernel began before the last one of its channel, or ended before */
	NT_PROFILER_ON_REQUEST = NT_GPU_RESULT_ON_REQUEST, /* see nt_profiler_use */
};

/*
 * How the device times of a release of NCCL can be measured. Up to 2.26 it reports none. From 2.27
 * to 2.30 they can be switched on and off. From 2.31 on a device counts its kernels while they are
 * off and the host does not: the times of different collectives are mixed up. They are on from the
 * first communicator to the end of the process, or never: as the job's environment says.
 */
enum nt_profiler_use {
	NT_PROFILER_NEVER,
	NT_PROFILER_IN_WINDOWS,
	NT_PROFILER_ALWAYS,
	NT_PROFILER_NOT_REQUESTED, /* it could be always: a tracer gets that as a result */
};

/*
 * A communicator of an interface version. mask: NCCL's, of the process; hash: ncclComm.commHash; rank: in it. NULL: there
 * are too many, and none of its events is reported.
 */
void *nt_profiler_add(int *mask, int version, enum nt_profiler_use use, uint64_t hash, int rank);
void nt_profiler_remove(void *context);
/* 0 while no tracer is attached: then no event is needed. Loads without a branch between them. */
extern int nt_profiler_is_open, nt_profiler_sends_are_open;
static inline int nt_profiler_is_active(void)
{
	return nt_batch_is_wanted() | nt_send_batch_is_wanted() |
	       __atomic_load_n(&nt_profiler_is_open, __ATOMIC_RELAXED) |
	       __atomic_load_n(&nt_profiler_sends_are_open, __ATOMIC_RELAXED);
}
/* The returned handle may be NULL: nothing more of the event is needed. */
void *nt_profiler_start(int version, void *context, const struct nt_nccl_event *event);
void nt_profiler_stop(void *handle);
void nt_profiler_state(void *handle, int state, const union nt_nccl_state_args *args);

/*
 * The mask of another plugin in the process. Its bits are added to ours with the next event that is
 * reported, or by nt_profiler_write_mask().
 */
extern int nt_profiler_chained_mask;
void nt_profiler_write_mask(void *context);

#endif
