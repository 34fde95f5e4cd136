/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frame builder from inside; for aggregator/framer*.c alone. */
#ifndef NT_ENGINE_FRAME_BUILDER_IMPL_H
#define NT_ENGINE_FRAME_BUILDER_IMPL_H

#include "engine/frame_builder.h"
#include "proto/arena.h"

struct nt_frame_builder {
	uint64_t cell_min_ns;
	struct nt_frame_builder_counters counters;
	struct nt_arena arena; /* of the frame that was handed out last */
	struct nt_frame frame;
};

/* Zeroed, and never NULL for want of a count. NULL where memory is short. */
static inline void *nt_frame_builder_alloc(struct nt_frame_builder *frame_builder, size_t count,
					   size_t size)
{
	return nt_arena_alloc(&frame_builder->arena, count ? count * size : 1);
}

/* framer_rank.c: what a member did in so many of its windows, the first that wait. -ENOMEM. */
NT_MUST_CHECK int nt_frame_builder_fill(struct nt_frame_builder *frame_builder,
					struct nt_rank_session *member, size_t windows,
					uint64_t end_ns, struct nt_frame_rank *rank);

/* Keeps apart work of ranks that are sampled, or seen without some calls, and of those that are not. */
void nt_frame_builder_part(const struct nt_job *job, struct nt_frame_rank *rank, size_t ranks);

/*
 * framer_grid.c: how much of the open frame is missing, by the windows of each member; and how long
 * the next cell is. -ENOMEM.
 */
void nt_frame_builder_weigh(struct nt_frame_builder *frame_builder, struct nt_job *job,
			    const size_t *windows);
NT_MUST_CHECK int nt_frame_builder_stretch(struct nt_frame_builder *frame_builder,
					   struct nt_job *job);

#endif
