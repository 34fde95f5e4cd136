/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A small MPI job that counts its own calls and bytes: what tests/bpf/test_mpi.c must see. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	FUNCTIONS_MAX = 32,
	STEPS = 25,
	ELEMENTS = 1000,
};

static struct {
	const char *name;
	unsigned long calls, bytes;
} done[FUNCTIONS_MAX];

static void count(const char *name, unsigned long bytes)
{
	int i = 0;

	while (done[i].name && strcmp(done[i].name, name) != 0)
		i++;
	done[i].name = name;
	done[i].calls++;
	done[i].bytes += bytes;
}

/* A call, and the bytes that it is told to move. */
#define CALL(function, bytes, ...)                                                                 \
	do {                                                                                       \
		count(#function, (unsigned long)(bytes));                                          \
		if (function(__VA_ARGS__) != MPI_SUCCESS)                                          \
			return 1;                                                                  \
	} while (0)

static double in[4 * ELEMENTS], out[4 * ELEMENTS];

int main(int argc, char **argv)
{
	MPI_Comm half, copy;
	MPI_Request request, two[2];
	int rank, size;

	CALL(MPI_Init, 0, &argc, &argv);
	CALL(MPI_Comm_rank, 0, MPI_COMM_WORLD, &rank);
	CALL(MPI_Comm_size, 0, MPI_COMM_WORLD, &size);
	if (size > 4)
		return 1;
	CALL(MPI_Comm_split, 0, MPI_COMM_WORLD, rank % 2, rank, &half);
	CALL(MPI_Comm_dup, 0, half, &copy);
	for (int step = 0; step < STEPS; step++) {
		int n = ELEMENTS - step, to = (rank + 1) % size, from = (rank + size - 1) % size;

		CALL(MPI_Allreduce, 4 * n, in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		CALL(MPI_Allreduce, 8 * n, in, out, n, MPI_DOUBLE, MPI_MAX, half);
		CALL(MPI_Bcast, n, in, n, MPI_BYTE, 0, copy);
		CALL(MPI_Barrier, 0, MPI_COMM_WORLD);
		CALL(MPI_Allgather, 4 * n, in, n, MPI_INT, out, n, MPI_INT, half);
		CALL(MPI_Iallreduce, 4 * n, in, out, n, MPI_INT, MPI_SUM, half, &request);
		CALL(MPI_Wait, 0, &request, MPI_STATUS_IGNORE);
		CALL(MPI_Sendrecv, 8 * n, in, n, MPI_DOUBLE, to, 1, out, n, MPI_DOUBLE, from, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CALL(MPI_Irecv, 4 * n, out, n, MPI_FLOAT, from, 2, MPI_COMM_WORLD, &two[0]);
		CALL(MPI_Isend, 4 * n, in, n, MPI_FLOAT, to, 2, MPI_COMM_WORLD, &two[1]);
		CALL(MPI_Waitall, 0, 2, two, MPI_STATUSES_IGNORE);
#if MPI_VERSION >= 4
		/* Some programs call only these where a library has them. */
		CALL(MPI_Allreduce_c, 8 * n, in, out, (MPI_Count)n, MPI_DOUBLE, MPI_SUM,
		     MPI_COMM_WORLD);
		CALL(MPI_Bcast_c, n, in, (MPI_Count)n, MPI_BYTE, 0, half);
		CALL(MPI_Iallreduce_c, 4 * n, in, out, (MPI_Count)n, MPI_INT, MPI_SUM, half,
		     &request);
		CALL(MPI_Wait, 0, &request, MPI_STATUS_IGNORE);
		CALL(MPI_Sendrecv_c, 8 * n, in, (MPI_Count)n, MPI_DOUBLE, to, 3, out, (MPI_Count)n,
		     MPI_DOUBLE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CALL(MPI_Isendrecv, 8 * n, in, n, MPI_DOUBLE, to, 4, out, n, MPI_DOUBLE, from, 4,
		     MPI_COMM_WORLD, &request);
		CALL(MPI_Wait, 0, &request, MPI_STATUS_IGNORE);
#endif
		/* What only asks is not to be seen. */
		if (MPI_Test(&request, &(int){0}, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return 1;
	}
	CALL(MPI_Comm_free, 0, &copy);
	CALL(MPI_Comm_free, 0, &half);
	CALL(MPI_Finalize, 0);
	for (int i = 0; i < FUNCTIONS_MAX && done[i].name; i++)
		printf("%d %d %s %lu %lu\n", (int)getpid(), rank, done[i].name, done[i].calls,
		       done[i].bytes);
	return 0;
}
