/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Operation times of a Megatron-style job, step by step, as frames. Own work is the sum of the
 * recorded compute operations. Where communication is recorded too, the host's work is the time before
 * passes, sends and receives in which nothing runs. A victim waits in communication, or before a
 * collective.
 */
#ifndef NT_CLI_READERS_OPERATIONS_H
#define NT_CLI_READERS_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/cleanup.h"

enum {
	NT_OPERATIONS_MAX = 1 << 26,
};

struct nt_operation {
	uint64_t step, start_ns, duration_ns;
	uint32_t rank, replica, stage, seq;
	uint16_t file; /* of several */
	uint8_t kind; /* nt_operation_kind() */
};

/* All zero is empty. */
struct nt_operations {
	struct nt_operation *operation;
	size_t count, cap;
	bool samples; /* starts of collectives are arrivals */
	bool absolute; /* starts count from one time, not from that of their step */
};

void nt_operations_release(struct nt_operations *operations);

/* "forward-compute" → its kind; -1: unknown, to be skipped. */
int nt_operation_kind(const char *name, size_t len);

/* -ENOMEM; -E2BIG at the cap. */
NT_MUST_CHECK int nt_operations_add(struct nt_operations *operations,
				    const struct nt_operation *operation);

/* Sorts them by step and rank, and makes a frame of each step. -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_operations_frames(struct nt_operations *operations, struct nt_trace *trace);

#endif
