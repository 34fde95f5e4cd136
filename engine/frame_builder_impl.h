/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the frame builder. Private to engine/frame_builder*.c. */
#ifndef NT_ENGINE_FRAME_BUILDER_IMPL_H
#define NT_ENGINE_FRAME_BUILDER_IMPL_H

#include "engine/frame_builder.h"
#include "proto/arena.h"

struct nt_frame_builder {
	uint64_t cell_min_ns;
	struct nt_frame_builder_counters counters;
	struct nt_arena arena; /* of the last returned frame */
	struct nt_frame frame;
};

/* Zeroed memory; non-NULL for a count of 0. NULL on allocation failure. */
static inline void *nt_frame_builder_alloc(struct nt_frame_builder *frame_builder, size_t count,
					   size_t size)
{
	return nt_arena_alloc(&frame_builder->arena, count ? count * size : 1);
}

/* frame_builder_rank.c: fills `rank` from the first `windows` waiting windows. -ENOMEM. */
NT_MUST_CHECK int nt_frame_builder_fill(struct nt_frame_builder *frame_builder,
					struct nt_rank_session *session, size_t windows,
					uint64_t end_ns, struct nt_frame_rank *rank);

/*
 * Excludes work of ranks that are observed differently (sampled, some calls shed) from most others.
 */
void nt_frame_builder_part(const struct nt_job *job, struct nt_frame_rank *rank, size_t ranks);

/*
 * frame_builder_grid.c: computes the completeness of the open frame from each session's windows, and
 * the length of the next cell. -ENOMEM.
 */
void nt_frame_builder_weigh(struct nt_frame_builder *frame_builder, struct nt_job *job,
			    const size_t *windows);
NT_MUST_CHECK int nt_frame_builder_stretch(struct nt_frame_builder *frame_builder,
					   struct nt_job *job);

#endif
