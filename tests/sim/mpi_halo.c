/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A particle code over a real MPI, with the calls of LAMMPS: the domains are a ring. A step
 * exchanges the halo with both neighbours once per dimension before its work, and the forces after
 * it, each by Irecv, Send and Wait. Every tenth step particles change their domain by Sendrecv, and
 * all ranks reduce the energy. No other call tells where a step begins.
 *
 *	mpirun -np 4 mpi_halo --compute-ms 5 --faults FILE
 */
#include <errno.h>
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/fault.h"
#include "tests/sim/job.h"

enum {
	DIMENSIONS = 3,
	TAG = 7,
};

struct options {
	double seconds, compute_ms, elements, every;
	const char *faults;
};

struct job {
	struct options opt;
	int rank, size, left, right;
	uint64_t steps, start_ns;
	double *out, *in;
};

static int usage(void)
{
	(void)fprintf(stderr, "usage: mpi_halo [options]\n"
			      "  --seconds S      end after S seconds (default 10)\n"
			      "  --compute-ms MS  work of a step (default 5)\n"
			      "  --elements N     doubles of a message (default 1000)\n"
			      "  --every N        steps between two reductions (default 10)\n"
			      "  --faults FILE    read once a step: tests/sim/fault.h\n");
	return 2;
}

static int parse(int argc, char **argv, struct options *ret_opt)
{
	static const struct option known[] = {
		{"seconds", required_argument, NULL, 's'},
		{"compute-ms", required_argument, NULL, 'c'},
		{"elements", required_argument, NULL, 'n'},
		{"every", required_argument, NULL, 'e'},
		{"faults", required_argument, NULL, 'f'},
		{"out", required_argument, NULL, 'o'},
		{0},
	};
	struct options opt = {.seconds = 10, .compute_ms = 5, .elements = 1000, .every = 10};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		double *number = c == 's'   ? &opt.seconds
				 : c == 'c' ? &opt.compute_ms
				 : c == 'n' ? &opt.elements
				 : c == 'e' ? &opt.every
					    : NULL;

		if (number && sim_number(optarg, number) < 0)
			return -EINVAL;
		if (c == 'f')
			opt.faults = optarg;
		else if (!number && c != 'o') /* its counts are not compared */
			return -EINVAL;
	}
	if (optind != argc || opt.elements < 1 || opt.elements > 1e7 || opt.every < 1)
		return -EINVAL;
	*ret_opt = opt;
	return 0;
}

/* Sends to one neighbour what the other neighbour sends to this rank. */
static void swap(struct job *job, int to, int from)
{
	int count = (int)job->opt.elements;
	MPI_Request request;

	(void)MPI_Irecv(job->in, count, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, &request);
	(void)MPI_Send(job->out, count, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD);
	(void)MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void exchange(struct job *job)
{
	for (int i = 0; i < DIMENSIONS; i++) {
		swap(job, job->left, job->right);
		swap(job, job->right, job->left);
	}
}

static void migrate(struct job *job)
{
	int count = (int)job->opt.elements / 10 + 1;

	for (int i = 0; i < DIMENSIONS; i++)
		(void)MPI_Sendrecv(job->out, count, MPI_DOUBLE, job->left, TAG, job->in, count,
				   MPI_DOUBLE, job->right, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The ranks agree on the end in the reduction. */
static bool step(struct job *job)
{
	double energy[2] = {1, 0}, sum[2];
	struct sim_fault fault;

	do {
		sim_fault_read(job->opt.faults, (uint32_t)job->rank, &fault);
		if (fault.hang)
			sim_sleep_ns(10000000);
	} while (fault.hang);
	if (fault.exit)
		_exit(fault.exit_code);
	exchange(job);
	sim_sleep_ns((uint64_t)(job->opt.compute_ms * 1e6 * fault.compute) + fault.loader_ns);
	exchange(job);
	job->steps++;
	if (job->steps % (uint64_t)job->opt.every)
		return true;
	migrate(job);
	energy[1] = fault.stop || (double)(sim_now_ns() - job->start_ns) >= job->opt.seconds * 1e9;
	(void)MPI_Allreduce(energy, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return sum[1] <= 0;
}

static void run(struct job *job)
{
	uint64_t shown_ns = job->start_ns, shown_steps = 0;

	while (step(job)) {
		uint64_t now_ns = sim_now_ns();

		if (job->rank != 0 || now_ns - shown_ns < 1000000000U)
			continue;
		printf("step %llu, %.2f ms a step\n", (unsigned long long)job->steps,
		       (double)(now_ns - shown_ns) / 1e6 / (double)(job->steps - shown_steps));
		(void)fflush(stdout);
		shown_ns = now_ns;
		shown_steps = job->steps;
	}
}

int main(int argc, char **argv)
{
	struct job job = {0};

	if (parse(argc, argv, &job.opt) < 0)
		return usage();
	(void)MPI_Init(&argc, &argv);
	(void)MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	(void)MPI_Comm_size(MPI_COMM_WORLD, &job.size);
	job.left = (job.rank + job.size - 1) % job.size;
	job.right = (job.rank + 1) % job.size;
	job.out = calloc((size_t)job.opt.elements, sizeof(*job.out));
	job.in = calloc((size_t)job.opt.elements, sizeof(*job.in));
	if (!job.out || !job.in)
		(void)MPI_Abort(MPI_COMM_WORLD, 1);
	job.start_ns = sim_now_ns();
	run(&job);
	free(job.out);
	free(job.in);
	(void)MPI_Finalize();
	return 0;
}
