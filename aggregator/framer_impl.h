/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The framer from inside; for aggregator/framer*.c alone. */
#ifndef NT_AGGREGATOR_FRAMER_IMPL_H
#define NT_AGGREGATOR_FRAMER_IMPL_H

#include "aggregator/framer.h"
#include "proto/arena.h"

struct nt_framer {
	uint64_t cell_min_ns;
	struct nt_framer_counters counters;
	struct nt_arena arena; /* of the frame that was handed out last */
	struct nt_frame frame;
};

/* Zeroed, and never NULL for want of a count. NULL where memory is short. */
static inline void *nt_framer_alloc(struct nt_framer *framer, size_t count, size_t size)
{
	return nt_arena_alloc(&framer->arena, count ? count * size : 1);
}

/* framer_rank.c: what a member did in so many of its windows, the first that wait. -ENOMEM. */
NT_MUST_CHECK int nt_framer_fill(struct nt_framer *framer, struct nt_member *member, size_t windows,
				 uint64_t end_ns, struct nt_frame_rank *rank);

/* Keeps apart work of ranks that are sampled, or seen without some calls, and of those that are not. */
void nt_framer_part(const struct nt_job *job, struct nt_frame_rank *rank, size_t ranks);

/*
 * framer_grid.c: how much of the open frame is missing, by the windows of each member; and how long
 * the next cell is. -ENOMEM.
 */
void nt_framer_weigh(struct nt_framer *framer, struct nt_job *job, const size_t *windows);
NT_MUST_CHECK int nt_framer_stretch(struct nt_framer *framer, struct nt_job *job);

#endif
