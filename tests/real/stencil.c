/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Heat in a square, by Jacobi's method: a miniapp as it is written with any MPI. Each rank has a band
 * of rows. A step exchanges the rows at its borders with both neighbours and computes the new values;
 * every fiftieth step all ranks reduce the largest change. Rank 0 prints its steps once a second.
 *
 *	mpirun -np 2 stencil
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SIZE = 1200,
	CHECK_STEPS = 50,
};

struct grid {
	int columns, rows, above, below; /* ranks with the neighbouring rows, or MPI_PROC_NULL */
	double *old, *new;
};

static double *row_of(const struct grid *grid, double *values, int row)
{
	return values + (size_t)row * (size_t)grid->columns;
}

static void exchange(const struct grid *grid)
{
	int n = grid->columns;
	MPI_Request all[4];
	MPI_Status status[4]; /* compilers warn of MPICH's MPI_STATUSES_IGNORE */

	(void)MPI_Irecv(row_of(grid, grid->old, 0), n, MPI_DOUBLE, grid->above, 1, MPI_COMM_WORLD,
			&all[0]);
	(void)MPI_Irecv(row_of(grid, grid->old, grid->rows + 1), n, MPI_DOUBLE, grid->below, 2,
			MPI_COMM_WORLD, &all[1]);
	(void)MPI_Isend(row_of(grid, grid->old, grid->rows), n, MPI_DOUBLE, grid->below, 1,
			MPI_COMM_WORLD, &all[2]);
	(void)MPI_Isend(row_of(grid, grid->old, 1), n, MPI_DOUBLE, grid->above, 2, MPI_COMM_WORLD,
			&all[3]);
	(void)MPI_Waitall(4, all, status);
}

/* Returns the largest change. */
static double compute(struct grid *grid)
{
	double largest = 0, *old;

	for (int row = 1; row <= grid->rows; row++) {
		const double *above = row_of(grid, grid->old, row - 1);
		const double *here = row_of(grid, grid->old, row);
		const double *below = row_of(grid, grid->old, row + 1);
		double *new = row_of(grid, grid->new, row);

		for (int i = 1; i < grid->columns - 1; i++) {
			new[i] = 0.25 * (above[i] + below[i] + here[i - 1] + here[i + 1]);
			largest = fmax(largest, fabs(new[i] - here[i]));
		}
	}
	old = grid->old;
	grid->old = grid->new;
	grid->new = old;
	return largest;
}

static void run(struct grid *grid, int rank)
{
	double shown = MPI_Wtime(), change, all = 1;
	uint64_t steps = 0, shown_steps = 0;

	while (all > 0) {
		double now;

		exchange(grid);
		change = compute(grid);
		steps++;
		if (steps % CHECK_STEPS == 0)
			(void)MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		now = MPI_Wtime();
		if (rank != 0 || now - shown < 1)
			continue;
		printf("step %llu, %.2f ms a step\n", (unsigned long long)steps,
		       (now - shown) * 1e3 / (double)(steps - shown_steps));
		(void)fflush(stdout);
		shown = now;
		shown_steps = steps;
	}
}

int main(int argc, char **argv)
{
	struct grid grid = {.columns = SIZE};
	size_t values;
	int rank, size;

	(void)MPI_Init(&argc, &argv);
	(void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	(void)MPI_Comm_size(MPI_COMM_WORLD, &size);
	grid.rows = grid.columns / size;
	grid.above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
	grid.below = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
	values = (size_t)(grid.rows + 2) * (size_t)grid.columns;
	grid.old = calloc(values, sizeof(*grid.old));
	grid.new = calloc(values, sizeof(*grid.new));
	if (!grid.old || !grid.new)
		(void)MPI_Abort(MPI_COMM_WORLD, 1);
	/* The left border is hot in both: a step writes the inner columns alone. */
	for (int row = 0; row < grid.rows + 2; row++) {
		*row_of(&grid, grid.old, row) = 100;
		*row_of(&grid, grid.new, row) = 100;
	}
	run(&grid, rank);
	free(grid.old);
	free(grid.new);
	(void)MPI_Finalize();
	return 0;
}
