/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A trace of a whole job read from files, as the frames that the detection takes: what every
 * offline reader makes and `neutracer analyze` judges. The trace owns all that its frames point to.
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
	NT_TRACE_ERROR_BYTES = 512,
};

struct nt_trace_frame {
	struct nt_frame frame;
	struct nt_frame_rank *rank;
	struct nt_frame_sample *sample;
	struct nt_frame_comm *comm; /* of all its ranks; NULL where the files tell of none */
	struct nt_frame_op *op; /* of all its communicators */
};

/* What the files say of a rank beside its times. */
struct nt_trace_place {
	uint32_t rank;
	uint32_t node; /* index of a name in nt_trace.node, or NT_FRAME_NO_NODE */
	bool lacks; /* its file is there and holds nothing that could be judged */
	char op[32]; /* the operation to watch on it, as the files call it; "" */
	uint64_t group; /* equal on those that it does this operation with; 0: with nobody */
};

/* One step of the job, as its first rank saw it. */
struct nt_trace_step {
	uint64_t start_ns, end_ns;
};

struct nt_trace_node {
	char name[64];
};

/* One collective as the trace shows it: who came when. */
struct nt_trace_collective {
	char name[64];
	uint64_t number;
	size_t ranks;
	uint32_t last_rank; /* that arrived last */
	uint64_t lateness_ns; /* its arrival minus the median arrival */
	uint64_t spread_ns; /* last minus first arrival */
	uint64_t transfer_ns; /* the shortest duration: nobody was waited for any more */
};

/* A call in which ranks stand still, or stood when the files were written. */
struct nt_trace_wait {
	char group[48]; /* as the files call it */
	uint64_t number, wait_ns; /* wait: of who came first */
	uint8_t op; /* enum nt_op */
	bool mixed; /* not all of them wait in the same operation */
	const uint32_t *rank, *absent; /* that entered it; members that did not, of those given */
	size_t ranks, absents;
};

struct nt_trace {
	char job[64];
	struct nt_arena arena; /* what frames point to beside */
	uint64_t dropped; /* calls of process groups beyond NT_FRAME_MAX_COMMS of a rank */
	bool hangs; /* it was written because calls do not end */
	bool ungrouped; /* its calls do not say who makes them together */
	uint32_t world; /* ranks that the job has, given or not; 0: the files do not say */
	struct nt_trace_frame *frame;
	size_t frames, frame_cap;
	struct nt_trace_collective *collective;
	size_t collectives;
	const struct nt_trace_wait *wait; /* lies in the arena */
	size_t waits, waits_dropped; /* dropped: beyond NT_TRACE_MAX_WAITS */
	struct nt_trace_place *place; /* ascending by rank; NULL where nothing is known */
	size_t places;
	struct nt_trace_node *node;
	size_t nodes;
	struct nt_trace_step *step; /* NULL: a frame is a step */
	size_t steps;
};

/* Why a file was refused: file, line where there is one, and what is wrong with it. */
struct nt_trace_error {
	char text[NT_TRACE_ERROR_BYTES];
};

void nt_trace_free(struct nt_trace *trace);
NT_DEFINE_AUTO(nt_trace, nt_trace_free)

/* NULL where the files say nothing of the rank. */
const struct nt_trace_place *nt_trace_find_place(const struct nt_trace *trace, uint32_t rank);

/* Appends an empty frame with room for that many ranks and samples. -ENOMEM, -E2BIG at the cap. */
NT_MUST_CHECK int nt_trace_frame_add(struct nt_trace *trace, size_t ranks, size_t samples,
				     struct nt_trace_frame **ret_frame);

/* Says why in *error and returns -EBADMSG: for readers. */
int nt_trace_refuse(struct nt_trace_error *error, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The operation times of a Megatron-style job (ByteDance's StragglerAnalysis): a CSV, perhaps
 * gzipped, with the columns dp_rank, stage, rank, step, optype, start_ts, duration, … A step is a
 * frame, own work is the sum of the operations named …-compute (T3), and times start at 0.
 * -EBADMSG with *ret_error for a file that is no such table.
 */
NT_MUST_CHECK int nt_trace_read_straggler(const char *path, struct nt_trace **ret_trace,
					  struct nt_trace_error *ret_error);

/*
 * PyTorch profiler (Kineto) traces, one file per rank, each JSON and perhaps gzipped. A profiler
 * step is a frame, own work is the busy time of kernels that are not NCCL's (T3), and the
 * collectives are compared by their order on each rank.
 */
NT_MUST_CHECK int nt_trace_read_kineto(const char *const *paths, size_t count,
				       struct nt_trace **ret_trace,
				       struct nt_trace_error *ret_error);

/*
 * The markers of communication operations that openEuler's sysTrace writes, one file per rank
 * (hccl_activity-IP-.RANK.csv). A step is the period of a rank's calls, own work is what lies
 * between them on the device (T2). A rank whose file holds no operation is there, and lacks.
 */
NT_MUST_CHECK int nt_trace_read_systrace(const char *const *paths, size_t count,
					 struct nt_trace **ret_trace,
					 struct nt_trace_error *ret_error);

#endif
