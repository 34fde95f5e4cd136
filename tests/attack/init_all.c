/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes communicators of 32 devices whose handles never come, ends groups and calls with handles that
 * are unknown: each of them makes the agent read this process's memory. Prints "ready" after a second.
 */
#include <stdio.h>

#include "tests/attack/attack.h"
#include "tests/sim/job.h"

enum {
	DEVICES = 32,
	UNKNOWN = 1000, /* handles */
};

int main(int argc, char **argv)
{
	double rate = 3000, user = ATTACK_NOBODY;
	const char *libraries = NULL;
	const struct attack_option options[] = {
		{"rate", "rounds a second at most (3000)", &rate, NULL},
		{"libraries", "directory of the libraries (lib beside the program)", NULL,
		 &libraries},
		{"user", "user id to run as (nobody)", &user, NULL},
	};
	static void *handle[DEVICES];
	const void *a = attack_target;
	attack_call init_all, end, reduce;
	uint64_t begin_ns;
	bool is_ready = false;

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	attack_become((uid_t)user);
	init_all = attack_function(libraries, "ncclCommInitAll");
	end = attack_function(libraries, "ncclGroupEnd");
	reduce = attack_function(libraries, "ncclAllReduce");
	begin_ns = sim_now_ns();
	for (uint64_t i = 0;; i++) {
		const void *unknown = attack_target + i % UNKNOWN;

		while ((double)(sim_now_ns() - begin_ns) / 1e9 * rate < (double)i)
			sim_sleep_ns(100000);
		(void)init_all(handle, (void *)DEVICES, NULL, NULL, NULL, NULL, NULL, NULL);
		(void)end(a, a, a, a, a, a, a, a);
		(void)reduce(a, a, (void *)1024, (void *)7, NULL, unknown, NULL, NULL);
		if (!is_ready && sim_now_ns() - begin_ns > 1000000000U) {
			attack_say("ready");
			is_ready = true;
		}
	}
}
