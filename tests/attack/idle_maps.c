/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes of one user that map a probed library executable and never call it: they fill tables
 * that have a place for each process. Prints "ready N" when all have mapped it, and ends them all
 * when it is signalled.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attack/attack.h"

static void idle(int library, int ready)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	attack_map_code(library);
	(void)attack_must(write(ready, "", 1), "say that it is mapped");
	for (;;)
		(void)pause();
}

int main(int argc, char **argv)
{
	double processes = 1100, user = ATTACK_NOBODY;
	const char *name = "libnccl.so.2", *libraries = NULL;
	const struct attack_option options[] = {
		{"processes", "how many (1100)", &processes, NULL},
		{"library", "what they map (libnccl.so.2)", NULL, &name},
		{"libraries", "directory of the libraries (lib beside the program)", NULL,
		 &libraries},
		{"user", "user id to run as (nobody)", &user, NULL},
	};
	int library, mapped = 0, ready[2];
	char byte, line[64];

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	attack_take_signals();
	library = attack_open_library(libraries, name);
	attack_become((uid_t)user);
	(void)attack_must(pipe(ready), "make a pipe");
	for (int i = 0; i < (int)processes; i++)
		if (attack_must(fork(), "fork") == 0)
			idle(library, ready[1]);
	while (mapped < (int)processes && read(ready[0], &byte, 1) == 1)
		mapped++;
	(void)snprintf(line, sizeof(line), "ready %d", mapped);
	attack_say(line);
	while (!attack_wait(3600))
		;
	return 0; /* the death of the parent ends them */
}
