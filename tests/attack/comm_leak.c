/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes communicators and never destroys them, with one call on each: tables of communicators grow.
 * Prints "communicators N".
 */
#include <stdio.h>
#include <string.h>

#include "tests/attack/attack.h"
#include "tests/sim/job.h"

enum {
	ID_WORDS = 16, /* of a unique id, 128 bytes */
};

struct unique_id {
	uint64_t word[ID_WORDS];
};

typedef int (*init_rank)(void **comm, int ranks, struct unique_id id, int rank);
typedef int (*duplicate)(const void *comm, void **ret);

int main(int argc, char **argv)
{
	double communicators = 163000, rate = 0, user = ATTACK_NOBODY;
	const char *by = "nccl", *libraries = NULL;
	const struct attack_option options[] = {
		{"communicators", "how many (163000)", &communicators, NULL},
		{"rate", "at most so many a second (0: as many as can be)", &rate, NULL},
		{"by", "nccl: ncclCommInitRank; mpi: MPI_Comm_dup", NULL, &by},
		{"libraries", "directory of the libraries (lib beside the program)", NULL,
		 &libraries},
		{"user", "user id to run as (nobody)", &user, NULL},
	};
	const void *a = attack_target;
	attack_call reduce;
	void *make;
	uint64_t begin_ns;
	bool mpi;
	char line[64];

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	attack_become((uid_t)user);
	mpi = strcmp(by, "mpi") == 0;
	reduce = attack_function(libraries, mpi ? "MPI_Allreduce" : "ncclAllReduce");
	make = attack_function(libraries, mpi ? "MPI_Comm_dup" : "ncclCommInitRank");
	begin_ns = sim_now_ns();
	for (uint64_t i = 0; i < (uint64_t)communicators; i++) {
		void *comm = NULL;

		while (rate > 0 && (double)(sim_now_ns() - begin_ns) / 1e9 * rate < (double)i)
			sim_sleep_ns(1000000);
		if (mpi) {
			(void)((duplicate)make)(a, &comm);
			(void)reduce(a, a, (void *)1024, a, a, comm, NULL, NULL);
		} else {
			struct unique_id id = {.word = {begin_ns, i + 1}};

			(void)((init_rank)make)(&comm, 2, id, 0);
			(void)reduce(a, a, (void *)1024, (void *)7, NULL, comm, NULL, NULL);
		}
	}
	(void)snprintf(line, sizeof(line), "communicators %.0f", communicators);
	attack_say(line);
	/* Alive for a while, with all of them. */
	attack_take_signals();
	(void)attack_wait(3600);
	return 0;
}
