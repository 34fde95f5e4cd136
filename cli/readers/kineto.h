/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the reader of PyTorch profiler traces keeps of a rank, and the process groups that it learns. */
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
	uint16_t group; /* from 1; 0: the trace does not say */
	uint64_t number; /* in its group, from 1; 0 until it is counted */
	uint64_t bytes;
	char name[40]; /* of a collective: "AllReduce" */
};

struct nt_kineto_group {
	uint64_t id; /* equal on all members */
	uint64_t name_hash;
	uint32_t size,
		place; /* place UINT32_MAX: the ranks are listed, and this one is none of them */
	bool listed; /* in distributedInfo.pg_config */
	bool used;
	uint64_t calls, p2p_calls;
	char name[24];
};

struct nt_kineto_rank {
	const char *path;
	uint32_t rank, world; /* world 0: it does not say */
	struct nt_kineto_interval *kernel, *step;
	size_t kernels, steps;
	/* Calls as the host recorded them. In the end, of a rank without kernels, when there was one. */
	struct nt_kineto_interval *span;
	size_t spans;
	struct nt_kineto_interval *work; /* operators that ran on a processor; joined in the end */
	size_t works;
	bool on_host; /* it has no kernels: `kernel` is what `span` was */
	bool cuts; /* its steps are those of its calls: the profiler was told of none */
	const struct nt_kineto_interval **comm; /* the kernels that are NCCL's, in order */
	size_t comms;
	struct nt_kineto_group *group; /* NT_FRAME_MAX_COMMS of them */
	size_t groups;
	uint64_t dropped; /* calls of groups beyond that */
};

struct nt_kineto_ranks {
	struct nt_kineto_rank *rank;
	size_t ranks;
};

/* What the rank did in this event, if it is of interest. -EBADMSG, -E2BIG, -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_event(struct nt_kineto_rank *out, const json_t *event,
				       uint64_t base_ns, struct nt_trace_error *error);

/* The groups that distributedInfo lists. -EBADMSG for a list that contradicts itself; -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_groups(struct nt_kineto_rank *rank, const json_t *info,
					struct nt_trace_error *ret_error);

/* The call of which the kernel is, where its arguments say. -EBADMSG for lies; -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_call(struct nt_kineto_rank *rank, const json_t *args,
				      struct nt_kineto_interval *kernel,
				      struct nt_trace_error *ret_error);

/* Numbers those calls that have no number of their own, in their order. */
void nt_kineto_number_calls(struct nt_kineto_rank *rank);

/* The steps of a rank whose trace has none, where its calls have a period. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_find_steps(struct nt_kineto_rank *rank);

/*
 * For traces that do not say of which groups the calls are: where all ranks make the same calls, and
 * nobody sends to one other rank alone, all are of one group, in which they are peers. -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_assume_group(struct nt_kineto_ranks *in);

/* Whether some rank says of which groups its calls are. */
bool nt_kineto_has_groups(const struct nt_kineto_ranks *in);

/* How many samples the calls of a rank in [from, to) make. */
size_t nt_kineto_count_samples(const struct nt_kineto_rank *rank, uint64_t from, uint64_t to);

/* What the rank did in its groups in [from, to), and its samples after those that are there. */
NT_MUST_CHECK int nt_kineto_add_comms(const struct nt_kineto_rank *rank, uint64_t from, uint64_t to,
				      struct nt_trace *trace, struct nt_trace_frame *frame,
				      struct nt_frame_rank *out);

/* Puts the samples of a frame in their order. */
void nt_kineto_sort_samples(struct nt_trace_frame *frame);

/* Who came when, group by group. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_add_collectives(const struct nt_kineto_ranks *in,
					    struct nt_trace *trace);

#endif
