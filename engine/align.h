/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Call numbers that can be compared. Where the library numbers its calls, or they were counted from
 * the communicator's first one on, they are the same on all ranks. Where counting began in mid-run
 * (an agent that came late, or was restarted, or lost events) a rank's numbers are off by an unknown
 * shift. A synchronising call releases all ranks at one instant, so that calls which both sides have
 * sampled are recognised by the time of their release, and give the shift.
 */
#ifndef NT_ENGINE_ALIGN_H
#define NT_ENGINE_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/job.h"
#include "proto/arena.h"

enum {
	NT_ALIGN_WHOLE = 0, /* the group of those that need no alignment */
	NT_ALIGN_VOTES = 3, /* calls that must agree on a shift */
};

/* Clocks of two nodes may differ so much; calls that follow closer are not told apart by time. */
#define NT_ALIGN_CLOCK_NS (5ULL * 1000000)

struct nt_align_counters {
	uint64_t aligned; /* epochs whose shift was found */
	uint64_t tried; /* attempts that found none */
};

/* How the numbers of one communicator on one rank are to be read. */
struct nt_align_reading {
	uint64_t group; /* numbers of one group are comparable */
	uint64_t shift; /* to be added, modulo 2^64 */
};

struct nt_align_reading nt_align_read(const struct nt_rank_session *member,
				      const struct nt_comm_window *comm);

/* What is to be added to the number of the call that the member is inside of. */
uint64_t nt_align_shift(const struct nt_rank_session *member, const struct nt_window *window);

/*
 * Tries to align the members whose first `windows[i]` waiting windows are those of the cell. -ENOMEM.
 */
NT_MUST_CHECK int nt_align_cell(const struct nt_job *job, const size_t *windows,
				struct nt_arena *arena, struct nt_align_counters *counters);

#endif
