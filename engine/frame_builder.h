/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The frame builder: groups a job's windows into frames for the detector. Frames lie on a time
 * grid: the windows of all ranks that end in one cell form one frame. A cell lasts at least half a
 * second, and long enough that in steady state every rank has a window with steps in it. Its length
 * depends on closed cells only, so the order of arrival has no effect.
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
/* A longer period without any window is skipped, not judged cell by cell. */
#define NT_FRAME_BUILDER_SKIP_NS (30ULL * 1000000000)

struct nt_frame_builder_counters {
	uint64_t frames, incomplete_frames, skipped_gaps;
	uint64_t dropped_comms; /* over NT_FRAME_MAX_COMMS */
	uint64_t dropped_transfers; /* over NT_FRAME_MAX_TRANSFERS */
	uint64_t unaligned_samples; /* of communicators missing in the window */
	struct nt_align_counters align;
};

struct nt_frame_builder;

/* cell_min_ns 0: the default. */
NT_MUST_CHECK int nt_frame_builder_new(uint64_t cell_min_ns,
				       struct nt_frame_builder **ret_frame_builder);
void nt_frame_builder_free(struct nt_frame_builder *frame_builder);
NT_DEFINE_AUTO(nt_frame_builder, nt_frame_builder_free)

/* End of the job's open cell, when it is to be closed; UINT64_MAX: the job has ended. */
uint64_t nt_frame_builder_due_ns(struct nt_frame_builder *frame_builder, struct nt_job *job);

/*
 * Closes the job's open cell and opens the next. Consumes the windows that end in it and updates
 * the rank sessions from them (names, ends). *ret_frame is valid until the next call.
 */
NT_MUST_CHECK int nt_frame_builder_close(struct nt_frame_builder *frame_builder,
					 struct nt_jobs *jobs, struct nt_job *job,
					 const struct nt_frame **ret_frame);

/* Skips empty cells up to the next window or closable_ns, if that is far away. */
void nt_frame_builder_skip(struct nt_frame_builder *frame_builder, struct nt_job *job,
			   uint64_t closable_ns);

const struct nt_frame_builder_counters *
nt_frame_builder_counters(const struct nt_frame_builder *frame_builder);

/* Maps an operation of the wire to its kind. */
enum nt_frame_kind nt_frame_builder_kind(enum nt_op op);

#endif
