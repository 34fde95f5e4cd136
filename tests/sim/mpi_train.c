/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A data-parallel job over a real MPI: in each step some work of the host, kernels on the stand-in
 * device that are awaited, then a blocking MPI_Allreduce. It counts its calls exactly.
 *
 *	mpirun -np 8 mpi_train --steps 100 --compute-ms 20 --faults FILE --out DIR
 */
#include <errno.h>
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/device.h"
#include "tests/sim/fault.h"
#include "tests/sim/job.h"

struct options {
	double steps, seconds, compute_ms, host_ms, jitter, elements, barrier_every, kernels;
	bool subgroups;
	const char *faults, *out;
};

struct job {
	struct options opt;
	struct sim_truth truth;
	struct sim_device device;
	uint64_t seed, start_ns;
	uint64_t checkpoint_ns; /* of the fault line already obeyed */
	MPI_Comm half; /* MPI_COMM_NULL without --subgroups */
	int half_rank, half_size;
	double *gradient;
};

static int usage(FILE *out, int code)
{
	(void)fprintf(
		out,
		"usage: mpi_train [options]\n"
		"  --steps N          end after N steps (default: run for --seconds)\n"
		"  --seconds S        end after S seconds (default 10)\n"
		"  --compute-ms MS    time of the kernels of a step (default 20)\n"
		"  --kernels N        launches of a step (default 20)\n"
		"  --host-ms MS       host work of a step (default 1)\n"
		"  --jitter F         relative jitter of the kernels (default 0.01)\n"
		"  --elements N       doubles of the all-reduce (default 65536)\n"
		"  --subgroups        also all-reduce in two halves of the ranks\n"
		"  --barrier-every N  a barrier and a broadcast every N steps (default 10, 0: none)\n"
		"  --faults FILE      read once a step: tests/sim/fault.h\n"
		"  --out DIR          write the exact counts to DIR/rank-N.json\n");
	return code;
}

/* 0, -EINVAL, or 1 when help was asked for. */
static int parse(int argc, char **argv, struct options *ret_opt)
{
	static const struct option known[] = {
		{"steps", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'},
		{"compute-ms", required_argument, NULL, 'c'},
		{"kernels", required_argument, NULL, 'k'},
		{"host-ms", required_argument, NULL, 'h'},
		{"jitter", required_argument, NULL, 'j'},
		{"elements", required_argument, NULL, 'e'},
		{"barrier-every", required_argument, NULL, 'b'},
		{"subgroups", no_argument, NULL, 'g'},
		{"faults", required_argument, NULL, 'f'},
		{"out", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, '?'},
		{0},
	};
	struct options opt = {.seconds = 10,
			      .compute_ms = 20,
			      .kernels = 20,
			      .host_ms = 1,
			      .jitter = 0.01,
			      .elements = 65536,
			      .barrier_every = 10};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		double *number = c == 's'   ? &opt.steps
				 : c == 't' ? &opt.seconds
				 : c == 'c' ? &opt.compute_ms
				 : c == 'k' ? &opt.kernels
				 : c == 'h' ? &opt.host_ms
				 : c == 'j' ? &opt.jitter
				 : c == 'e' ? &opt.elements
				 : c == 'b' ? &opt.barrier_every
					    : NULL;

		if (number && sim_number(optarg, number) < 0)
			return -EINVAL;
		else if (c == 'g')
			opt.subgroups = true;
		else if (c == 'f')
			opt.faults = optarg;
		else if (c == 'o')
			opt.out = optarg;
		else if (!number)
			return -EINVAL;
	}
	if (optind != argc || opt.elements < 4 || opt.elements > 1e8 || opt.kernels < 1)
		return -EINVAL;
	*ret_opt = opt;
	return 0;
}

static void all_reduce(struct job *job, const char *name, MPI_Comm comm, int rank, int size,
		       int elements)
{
	(void)MPI_Allreduce(MPI_IN_PLACE, job->gradient, elements, MPI_DOUBLE, MPI_SUM, comm);
	sim_truth_add(&job->truth, "all-reduce", name, (uint32_t)rank, (uint32_t)size,
		      (uint64_t)elements * sizeof(double));
}

static void host_work(struct job *job, const struct sim_fault *fault)
{
	sim_sleep_ns((uint64_t)(job->opt.host_ms * 1e6) + fault->loader_ns);
	if (fault->gc_ns && job->truth.steps % 10 == 0)
		sim_burn_ns(fault->gc_ns);
	if (fault->checkpoint_ns && fault->checkpoint_ns != job->checkpoint_ns)
		sim_checkpoint_ns(job->opt.out, fault->checkpoint_ns);
	job->checkpoint_ns = fault->checkpoint_ns;
}

static void compute(struct job *job, const struct sim_fault *fault)
{
	uint32_t kernels = (uint32_t)job->opt.kernels;
	double ns = job->opt.compute_ms * 1e6 / kernels * fault->compute;

	for (uint32_t i = 0; i < kernels; i++)
		sim_device_kernel(
			&job->device,
			(uint64_t)(ns * (1 + job->opt.jitter * (2 * sim_random(&job->seed) - 1))));
	job->truth.launches += kernels;
	sim_device_wait(&job->device);
}

/* The ranks agree on the end through the sum of the reduction: no call beside the counted ones. */
static bool step(struct job *job)
{
	int rank = (int)job->truth.rank, size = (int)job->truth.size;
	uint64_t every = (uint64_t)job->opt.barrier_every;
	struct sim_fault fault;
	bool ends;

	do {
		sim_fault_read(job->opt.faults, job->truth.rank, &fault);
		if (fault.hang)
			sim_sleep_ns(10000000);
	} while (fault.hang);
	if (fault.exit)
		_exit(fault.exit_code);

	host_work(job, &fault);
	compute(job, &fault);

	ends = job->opt.steps > 0
		       ? (double)job->truth.steps + 1 >= job->opt.steps
		       : (double)(sim_now_ns() - job->start_ns) >= job->opt.seconds * 1e9;
	job->gradient[0] = ends || fault.stop ? 1 : 0;
	all_reduce(job, "world", MPI_COMM_WORLD, rank, size,
		   (int)job->opt.elements - (fault.mismatch ? 1 : 0));
	ends = job->gradient[0] > 0;
	if (job->half != MPI_COMM_NULL)
		all_reduce(job, "half", job->half, job->half_rank, job->half_size,
			   (int)job->opt.elements / 4);
	job->truth.steps++;
	if (every && job->truth.steps % every == 0) {
		(void)MPI_Barrier(MPI_COMM_WORLD);
		sim_truth_add(&job->truth, "barrier", "world", (uint32_t)rank, (uint32_t)size, 0);
		(void)MPI_Bcast(job->gradient, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		sim_truth_add(&job->truth, "broadcast", "world", (uint32_t)rank, (uint32_t)size,
			      4 * sizeof(double));
	}
	return !ends;
}

static int run(struct job *job)
{
	uint64_t shown_ns = job->start_ns, shown_steps = 0;

	while (step(job)) {
		uint64_t now = sim_now_ns();

		if (job->truth.rank != 0 || now - shown_ns < 1000000000U)
			continue;
		printf("step %llu, %.1f ms a step\n", (unsigned long long)job->truth.steps,
		       (double)(now - shown_ns) / 1e6 / (double)(job->truth.steps - shown_steps));
		(void)fflush(stdout);
		shown_ns = now;
		shown_steps = job->truth.steps;
	}
	return job->opt.out ? sim_truth_write(&job->truth, job->opt.out) : 0;
}

int main(int argc, char **argv)
{
	struct job job = {.half = MPI_COMM_NULL};
	int r, rank, size;

	r = parse(argc, argv, &job.opt);
	if (r < 0)
		return usage(stderr, 2);

	(void)MPI_Init(&argc, &argv);
	(void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	(void)MPI_Comm_size(MPI_COMM_WORLD, &size);
	job.truth.rank = (uint32_t)rank;
	job.truth.size = (uint32_t)size;
	job.seed = (uint64_t)rank + 1;
	if (job.opt.subgroups) {
		(void)MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &job.half);
		(void)MPI_Comm_rank(job.half, &job.half_rank);
		(void)MPI_Comm_size(job.half, &job.half_size);
	}
	job.gradient = calloc((size_t)job.opt.elements, sizeof(*job.gradient));
	r = job.gradient ? sim_device_open(&job.device) : -ENOMEM;
	if (r == 0) {
		job.start_ns = sim_now_ns();
		r = run(&job);
	}
	if (r < 0)
		(void)fprintf(stderr, "mpi_train: rank %d: %s\n", rank, strerrordesc_np(-r));
	sim_device_close(&job.device);
	free(job.gradient);
	if (r < 0)
		(void)MPI_Abort(MPI_COMM_WORLD, 1);
	(void)MPI_Finalize();
	return 0;
}
