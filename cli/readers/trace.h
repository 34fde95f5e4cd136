/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A trace of a whole job read from files, as frames for the detection: the output of every offline
 * reader and the input of `neutracer analyze`. The trace owns all that its frames point to.
 */
#ifndef NT_CLI_READERS_TRACE_H
#define NT_CLI_READERS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "detect/model/frame.h"
#include "proto/arena.h"

enum {
	NT_TRACE_MAX_FRAMES = 1 << 20,
	NT_TRACE_MAX_WAITS = 256,
	NT_TRACE_MAX_MISSING = 256,
	NT_TRACE_ERROR_BYTES = 512,
	NT_TRACE_MAX_UNREAD = 16, /* that are named; all are counted */
};

struct nt_trace_frame {
	struct nt_frame frame;
	struct nt_frame_rank *rank;
	struct nt_frame_sample *sample;
	struct nt_frame_comm *comm; /* of all its ranks; NULL if the files have none */
	struct nt_frame_op *op; /* of all its communicators */
};

/* Metadata of a rank in the files. */
struct nt_trace_rank_info {
	uint32_t rank;
	uint32_t node; /* index of a name in nt_trace.node, or NT_FRAME_NO_NODE */
	bool lacks; /* its file exists, but contains no usable data */
	char op[32]; /* the operation to watch on it, as in the files; "" */
	uint64_t group; /* equal on the ranks of this operation; 0: none */
};

/* One step of the job, by the clock of its first rank. */
struct nt_trace_step {
	uint64_t start_ns, end_ns;
};

struct nt_trace_node {
	char name[64];
};

/* Arrival times of one collective. */
struct nt_trace_collective {
	char name[64];
	uint64_t number;
	size_t ranks;
	uint32_t last_rank; /* that arrived last */
	uint64_t lateness_ns; /* its arrival minus the (lower) median arrival */
	uint64_t spread_ns; /* last minus first arrival */
	uint64_t transfer_ns; /* the shortest duration: without waiting */
};

/* A call in which ranks hang, or hung when the files were written. */
struct nt_trace_wait {
	char group[48]; /* as in the files */
	uint64_t number, wait_ns; /* wait: of the first arrival */
	uint8_t op; /* enum nt_op */
	bool mixed; /* not all members wait in the same operation */
	const uint32_t *rank, *absent; /* that entered it; members that did not */
	const uint64_t *absent_at; /* the last calls that those entered; UINT64_MAX: unknown */
	size_t ranks, absents;
};

struct nt_trace {
	char job[64];
	struct nt_arena arena; /* other data that frames point to */
	uint64_t dropped; /* calls of process groups beyond NT_FRAME_MAX_COMMS of a rank */
	bool cut; /* its last line is cut short, and left out */
	bool hangs; /* it was written because calls do not end */
	bool partial; /* ranks lack some of their files */
	bool ungrouped; /* its calls have no process groups */
	bool groupless; /* no file of its format has them */
	size_t hostless; /* ranks with a GPU whose host work is not recorded */
	uint32_t world; /* ranks of the job, including those not given; 0: unknown */
	size_t given; /* ranks with a file; 0: those of the frames */
	const uint32_t *missing; /* ranks without a file, as far as listed; lies in the arena */
	size_t missings; /* at most NT_TRACE_MAX_MISSING */
	struct nt_trace_frame *frame;
	size_t frames, frame_cap;
	struct nt_trace_collective *collective;
	size_t collectives;
	const struct nt_trace_wait *wait; /* lies in the arena */
	size_t waits, waits_dropped; /* dropped: beyond NT_TRACE_MAX_WAITS */
	struct nt_trace_rank_info *rank_info; /* ascending by rank; NULL if unknown */
	size_t rank_infos;
	struct nt_trace_node *node;
	size_t nodes;
	struct nt_trace_step *step; /* NULL: a frame is a step */
	size_t steps;
	const char *remark; /* a limit of these files, for the notes; NULL: none */
	/* Why files of ranks were left out; the texts lie in the arena. */
	const char *unread_text[NT_TRACE_MAX_UNREAD];
	size_t unread;
	int unread_error; /* of the first */
};

/* Why a file was rejected: file, line if there is one, and the defect. */
struct nt_trace_error {
	char text[NT_TRACE_ERROR_BYTES];
};

/* An empty trace, to be filled from that many files. -EINVAL: none, or more than ranks; -ENOMEM. */
NT_MUST_CHECK int nt_trace_new(size_t files, struct nt_trace **ret_trace);
void nt_trace_free(struct nt_trace *trace);
NT_DEFINE_AUTO(nt_trace, nt_trace_free)

/* NULL if the files have nothing about the rank. */
const struct nt_trace_rank_info *nt_trace_find_rank_info(const struct nt_trace *trace,
							 uint32_t rank);

/*
 * The index of the node of that name. It is added if it is new: trace->node has room for one of each
 * rank. NT_FRAME_NO_NODE without a name.
 */
uint32_t nt_trace_find_node(struct nt_trace *trace, const struct nt_trace_node *node);

/* Appends an empty frame with room for that many ranks and samples. -ENOMEM, -E2BIG at the cap. */
NT_MUST_CHECK int nt_trace_frame_add(struct nt_trace *trace, size_t ranks, size_t samples,
				     struct nt_trace_frame **ret_frame);

/* For qsort(): the order of struct nt_frame_sample in a frame, and then by arrival. */
int nt_trace_compare_samples(const void *a, const void *b);

/*
 * For readers of several files, of which one failed with r: notes the reason and clears *error, and
 * the file is left out. -ENOMEM, also if that is r.
 */
NT_MUST_CHECK int nt_trace_leave_out(struct nt_trace *trace, int r, struct nt_trace_error *error);

/* After the last file: fails with the first reason if none was read. */
NT_MUST_CHECK int nt_trace_check_read(const struct nt_trace *trace, size_t read,
				      struct nt_trace_error *error);

/* Formats *error and returns -EBADMSG: for readers. */
int nt_trace_refuse(struct nt_trace_error *error, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Reads operation times of a Megatron-style job (ByteDance's StragglerAnalysis). The file is a CSV,
 * perhaps gzipped, with the columns dp_rank, stage, rank, step, optype, start_ts, duration and
 * others. A step is a frame. Own work is the sum of the operations whose names end in -compute
 * (T3). Times start at 0. -EBADMSG with *ret_error for a malformed file.
 */
NT_MUST_CHECK int nt_trace_read_straggler(const char *path, struct nt_trace **ret_trace,
					  struct nt_trace_error *ret_error);

/*
 * Reads PyTorch profiler (Kineto) traces, one file per rank, each JSON and perhaps gzipped. A
 * profiler step is a frame. Own work is the busy time of kernels that are not NCCL's (T3).
 * Collectives are matched by their order on each rank.
 */
NT_MUST_CHECK int nt_trace_read_kineto(const char *const *paths, size_t count,
				       struct nt_trace **ret_trace,
				       struct nt_trace_error *ret_error);

/*
 * Reads the communication markers that openEuler's sysTrace writes, one file per rank
 * (hccl_activity-IP-.RANK.csv). A step is the period of a rank's calls, own work is the gaps
 * between them on the device (T2). A rank whose file has no operation is included, with `lacks`
 * set.
 */
NT_MUST_CHECK int nt_trace_read_systrace(const char *const *paths, size_t count,
					 struct nt_trace **ret_trace,
					 struct nt_trace_error *ret_error);

#endif
