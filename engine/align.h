/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Alignment of call numbers between ranks. Numbers agree on all ranks if the library numbers its
 * calls, or if counting began with the communicator's first call. If it began later (an agent
 * attached late, restarted or lost events), a rank's numbers are off by an unknown shift. A
 * synchronising call releases all ranks at one instant, so calls sampled on both sides are matched
 * by release time, which gives the shift.
 */
#ifndef NT_ENGINE_ALIGN_H
#define NT_ENGINE_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/job.h"
#include "proto/arena.h"

enum {
	NT_ALIGN_WHOLE = 0, /* group of numbers that need no alignment */
	NT_ALIGN_VOTES = 3, /* calls that must agree on a shift */
};

/* Maximum clock difference of two nodes; closer calls cannot be distinguished by time. */
#define NT_ALIGN_CLOCK_NS (5ULL * 1000000)

struct nt_align_counters {
	uint64_t aligned; /* epochs whose shift was found */
	uint64_t tried; /* attempts without a result */
};

/* How to convert the call numbers of one communicator on one rank. */
struct nt_align_reading {
	uint64_t group; /* numbers of one group are comparable */
	uint64_t shift; /* added to a number, modulo 2^64 */
};

struct nt_align_reading nt_align_read(const struct nt_rank_session *session,
				      const struct nt_comm_window *comm);

/* The shift for the number of the call that the rank is in. */
uint64_t nt_align_shift(const struct nt_rank_session *session, const struct nt_window *window);

/*
 * Tries to align the job's ranks; the first windows[i] waiting windows of rank i are the cell's.
 * -ENOMEM.
 */
NT_MUST_CHECK int nt_align_cell(const struct nt_job *job, const size_t *windows,
				struct nt_arena *arena, struct nt_align_counters *counters);

#endif
