/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/systrace/grid.h"

#include <assert.h>
#include <errno.h>

#include "common/base/search.h"

/* A window is a step, as in other recordings; shorter steps are joined. */
static const uint64_t least_window_ns = 50000000;

int nt_grid_make(struct nt_grid *grid, const struct nt_steps *steps)
{
	uint64_t step_ns = 0;
	size_t group;
	int r;

	r = nt_steps_median(steps, &step_ns);
	if (r < 0)
		return r;
	group = (size_t)((least_window_ns + step_ns - 1) / step_ns);
	grid->edge = calloc(steps->steps / group + 1, sizeof(*grid->edge));
	if (!grid->edge)
		return -ENOMEM;
	for (size_t i = group - 1; i < steps->steps; i += group)
		grid->edge[grid->edges++] = steps->step[i].end_ns + step_ns / 2;
	if (!grid->edges)
		grid->edge[grid->edges++] = steps->step[steps->steps - 1].end_ns + step_ns / 2;
	grid->length_ns = group * step_ns;
	grid->step_ns = step_ns;
	return 0;
}

int64_t nt_grid_bin(const struct nt_grid *grid, uint64_t time_ns)
{
	uint64_t last;

	assert(grid->edge); /* a job without a step was rejected */
	last = grid->edge[grid->edges - 1];
	if (time_ns <= grid->edge[0])
		return -(int64_t)((grid->edge[0] - time_ns) / grid->length_ns);
	if (time_ns > last)
		return (int64_t)(grid->edges + (time_ns - last - 1) / grid->length_ns);
	return (int64_t)nt_search_first(0, grid->edges, i, grid->edge[i] >= time_ns);
}

uint64_t nt_grid_end(const struct nt_grid *grid, int64_t bin)
{
	const int64_t edges = (int64_t)grid->edges;

	if (bin < 0)
		return grid->edge[0] - (uint64_t)-bin * grid->length_ns;
	if (bin < edges)
		return grid->edge[bin];
	return grid->edge[edges - 1] + (uint64_t)(bin - edges + 1) * grid->length_ns;
}

void nt_grid_release(struct nt_grid *grid)
{
	free(grid->edge);
	*grid = (struct nt_grid){0};
}
