/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Cuts a job's windows into frames for the detection. Frames lie on a grid: the windows of all ranks
 * that end in one cell are one frame. A cell is at least half a second long, and long enough that in
 * steady state every rank has a window with steps in each; its length follows the windows of closed
 * cells only, so that the order in which messages arrive cannot change it.
 */
#ifndef NT_ENGINE_FRAME_BUILDER_H
#define NT_ENGINE_FRAME_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "detect/model/frame.h"
#include "engine/align.h"
#include "engine/job.h"

#define NT_FRAME_BUILDER_CELL_MIN_NS (500ULL * 1000000)
#define NT_FRAME_BUILDER_CELL_MAX_NS (600ULL * 1000000000)
/* A longer stretch in which nobody said anything is skipped, not judged cell by cell. */
#define NT_FRAME_BUILDER_SKIP_NS (30ULL * 1000000000)

struct nt_frame_builder_counters {
	uint64_t frames, incomplete_frames, skipped_gaps;
	uint64_t dropped_comms; /* over NT_FRAME_MAX_COMMS */
	uint64_t dropped_transfers; /* over NT_FRAME_MAX_TRANSFERS */
	uint64_t unaligned_samples; /* of a communicator that the window does not have */
	struct nt_align_counters align;
};

struct nt_frame_builder;

/* cell_min_ns 0: the default. */
NT_MUST_CHECK int nt_frame_builder_new(uint64_t cell_min_ns,
				       struct nt_frame_builder **ret_frame_builder);
void nt_frame_builder_free(struct nt_frame_builder *frame_builder);
NT_DEFINE_AUTO(nt_frame_builder, nt_frame_builder_free)

/* When the job's open cell ends, and is to be closed. UINT64_MAX: never, the job is over. */
uint64_t nt_frame_builder_due_ns(struct nt_frame_builder *frame_builder, struct nt_job *job);

/*
 * Closes the job's open cell: windows that end in it are used up, members take over what they say
 * (names, ends), the next cell opens. *ret_frame is valid until the next call.
 */
NT_MUST_CHECK int nt_frame_builder_close(struct nt_frame_builder *frame_builder,
					 struct nt_jobs *jobs, struct nt_job *job,
					 const struct nt_frame **ret_frame);

/* Skips empty cells up to the next window or closable_ns, where that is far away. */
void nt_frame_builder_skip(struct nt_frame_builder *frame_builder, struct nt_job *job,
			   uint64_t closable_ns);

const struct nt_frame_builder_counters *
nt_frame_builder_counters(const struct nt_frame_builder *frame_builder);

/* What the rules must know of an operation of the wire. */
enum nt_frame_kind nt_frame_builder_kind(enum nt_op op);

#endif
