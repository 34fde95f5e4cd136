/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes intervals (agent/steps/gpu.h) of the records of one process's GPU (plugin/gpu_record.h). A
 * kernel is joined with the call that enqueued it, by their correlation: the call says when.
 *
 * Records of calls and of kernels come in different buffers, in any order. A kernel waits for its
 * call for a second, or for a fifth of one if it was enqueued before the measurement. A call waits
 * for its kernels until as many later calls have come as the table holds. A kernel without its call
 * is lost. All values are the process's own.
 */
#ifndef NT_AGENT_STEPS_GPU_RECORDS_H
#define NT_AGENT_STEPS_GPU_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/steps/gpu.h"
#include "bpf/event.h"
#include "common/base/cleanup.h"

enum {
	NT_GPU_RECORDS_CALLS = 1 << 13, /* that are kept */
	NT_GPU_RECORDS_KERNELS = 1 << 11, /* that wait for their call */
	NT_GPU_RECORDS_COLLECTIVES = 1 << 9, /* calls of NCCL whose kernels have not come */
};

struct nt_gpu_records;

struct nt_gpu_records_stats {
	uint64_t records, kernels;
	uint64_t lost; /* gaps in their numbers */
	uint64_t malformed;
	uint64_t unmatched; /* kernels without a call */
	uint64_t earlier; /* kernels that were enqueued before the measurement */
};

/* A call of NCCL. */
struct nt_gpu_collective {
	uint64_t entry_ns;
	uint64_t comm; /* id of the communicator, and the rank in it */
	uint32_t comm_rank;
	uint32_t tid;
	enum nt_op op;
	uint64_t nth; /* of the communicator's calls of this operation, from 1 */
	uint64_t group; /* 0: none. Of several in one group none has a kernel of its own */
};

/*
 * Called with each kernel, in the order of their streams. number is set. If communication alone is
 * reported, also with each call, without a kernel.
 */
typedef void (*nt_gpu_records_fn)(void *data, const struct nt_gpu_interval *interval);

/* by_communication: calls of NCCL and their kernels alone are reported. */
NT_MUST_CHECK int nt_gpu_records_new(uint32_t pid, bool by_communication,
				     struct nt_gpu_records **ret_records);
void nt_gpu_records_free(struct nt_gpu_records *records);
NT_DEFINE_AUTO(nt_gpu_records, nt_gpu_records_free)
size_t nt_gpu_records_bytes(void);

/* The records of one event. Its size was checked. */
void nt_gpu_records_add(struct nt_gpu_records *records, const struct nt_event_gpu *event,
			nt_gpu_records_fn fn, void *data);

/*
 * A collective was called. Its kernel is the one that was enqueued next, before another call. If
 * two threads have calls whose kernels have not come, or the operation is another, it is not known.
 */
void nt_gpu_records_collective(struct nt_gpu_records *records,
			       const struct nt_gpu_collective *collective);

/* When the measurement began, boot time; 0: it has not yet. */
uint64_t nt_gpu_records_open_ns(const struct nt_gpu_records *records);
bool nt_gpu_records_by_communication(const struct nt_gpu_records *records);
/* True if the library in the process cannot measure; *ret_result: of the interface, or 0. */
bool nt_gpu_records_given_up(const struct nt_gpu_records *records, int32_t *ret_result);
const struct nt_gpu_records_stats *nt_gpu_records_stats(const struct nt_gpu_records *records);

#endif
