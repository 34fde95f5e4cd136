/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ends of a trace's frames. They are at steps of one of its ranks, at least half a second
 * apart. Before and after these steps they continue evenly. An end is half a step behind that
 * rank's: so far clocks may differ before the same step of two ranks falls into different frames.
 */
#ifndef NT_CLI_READERS_GRID_H
#define NT_CLI_READERS_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "cli/systrace/timeline.h"
#include "common/base/cleanup.h"

struct nt_grid {
	uint64_t *edge; /* ends of frames 0 to edges - 1, ascending */
	size_t edges;
	uint64_t length_ns, step_ns;
};

/* From at least one step. All zero is empty. -ENOMEM. */
NT_MUST_CHECK int nt_grid_make(struct nt_grid *grid, const struct nt_steps *steps);
void nt_grid_release(struct nt_grid *grid);

/* The frame of a time up to INT64_MAX, and the end of a frame. */
int64_t nt_grid_bin(const struct nt_grid *grid, uint64_t time_ns);
uint64_t nt_grid_end(const struct nt_grid *grid, int64_t bin);

#endif
