/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the frames of a trace end: at the steps of one of its ranks, half a second together at least,
 * and as far apart before and after them. An end lies half a step behind that rank's, so that clocks
 * may differ by as much before a step of one rank falls into another frame than the same of another.
 */
#ifndef NT_CLI_READERS_GRID_H
#define NT_CLI_READERS_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "cli/readers/timeline.h"
#include "common/base/cleanup.h"

struct nt_grid {
	uint64_t *edge; /* ends of frames 0 to edges - 1, ascending */
	size_t edges;
	uint64_t length_ns;
};

/* Of at least one step. All zero is empty. -ENOMEM. */
NT_MUST_CHECK int nt_grid_make(struct nt_grid *grid, const struct nt_steps *steps);
void nt_grid_release(struct nt_grid *grid);

/* The frame that a time up to INT64_MAX falls into, and the time that a frame ends at. */
int64_t nt_grid_bin(const struct nt_grid *grid, uint64_t time_ns);
uint64_t nt_grid_end(const struct nt_grid *grid, int64_t bin);

#endif
