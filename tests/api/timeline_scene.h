/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Invented timelines for the tests of what stands behind the board: in the second half of the time
 * rank 5 works a third longer than the others, which wait for it. The last rank is never observed.
 */
#ifndef NT_TESTS_API_TIMELINE_SCENE_H
#define NT_TESTS_API_TIMELINE_SCENE_H

#include <assert.h>
#include <stdlib.h>

#include "engine/snapshot.h"
#include "engine/timeline/job_timeline.h"

enum {
	NT_TEST_CELLS = 12,
	NT_TEST_SLOW_RANK = 5,
};

static inline struct nt_timeline_ranks *nt_test_timeline_ranks(const struct nt_snapshot_job *job)
{
	struct nt_timeline_ranks *ranks =
		calloc(1, sizeof(*ranks) + job->ranks * sizeof(ranks->rank[0]));

	assert(ranks);
	ranks->count = job->ranks;
	for (size_t i = 0; i < job->ranks; i++)
		ranks->rank[i] = job->rank[i].rank;
	return ranks;
}

static inline void nt_test_fill_cell(struct nt_timeline_cell *cell, bool is_slow)
{
	const size_t ranks = cell->ranks->count;
	uint8_t *own = &cell->value[NT_TIMELINE_OWN * ranks];
	uint8_t *waiting = &cell->value[NT_TIMELINE_WAITING * ranks];
	uint8_t *excess = &cell->value[NT_TIMELINE_EXCESS * ranks];

	for (size_t i = 0; i + 1 < ranks; i++) {
		const bool is_culprit = is_slow && cell->ranks->rank[i] == NT_TEST_SLOW_RANK;
		const int share = is_culprit ? 98 : is_slow ? 70 : 90 + (int)(i % 3);

		own[i] = (uint8_t)(NT_TIMELINE_ZERO + share);
		waiting[i] = (uint8_t)(NT_TIMELINE_ZERO + 100 - share);
		excess[i] = (uint8_t)(NT_TIMELINE_EVEN + (is_culprit ? 28 : (int)(i % 3) - 1));
	}
}

/* Cells of ten seconds, the last one up to end_ns. After the job's ranks. */
static inline void nt_test_set_timeline(struct nt_snapshot_job *job, size_t cells, uint64_t end_ns)
{
	struct nt_timeline_ranks *ranks = nt_test_timeline_ranks(job);
	struct nt_timeline_cell **list =
		nt_snapshot_job_alloc(job, cells, sizeof(struct nt_timeline_cell *));

	assert(list && cells);
	atomic_init(&ranks->refs, (unsigned int)cells);
	for (size_t i = 0; i < cells; i++) {
		struct nt_timeline_cell *cell =
			calloc(1, sizeof(*cell) + NT_TIMELINE_SERIES * ranks->count);

		assert(cell);
		atomic_init(&cell->refs, 1);
		cell->end_ns = end_ns - (cells - 1 - i) * NT_TIMELINE_CELL_NS;
		cell->start_ns = cell->end_ns - NT_TIMELINE_CELL_NS;
		cell->step_ns = 430e6;
		cell->ranks = ranks;
		nt_test_fill_cell(cell, i >= cells / 2);
		list[i] = cell;
	}
	job->timeline = list;
	job->timeline_cells = cells;
}

#endif
