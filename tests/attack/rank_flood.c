/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes that are as many ranks as one process may be, whose calls differ as much as calls may:
 * what is kept of a rank grows to its largest. Prints "ready N" when all have called, and goes on
 * slowly.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/attack/attack.h"
#include "tests/sim/job.h"

enum {
	ID_WORDS = 16, /* of a unique id, 128 bytes */
	RANKS_MAX = 64,
	TURN_NS = 2000000,
};

struct unique_id {
	uint64_t word[ID_WORDS];
};

typedef int (*init_rank)(void **comm, int ranks, struct unique_id id, int rank);

struct flood {
	init_rank make;
	attack_call reduce;
	int ranks;
	uint64_t calls;
	int ready;
};

static void be_ranks(const struct flood *flood, uint64_t begin_ns)
{
	const void *a = attack_target;
	void *comm[RANKS_MAX] = {NULL};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < flood->ranks; i++) {
		struct unique_id id = {.word = {begin_ns, (uint64_t)getpid() + 1}};

		(void)flood->make(&comm[i], RANKS_MAX, id, i);
	}
	for (uint64_t call = 0;; call++) {
		/* No length comes twice: no two calls are of one kind. */
		for (int i = 0; i < flood->ranks; i++)
			(void)flood->reduce(a, a, (const void *)(call + 1), (void *)7, NULL,
					    comm[i], NULL, NULL);
		if (call + 1 == flood->calls)
			(void)attack_must(write(flood->ready, "", 1), "say that it has called");
		sim_sleep_ns(call < flood->calls ? TURN_NS : 100 * (uint64_t)TURN_NS);
	}
}

int main(int argc, char **argv)
{
	double processes = 300, ranks = 16, calls = 1000, user = ATTACK_NOBODY;
	const char *libraries = NULL;
	const struct attack_option options[] = {
		{"processes", "how many (300)", &processes, NULL},
		{"ranks", "of each process (16)", &ranks, NULL},
		{"calls", "of each rank, before it calls five times a second (1000)", &calls, NULL},
		{"libraries", "directory of the libraries (lib beside the program)", NULL,
		 &libraries},
		{"user", "user id to run as (nobody)", &user, NULL},
	};
	struct flood flood = {0};
	int said = 0, ready[2];
	char byte, line[64];

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	attack_take_signals();
	attack_become((uid_t)user);
	flood.make = (init_rank)attack_function(libraries, "ncclCommInitRank");
	flood.reduce = attack_function(libraries, "ncclAllReduce");
	flood.ranks = ranks < RANKS_MAX ? (int)ranks : RANKS_MAX;
	flood.calls = (uint64_t)calls;
	(void)attack_must(pipe(ready), "make a pipe");
	flood.ready = ready[1];
	for (int i = 0; i < (int)processes; i++)
		if (attack_must(fork(), "fork") == 0)
			be_ranks(&flood, sim_now_ns());
	while (said < (int)processes && read(ready[0], &byte, 1) == 1)
		said++;
	(void)snprintf(line, sizeof(line), "ready %d", said);
	attack_say(line);
	while (!attack_wait(3600))
		;
	return 0; /* the death of the parent ends them */
}
