/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Device time of a rank by step, from intervals that a plugin inside the process reports (T3). Own
 * work is the time in which at least one stream ran a kernel that does not communicate.
 *
 * An interval belongs to the step in which the host enqueued it, whenever it ran. Hosts run ahead,
 * so a step is complete later than it ended on the host. It is valid once each stream has reported
 * an interval enqueued after it, unless intervals were lost or cover too few launches. A step that
 * is not complete in time is invalid, and gets the tier of the calls alone. A step takes as long as
 * lies between the ends of its last kernel and the one of the step before.
 *
 * If only kernels that communicate are reported, own work is the time of the step on the device in
 * which none of them ran (T2): the device worked, or waited for its host. The part of it in which the
 * next of them was enqueued already is the device's alone. A step is valid once the kernels of all
 * its calls were reported, if that holds for the step before too.
 */
#ifndef NT_AGENT_STEPS_GPU_H
#define NT_AGENT_STEPS_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/steps/step_accounting.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_GPU_STEPS = 128, /* ended on the host, device pending; more are invalid */
	NT_GPU_SPANS = 64, /* disjoint, of one step; more are summed early */
	NT_GPU_STREAMS = 16, /* of a rank, with kernels; more are not waited for */
};

/*
 * An interval in which a stream ran one kernel, or several back to back that were enqueued without
 * a communication call in between. Intervals of a stream come in execution order. All values are
 * the process's own.
 */
struct nt_gpu_interval {
	uint32_t pid;
	uint32_t kernels; /* 0: none ran yet, a call of communication was enqueued at entry_ns */
	/* Counts communication and other intervals separately, from 1; a gap is a loss. */
	uint64_t number;
	uint64_t entry_ns; /* when the host enqueued it; 0: unknown, start_ns is used */
	uint64_t start_ns, end_ns; /* boot time, converted by the plugin */
	uint64_t stream;
	uint32_t thread; /* that enqueued it, as the library names threads; 0: unknown */
	bool communicates;
	bool is_of_graph;
	/* Of communication, where known. */
	uint64_t comm; /* id of the communicator; 0: unknown */
	uint32_t comm_rank; /* in it */
	enum nt_op op;
	uint64_t nth; /* of the communicator's calls of this operation, from 1; 0: unknown */
};

struct nt_gpu;

struct nt_gpu_stats {
	uint64_t steps_over_cap, streams_over_cap;
	/* over the cap, or timed out */
	uint64_t steps_unknown;
	uint64_t late; /* intervals of steps already delivered */
	uint64_t overlap_ns; /* omitted: the concurrent part was already summed */
};

NT_MUST_CHECK int nt_gpu_new(struct nt_gpu **ret_gpu);
size_t nt_gpu_bytes(void);
void nt_gpu_free(struct nt_gpu *gpu);
NT_DEFINE_AUTO(nt_gpu, nt_gpu_free)

/*
 * Adds valid kernels: those that do not communicate, or those that do, with their calls, if only
 * these are reported. now_ns: of the report. False: too late for its step.
 */
bool nt_gpu_add(struct nt_gpu *gpu, const struct nt_gpu_interval *interval, uint64_t now_ns);
/*
 * Only what is enqueued from from_ns on is reported, until it is closed. Steps that are not wholly
 * within are invalid, and are not waited for. Without a call all is reported.
 */
void nt_gpu_open(struct nt_gpu *gpu, uint64_t from_ns, bool by_communication);
void nt_gpu_close(struct nt_gpu *gpu);
bool nt_gpu_is_by_communication(const struct nt_gpu *gpu);
/* Intervals were lost: pending steps become invalid. */
void nt_gpu_lose(struct nt_gpu *gpu);

/*
 * A step has ended on the host; later enqueues belong to the next. Fetch all results with
 * nt_gpu_next() before adding the next one.
 */
void nt_gpu_step(struct nt_gpu *gpu, const struct nt_accounting_step *step);
/*
 * The oldest pending step, once its device time is known or given up; false: none. Sets has_gpu and
 * the members from there on. UINT64_MAX: no more intervals will come.
 */
bool nt_gpu_next(struct nt_gpu *gpu, uint64_t now_ns, struct nt_accounting_step *ret_step);
/* True if a step is pending. */
bool nt_gpu_waits(const struct nt_gpu *gpu);
/* Step boundaries are lost: drops all pending steps. */
void nt_gpu_reset(struct nt_gpu *gpu);

const struct nt_gpu_stats *nt_gpu_stats(const struct nt_gpu *gpu);

#endif
