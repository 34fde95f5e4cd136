/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes that come and go, so many each second: each runs this program anew, loads a probed
 * library, makes some calls and ends. Prints "processes N" at the end, and status 1 where a process
 * failed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attack/attack.h"
#include "tests/sim/job.h"

enum {
	ID_WORDS = 16, /* of a unique id, 128 bytes */
};

struct unique_id {
	uint64_t word[ID_WORDS];
};

typedef int (*init_rank)(void **comm, int ranks, struct unique_id id, int rank);

/* A communicator is made, called and left behind, as by a program that was killed. */
static int come_and_go(const char *libraries, int calls)
{
	attack_call reduce = attack_function(libraries, "ncclAllReduce");
	init_rank init = (init_rank)attack_function(libraries, "ncclCommInitRank");
	struct unique_id id = {.word = {(uint64_t)getpid(), sim_now_ns()}};
	const void *a = attack_target;
	void *comm = NULL;

	(void)init(&comm, 2, id, 0);
	for (int i = 0; i < calls; i++)
		(void)reduce(a, a, (void *)1024, (void *)7, NULL, comm, NULL, NULL);
	return 0;
}

static unsigned int reap(bool *failed)
{
	unsigned int ended = 0;
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0) {
		ended++;
		*failed |= status != 0;
	}
	return ended;
}

int main(int argc, char **argv)
{
	double rate = 200, seconds = 10, calls = 5, user = ATTACK_NOBODY, one = 0, most = 2000;
	const char *libraries = NULL;
	const struct attack_option options[] = {
		{"rate", "processes a second (200)", &rate, NULL},
		{"seconds", "how long (10)", &seconds, NULL},
		{"calls", "calls of each (5)", &calls, NULL},
		{"libraries", "directory of the libraries (lib beside the program)", NULL,
		 &libraries},
		{"user", "user id to run as (nobody)", &user, NULL},
		{"one", "1: be one of the processes", &one, NULL},
	};
	uint64_t begin_ns, started = 0, ended = 0;
	bool failed = false;
	char line[64], count[32];

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	if (one > 0)
		return come_and_go(libraries, (int)calls);
	attack_become((uid_t)user);
	(void)snprintf(count, sizeof(count), "%.0f", calls);
	begin_ns = sim_now_ns();
	for (;;) {
		double now = (double)(sim_now_ns() - begin_ns) / 1e9;

		ended += reap(&failed);
		if (now >= seconds)
			break;
		if ((double)started >= now * rate || (double)(started - ended) >= most) {
			sim_sleep_ns(1000000);
			continue;
		}
		if (attack_must(fork(), "fork") == 0) {
			attack_become((uid_t)user);
			(void)execl("/proc/self/exe", "churn", "--one", "1", "--calls", count,
				    libraries ? "--libraries" : NULL, libraries, NULL);
			_exit(127);
		}
		started++;
	}
	while (wait(&(int){0}) > 0)
		;
	(void)snprintf(line, sizeof(line), "processes %llu", (unsigned long long)started);
	attack_say(line);
	return failed ? 1 : 0;
}
