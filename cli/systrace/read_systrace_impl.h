/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the sysTrace marker reader; for cli/systrace/read_systrace*.c only. */
#ifndef NT_CLI_READERS_READ_SYSTRACE_IMPL_H
#define NT_CLI_READERS_READ_SYSTRACE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "cli/systrace/clocks.h"
#include "cli/systrace/grid.h"
#include "common/base/table.h"

struct nt_systrace_file {
	const char *path;
	uint32_t rank;
	struct nt_trace_node node;
	bool unread; /* left out */
	int64_t ahead_ns; /* its clock's distance, taken off its times */
};

/* Calls of one operation and size of one communicator in one window of a rank. */
struct nt_systrace_tally {
	uint64_t group, bytes, calls, first, last, sum_ns, min_ns;
	uint8_t op, frame_kind, size; /* size: nt_collective_size() */
	bool leads; /* the others of this operation and communicator are linked to it */
	size_t next; /* of another size: index into rank.tally + 1, 0: none */
};

/* Whole steps of a rank that ended in one frame. */
struct nt_systrace_window {
	int64_t bin; /* frame number: see struct nt_grid */
	uint32_t steps;
	uint64_t start_ns, end_ns, step_ns, own_ns, longest_ns, early_ns, device_ns, comm_ns, calls;
	size_t tally, tallies; /* in struct nt_systrace_rank */
};

struct nt_systrace_member {
	uint64_t group, calls;
	uint32_t index; /* of this rank in the communicator, once all ranks are read */
	unsigned int use; /* enum nt_stage_use */
	struct nt_clocks_call *call; /* the first ones, for nt_clocks_find() */
	size_t ends;
};

struct nt_systrace_rank {
	uint32_t number;
	int32_t stage; /* the rank that represents all with the same work, or -1 */
	struct nt_systrace_window *window;
	size_t windows, at; /* at: the next one not yet in a frame */
	struct nt_systrace_tally *tally;
	size_t tallies;
	struct nt_systrace_member member[NT_FRAME_MAX_COMMS];
	size_t members;
	uint64_t dropped; /* calls of further communicators */
	uint64_t first_ns; /* by its own clock */
};

struct nt_systrace_comm {
	uint64_t group, calls; /* calls: the most of a member */
	uint32_t size, whole; /* whole: with the ranks without a file */
	unsigned int use;
	UT_hash_handle hh;
};

struct nt_systrace_job {
	struct nt_systrace_file *file;
	size_t files;
	struct nt_systrace_rank *rank;
	size_t ranks;
	struct nt_systrace_comm *comm;
	struct nt_grid grid;
	size_t reference; /* the file whose steps delimit the frames */
	struct nt_trace *trace;
	struct nt_trace_error *error;
};

/*
 * Reads the rank of the file; *ret_info describes it, and `lacks` is set if it has no step. Several
 * threads may do so. -EBADMSG with *error, -ENOMEM.
 */
NT_MUST_CHECK int nt_systrace_read_rank(const struct nt_grid *grid,
					const struct nt_systrace_file *file,
					struct nt_systrace_rank *rank,
					struct nt_trace_rank_info *ret_info,
					struct nt_trace_error *error);
void nt_systrace_release_rank(struct nt_systrace_rank *rank);

/* For nt_systrace_name_growth(): ranks of one stage in a frame. */
struct nt_systrace_part {
	int32_t stage;
	size_t at; /* of the frame's ranks */
	double steps, early_ns, rest_ns; /* of the longest piece, per step */
};

/*
 * In the longest piece of a step, the part before the launch counts as the device's if it is the
 * smaller one. Where it grew over that of the peers, and by more than the rest, its growth is the
 * host's. `part` is reordered. -ENOMEM.
 */
NT_MUST_CHECK int nt_systrace_name_growth(struct nt_systrace_part *part, size_t parts,
					  struct nt_frame_rank *rank);

/*
 * Compares the clocks of the ranks of all files that were read, and notes what it finds for the
 * report. Sets file.ahead_ns where a clock is too far from the reference's, and *ret_ranks to their
 * number: these are to be read again. -ENOMEM.
 */
NT_MUST_CHECK int nt_systrace_compare_clocks(struct nt_systrace_job *job, size_t *ret_ranks);

#endif
