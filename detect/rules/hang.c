/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The call that each rank is in. */
#include "detect/rules/hang.h"

#include "detect/rules/hang_impl.h"
#include "detect/thresholds/thresholds.h"

static bool moves_bytes(const struct nt_frame_rank *seen)
{
	const double window = (double)seen->window_ns;
	const double bytes = (double)seen->read_bytes + (double)seen->write_bytes;

	return seen->state == 'D' || (bytes > 0.0 && bytes * 1e9 >= NT_WORKING_BYTES * window) ||
	       (window > 0.0 && (double)seen->io_ns >= NT_WORKING_PART * window);
}

static bool is_at_work(const struct nt_frame_rank *seen)
{
	const double window = (double)seen->window_ns;

	return moves_bytes(seen) ||
	       (window > 0.0 && (double)seen->on_cpu_ns >= NT_WORKING_PART * window);
}

void nt_hang_note(struct nt_detect *detect, struct nt_detect_rank *rank,
		  const struct nt_frame_rank *seen)
{
	rank->inside = seen->inside;
	/* From here on they are exclusive: in_call means a call of a communicator. */
	rank->inside.in_call = seen->inside.in_call && !seen->inside.synchronising;
	rank->sampled = seen->sampled;
	rank->lost_sight = seen->lost_sight;
	rank->unrecorded = seen->unrecorded;
	rank->state = seen->state;
	rank->seen_ns = detect->end_ns;
	rank->seen_frame = detect->frames;
	if (seen->inside.in_call)
		rank->inside_ns = detect->end_ns;
	if (is_at_work(seen))
		rank->worked_ns = detect->end_ns;
	if (moves_bytes(seen))
		rank->stored_ns = detect->end_ns;
}

uint64_t nt_hang_waited(const struct nt_detect *detect, const struct nt_detect_rank *rank)
{
	const struct nt_frame_inside *inside = &rank->inside;

	if ((!inside->in_call && !inside->synchronising) || !is_live(rank) ||
	    !is_fresh(detect, rank))
		return 0;
	return detect->end_ns > inside->since_ns ? detect->end_ns - inside->since_ns : 0;
}
