/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the PyTorch profiler reader: what it stores of a rank, and process groups. */
#ifndef NT_CLI_READERS_KINETO_H
#define NT_CLI_READERS_KINETO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/json_scan.h"

enum {
	NT_KINETO_MAX_KERNELS = 1 << 24, /* of one file */
};

struct nt_kineto_interval {
	uint64_t start_ns, end_ns;
	bool comm;
	uint8_t op; /* enum nt_op; with a group */
	uint16_t group; /* from 1; 0: unknown */
	bool stated; /* the trace has its number; else it is the order on this rank */
	union {
		bool ends_step; /* of a collective, if the trace has no steps */
		bool ends_file; /* of a step: another file follows */
	};
	uint16_t stated_size; /* ranks of the group, of a collective; 0: not stated, or more */
	uint64_t number; /* in its group, from 1; 0 until assigned */
	uint64_t bytes;
	uint64_t called_ns, launched_ns; /* of the call that launched the kernel; 0: not recorded */
	uint32_t correlation; /* of the kernel with that call; 0: none */
	union {
		uint32_t kind; /* hash of the kernel's name; of a collective, its stream */
		uint32_t file; /* of a step: the cycle of its file, from 0 */
	};
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

/* A call of the CUDA runtime or driver that enqueued something. */
struct nt_kineto_launch {
	uint64_t start_ns, end_ns;
	uint32_t correlation;
};

struct nt_kineto_rank {
	const char *path;
	uint32_t rank, world; /* world 0: unknown */
	uint32_t node; /* index of a name in nt_trace.node, or NT_FRAME_NO_NODE */
	struct nt_kineto_interval *kernel, *step;
	size_t kernels, steps;
	/* Calls as the host recorded them. In the end, of a rank without kernels, their union. */
	struct nt_kineto_interval *span;
	size_t spans;
	struct nt_kineto_interval *work; /* operators that ran on a processor; merged at the end */
	size_t works;
	struct nt_kineto_launch *launch; /* in the end by correlation */
	size_t launches;
	bool has_launches; /* of nine in ten kernels */
	/* Calls in which the host waits for its device; merged at the end. */
	struct nt_kineto_interval *wait;
	size_t waits;
	bool on_host; /* it has no kernels: `kernel` holds the former `span` */
	bool cuts; /* its steps are derived from its calls: the trace has none */
	/* The longest time without a call of the runtime, by step of the profiler; else NULL. */
	uint64_t *gap_ns;
	uint64_t *late_ns; /* host work of each step; without has_launches NULL */
	uint32_t step_calls; /* collectives of such a step that marks ended; 0: other steps */
	struct nt_kineto_interval **comm; /* NCCL's kernels, in order */
	size_t comms;
	struct nt_kineto_group *group; /* NT_FRAME_MAX_COMMS of them */
	size_t groups;
	uint64_t dropped; /* calls of groups beyond that */
	size_t cycle; /* of the file, from 0: ranks have a file of each cycle, or lack it */
	size_t ahead; /* frames before that of its first step */
	size_t next; /* the step of its next frame */
};

struct nt_kineto_ranks {
	struct nt_kineto_rank *rank;
	size_t ranks;
};

/* After them all members are zero. */
void nt_kineto_rank_release(struct nt_kineto_rank *rank);
void nt_kineto_ranks_release(struct nt_kineto_ranks *ranks);

/* Completes a rank of which all kernels are known, at least one: order, numbers, steps. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_settle(struct nt_kineto_rank *rank);

/*
 * Sorts the ranks, and joins the files of each one. *ret_files: of a rank that lacks none. A rank
 * that lacks files is left out if it is not clear which, and a file was damaged. -EBADMSG if none
 * was, or if files of a rank overlap; -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_join_files(struct nt_kineto_ranks *in, struct nt_trace *trace,
				       size_t *ret_files, struct nt_trace_error *error);

/* Adds the groups of a later file of the rank, and renames those of its calls. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_join_groups(struct nt_kineto_rank *to, struct nt_kineto_rank *from);

/* Merges sorted intervals in place. Returns their number. */
size_t nt_kineto_merge(struct nt_kineto_interval *interval, size_t count);

/* Makes frames of all ranks, which it sorts. -EBADMSG if they are not of one job; -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_kineto_make_trace(struct nt_kineto_ranks *in, struct nt_trace *trace,
				       struct nt_trace_error *ret_error);

/* Adds the nodes to the trace, if the names of all files have them. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_find_nodes(struct nt_kineto_ranks *in, struct nt_trace *trace);

/* Appends to a list whose capacity follows from *count. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_add_interval(struct nt_kineto_interval **list, size_t *count,
					 const struct nt_kineto_interval *interval);

/*
 * Adds a call of the runtime: it enqueues, or waits for the device. A copy from or to memory that is
 * not pinned waits too, so that copies are both. correlation 0: none. -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_add_call(struct nt_kineto_rank *out, const char *name,
				     uint32_t correlation,
				     const struct nt_kineto_interval *interval);

/* "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)" → "AllReduce". */
void nt_kineto_collective_name(const char *kernel, char *ret_name, size_t size);

/* Reads the file of a rank: all members that it has. -EBADMSG with *ret_error, -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_file(struct nt_kineto_rank *out, struct nt_trace_error *ret_error);

/* The members of events that are read: what is not in it is skipped. */
extern const struct nt_json_pick nt_kineto_event[];

/* Reads one event, if it is relevant. -EBADMSG, -E2BIG, -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_event(struct nt_kineto_rank *out,
				       const struct nt_json_value *event, uint64_t base_ns,
				       struct nt_trace_error *error);

/* Reads the groups listed by distributedInfo. -EBADMSG for a contradictory list; -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_groups(struct nt_kineto_rank *rank,
					const struct nt_json_value *info,
					struct nt_trace_error *ret_error);

/* The call of the kernel, if its arguments identify it. -EBADMSG for invalid ones; -ENOMEM. */
NT_MUST_CHECK int nt_kineto_read_call(struct nt_kineto_rank *rank, const struct nt_json_value *args,
				      struct nt_kineto_interval *kernel,
				      struct nt_trace_error *ret_error);

/* Finds or adds the group of that name; NULL beyond the cap of a frame. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_find_group(struct nt_kineto_rank *rank, const char *name,
				       struct nt_kineto_group **ret_group);

/* Numbers the calls without a number, in their order. */
void nt_kineto_number_calls(struct nt_kineto_rank *rank);

/* Derives the steps of a rank whose trace has none, if its calls have a period. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_find_steps(struct nt_kineto_rank *rank);

/*
 * Sets ends_step of the collectives behind which a step ends, and step_calls, by the kernels that
 * repeat once per step. Neither if there are none. -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_mark_steps(struct nt_kineto_rank *rank);

/* Ranks of one group whose derived steps differ in length take those of the majority. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_agree_steps(const struct nt_kineto_ranks *in);

/*
 * Pairs the derived steps of all ranks, of one file each, by the distances of their ends, so that a rank which
 * lacks the end of a step has it nonetheless. Sets `ahead`. -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_align_steps(const struct nt_kineto_ranks *in);

/* Matches kernels with their launches. */
void nt_kineto_match_launches(struct nt_kineto_rank *rank);

/* Places the steps on the device, if the launches are known. -ENOMEM. */
NT_MUST_CHECK int nt_kineto_place_steps(struct nt_kineto_rank *rank);

/*
 * Time in [from, to) in which the device had nothing to compute because its host had not launched
 * it yet, without waits of the host for the device. A launch waits for room in the device's queue,
 * which a collective holds up: that is no host work. Requires has_launches.
 */
uint64_t nt_kineto_late_ns(const struct nt_kineto_rank *rank, uint64_t from, uint64_t to);

/*
 * A host that is ahead of its device hides a stall until the device has run dry, as after a
 * synchronisation. Charges what that step paid to all steps before it that had the same stall.
 * Stalls that were there from the start stay where they were paid. late_ns: of each step, by
 * nt_kineto_late_ns(). Without gap_ns nothing changes. -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_spread_late(const struct nt_kineto_rank *rank, uint64_t *late_ns);

/* The time in [from, to) covered by disjoint, ascending intervals. */
uint64_t nt_kineto_covered_ns(const struct nt_kineto_interval *interval, size_t count,
			      uint64_t from, uint64_t to);

/*
 * For traces that state the sizes of groups, but not their names: finds the members by the times at
 * which calls end. Nothing is changed where that is ambiguous. world 0: unknown. -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_derive_groups(struct nt_kineto_ranks *in, uint32_t world);

/*
 * For traces without groups. If all ranks make the same calls, and none sends to a single rank, all
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

/* A call of a group in which all members wait for the last one. */
bool nt_kineto_is_synchronising(const struct nt_kineto_interval *kernel);

/*
 * Adds the arrival times of the collectives that all given members recorded, group by group. Calls
 * are paired by number if the traces have it, else by overlap in time. Traces without groups are
 * taken as one group. -ENOMEM.
 */
NT_MUST_CHECK int nt_kineto_add_collectives(const struct nt_kineto_ranks *in,
					    struct nt_trace *trace);

#endif
