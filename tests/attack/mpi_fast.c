/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A job over a real MPI with many probed calls in short steps: by default 17 calls of each rank in
 * half a millisecond, exchanges with both neighbours, non-blocking and blocking, and an all-reduce.
 * Faults are those of tests/sim/fault.h: compute, hang and stop.
 *
 *	mpirun -np 2 mpi_fast --seconds 30 --faults FILE
 *
 * Rank 0 prints "step N, X ms a step, Y ms but for stalls" about once a second, and at the end "total
 * STEPS SECONDS". Stalls are steps of more than twice the median: the host gave the processor to others.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/attack/attack.h"
#include "tests/sim/fault.h"
#include "tests/sim/job.h"

enum {
	ELEMENTS = 128, /* doubles of a message */
	FAULT_STEPS = 64, /* steps between two looks at the faults */
	HANG_NS = 100000000, /* the same of a rank that hangs */
	EXCHANGES = 2, /* non-blocking: four calls each */
	SWAPS = 3, /* MPI_Sendrecv */
	PAIRS = 2, /* MPI_Send and MPI_Recv, in pairs of ranks */
	REDUCTIONS = 1,
	SHOWN_STEPS = 8192, /* of a second, for the median; more are not counted in it */
	CALLS = 4 * EXCHANGES + SWAPS + 2 * PAIRS + REDUCTIONS + 1, /* and a barrier */
};

_Static_assert(CALLS == 17, "calls of a rank and step");

struct job {
	int rank, size, next, previous, partner;
	double out[ELEMENTS], in[ELEMENTS];
};

static void exchange(struct job *job)
{
	MPI_Request request[2];

	(void)MPI_Irecv(job->in, ELEMENTS, MPI_DOUBLE, job->previous, 1, MPI_COMM_WORLD,
			&request[0]);
	(void)MPI_Isend(job->out, ELEMENTS, MPI_DOUBLE, job->next, 1, MPI_COMM_WORLD, &request[1]);
	(void)MPI_Wait(&request[0], MPI_STATUS_IGNORE);
	(void)MPI_Wait(&request[1], MPI_STATUS_IGNORE);
}

/* An odd rank receives first; the last of an odd number of ranks talks to itself. */
static void pair(struct job *job)
{
	if (job->rank % 2 == 0 && job->partner != job->rank)
		(void)MPI_Send(job->out, ELEMENTS, MPI_DOUBLE, job->partner, 2, MPI_COMM_WORLD);
	if (job->partner == job->rank)
		(void)MPI_Send(job->out, 1, MPI_DOUBLE, job->rank, 2, MPI_COMM_WORLD);
	(void)MPI_Recv(job->in, ELEMENTS, MPI_DOUBLE, job->partner, 2, MPI_COMM_WORLD,
		       MPI_STATUS_IGNORE);
	if (job->rank % 2 == 1 && job->partner != job->rank)
		(void)MPI_Send(job->out, ELEMENTS, MPI_DOUBLE, job->partner, 2, MPI_COMM_WORLD);
}

/* True: go on. The ranks agree on the end through the sum. */
static bool step(struct job *job, double work_ns, bool ends)
{
	double mine = ends ? 1 : 0, sum = 0;

	sim_burn_ns((uint64_t)work_ns);
	for (int i = 0; i < EXCHANGES; i++)
		exchange(job);
	for (int i = 0; i < SWAPS; i++)
		(void)MPI_Sendrecv(job->out, ELEMENTS, MPI_DOUBLE, job->next, 3, job->in, ELEMENTS,
				   MPI_DOUBLE, job->previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < PAIRS; i++)
		pair(job);
	(void)MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	(void)MPI_Barrier(MPI_COMM_WORLD);
	return sum == 0;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The mean of steps of up to twice the median. Sorts them. */
static double mean_without_stalls(uint64_t *step_ns, size_t count)
{
	double sum = 0;
	size_t n = 0;

	qsort(step_ns, count, sizeof(*step_ns), ascending);
	while (n < count && step_ns[n] <= 2 * step_ns[count / 2])
		sum += (double)step_ns[n++];
	return n ? sum / (double)n : 0;
}

static void run(struct job *job, double work_us, double seconds, double steps, const char *faults)
{
	uint64_t begin_ns = sim_now_ns(), shown_ns = begin_ns, count = 0, shown = 0;
	static uint64_t step_ns[SHOWN_STEPS];
	size_t timed = 0;
	struct sim_fault fault = {.compute = 1};
	bool more = true;

	while (more) {
		uint64_t now_ns = sim_now_ns(), step_begin_ns;

		if (count % FAULT_STEPS == 0)
			sim_fault_read(faults, (uint32_t)job->rank, &fault);
		while (fault.hang) {
			sim_sleep_ns(HANG_NS);
			sim_fault_read(faults, (uint32_t)job->rank, &fault);
		}
		step_begin_ns = sim_now_ns();
		more = step(job, work_us * 1000 * fault.compute,
			    fault.stop || (steps > 0 && (double)count + 1 >= steps) ||
				    (double)(now_ns - begin_ns) >= seconds * 1e9);
		count++;
		now_ns = sim_now_ns();
		if (timed < SHOWN_STEPS)
			step_ns[timed++] = now_ns - step_begin_ns;
		if (job->rank == 0 && (now_ns - shown_ns >= 1000000000U)) {
			(void)printf("step %llu, %.4f ms a step, %.4f ms but for stalls\n",
				     (unsigned long long)count,
				     (double)(now_ns - shown_ns) / 1e6 / (double)(count - shown),
				     mean_without_stalls(step_ns, timed) / 1e6);
			timed = 0;
			(void)fflush(stdout);
			shown_ns = now_ns;
			shown = count;
		}
	}
	if (job->rank == 0)
		(void)printf("total %llu %.6f\n", (unsigned long long)count,
			     (double)(sim_now_ns() - begin_ns) / 1e9);
}

int main(int argc, char **argv)
{
	double seconds = 10, steps = 0, work_us = 400;
	const char *faults = NULL;
	const struct attack_option options[] = {
		{"seconds", "how long (10)", &seconds, NULL},
		{"steps", "end after so many (0: by time)", &steps, NULL},
		{"work-us", "CPU time of own work of a step (400)", &work_us, NULL},
		{"faults", "file of faults", NULL, &faults},
	};
	static struct job job;

	(void)MPI_Init(&argc, &argv);
	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	(void)MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	(void)MPI_Comm_size(MPI_COMM_WORLD, &job.size);
	job.next = (job.rank + 1) % job.size;
	job.previous = (job.rank + job.size - 1) % job.size;
	job.partner = (job.rank ^ 1) < job.size ? job.rank ^ 1 : job.rank;
	run(&job, work_us, seconds, steps, faults);
	(void)MPI_Finalize();
	return 0;
}
