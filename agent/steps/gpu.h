/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a rank's device did, step by step, from intervals that a plugin inside the process tells (T3):
 * own work is the time in which at least one of its streams ran a kernel that does not communicate.
 *
 * An interval belongs to the step in which the host enqueued it, whenever it ran: hosts run ahead, and
 * so a step is known later than it ended on the host. It holds once each stream has told of something
 * that was enqueued after it, unless intervals were lost, or tell of too few of its launches. What
 * is not known in time does not hold, and is then of the tier that the calls alone give.
 */
#ifndef NT_AGENT_STEPS_GPU_H
#define NT_AGENT_STEPS_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/steps/step_accounting.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_GPU_STEPS = 128, /* that ended on the host and wait for the device; more do not hold */
	NT_GPU_SPANS = 64, /* of one step, apart from each other; more are added up early */
	NT_GPU_STREAMS = 16, /* with kernels of a rank; of more none is waited for */
};

/*
 * In which a stream ran one kernel, or several back to back that were enqueued without a call of
 * communication between them. Intervals of one stream come in the order in which it ran them. All of it
 * is said by the process itself.
 */
struct nt_gpu_interval {
	uint32_t pid;
	uint32_t kernels;
	/* Of the process's intervals of communication, or of others, from 1 on: a gap was lost. */
	uint64_t number;
	uint64_t entry_ns; /* when the host enqueued it; 0: not known, and its start is taken */
	uint64_t start_ns, end_ns; /* boot time, to which the plugin converts the device's clock */
	uint64_t stream;
	bool communicates;
	/* Of communication, as far as it is known. */
	uint64_t comm; /* id of the communicator; 0: not known */
	uint32_t comm_rank; /* in it */
	enum nt_op op;
	uint64_t nth; /* of the communicator's calls of this operation, from 1 on; 0: not known */
};

struct nt_gpu;

struct nt_gpu_stats {
	uint64_t steps_over_cap, streams_over_cap;
	/* those over the cap and those that were not waited for any longer */
	uint64_t steps_unknown;
	uint64_t late; /* intervals of steps that were told before */
	uint64_t overlap_ns; /* left out, as what ran beside was added up already */
};

NT_MUST_CHECK int nt_gpu_new(struct nt_gpu **ret_gpu);
size_t nt_gpu_bytes(void);
void nt_gpu_free(struct nt_gpu *gpu);
NT_DEFINE_AUTO(nt_gpu, nt_gpu_free)

/* Kernels that do not communicate, and make sense. now_ns: when it is told. False: too late for its step. */
bool nt_gpu_add(struct nt_gpu *gpu, const struct nt_gpu_interval *interval, uint64_t now_ns);
/* Intervals were lost: no step holds that is not told yet. */
void nt_gpu_lose(struct nt_gpu *gpu);

/*
 * A step has ended on the host; what is enqueued from its end on belongs to the next. Fetch with
 * nt_gpu_next() all there is before the next one.
 */
void nt_gpu_step(struct nt_gpu *gpu, const struct nt_accounting_step *step);
/*
 * The oldest step that was given, once its device time is known or given up; false: none. Its
 * has_gpu, gpu_ns and gpu_lag_ns are set. UINT64_MAX: no more is to come.
 */
bool nt_gpu_next(struct nt_gpu *gpu, uint64_t now_ns, struct nt_accounting_step *ret_step);
/* Has a step that was given not been told yet? */
bool nt_gpu_waits(const struct nt_gpu *gpu);
/* Steps are no longer known: what was not told is dropped. */
void nt_gpu_reset(struct nt_gpu *gpu);

const struct nt_gpu_stats *nt_gpu_stats(const struct nt_gpu *gpu);

#endif
