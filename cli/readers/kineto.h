/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the PyTorch profiler reader: what it stores of a rank, and process groups. */
#ifndef NT_CLI_READERS_KINETO_H
#define NT_CLI_READERS_KINETO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"

struct nt_kineto_interval {
	uint64_t start_ns, end_ns;
	bool comm;
	uint8_t op; /* enum nt_op; with a group */
	uint16_t group; /* from 1; 0: unknown */
	uint64_t number; /* in its group, from 1; 0 until assigned */
	uint64_t bytes;
	char name[40]; /* of a collective: "AllReduce" */
};

struct nt_kineto_group {
	uint64_t id; /* equal on all members */
	uint64_t name_hash;
	uint32_t size,
		place; /* place UINT32_MAX: the ranks are listed, and this one is not among them */
	bool listed; /* in distributedInfo.pg_config */
	bool used;
	uint64_t calls, p2p_calls;
	char name[24];
};

struct nt_kineto_rank {
	const char *path;
	uint32_t rank, world; /* world 0: unknown */
	struct nt_kineto_interval *kernel, *step;
	size_t kernels, steps;
	/* Calls as the host recorded them. In the end, of a rank without kernels, their union. */
	struct nt_kineto_interval *span;
	size_t spans;
	struct nt_kineto_interval *work; /* operators that ran on a processor; merged at the end */
	size_t works;
	bool on_host; /* it has no kernels: `kernel` holds the former `span` */
	bool cuts; /* its steps are derived from its calls: the trace has none */
	const struct nt_kineto_interval **comm; /* NCCL's kernels, in order */
	size_t comms;
	struct nt_kineto_group *group; /* NT_FRAME_MAX_COMMS of them */
	size_t groups;
	uint64_t dropped; /* calls of groups beyond that */
};

struct nt_kineto_ranks {
	struct nt_kineto_rank *rank;
	size_t ranks;
};

/* Reads one event, if it is relevant. -EBADMSG, -E2BIG, -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_event(struct nt_kineto_rank *out, const json_t *event,
				       uint64_t base_ns, struct nt_trace_error *error);

/* Reads the groups listed by distributedInfo. -EBADMSG for a contradictory list; -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_groups(struct nt_kineto_rank *rank, const json_t *info,
					struct nt_trace_error *ret_error);

/* The call of the kernel, if its arguments identify it. -EBADMSG for invalid ones; -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_call(struct nt_kineto_rank *rank, const json_t *args,
				      struct nt_kineto_interval *kernel,
				      struct nt_trace_error *ret_error);

/* Numbers the calls without a number, in their order. */
void nt_kineto_number_calls(struct nt_kineto_rank *rank);

/* Derives the steps of a rank whose trace has none, if its calls have a period. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_find_steps(struct nt_kineto_rank *rank);

/*
 * For traces without groups: if all ranks make the same calls, and none sends to a single rank, all
 * are taken as one group of peers. -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_assume_group(struct nt_kineto_ranks *in);

/* Whether some rank's calls have groups. */
bool nt_kineto_has_groups(const struct nt_kineto_ranks *in);

/* The number of samples of a rank's calls in [from, to). */
size_t nt_kineto_count_samples(const struct nt_kineto_rank *rank, uint64_t from, uint64_t to);

/* Appends the communicators of the rank in [from, to), and their samples. */
NT_MUST_CHECK int nt_kineto_add_comms(const struct nt_kineto_rank *rank, uint64_t from, uint64_t to,
				      struct nt_trace *trace, struct nt_trace_frame *frame,
				      struct nt_frame_rank *out);

/* Sorts the samples of a frame. */
void nt_kineto_sort_samples(struct nt_trace_frame *frame);

/* Adds the arrival times of all collectives, group by group. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_add_collectives(const struct nt_kineto_ranks *in,
					    struct nt_trace *trace);

#endif
