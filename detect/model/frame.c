/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lookup in a frame. */
#include "detect/model/frame.h"

#include "common/base/search.h"

const struct nt_frame_rank *nt_frame_find(const struct nt_frame *frame, uint32_t number)
{
	size_t low;

	/* Most frames hold all ranks from 0 on. */
	if (number < frame->ranks && frame->rank[number].rank == number)
		return &frame->rank[number];
	low = nt_search_first(0, frame->ranks, i, frame->rank[i].rank >= number);
	return low < frame->ranks && frame->rank[low].rank == number ? &frame->rank[low] : NULL;
}

const struct nt_frame_comm *nt_frame_find_comm(const struct nt_frame_rank *rank, uint64_t comm,
					       size_t likely)
{
	if (rank && likely < rank->comms && rank->comm[likely].id == comm)
		return &rank->comm[likely];
	for (size_t i = 0; rank && i < rank->comms; i++)
		if (rank->comm[i].id == comm)
			return &rank->comm[i];
	return NULL;
}
