/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes that map a library and never call it: idle COUNT FILE. Says "ready" when all have, and ends
 * them when it is ended.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/job.h"

static void idle(const char *path, int ready)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte = fd >= 0 &&
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;

	if (write(ready, &byte, 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

int main(int argc, char **argv)
{
	double count = 0;
	int ready[2];
	char byte;

	if (argc != 3 || sim_number(argv[1], &count) < 0 || count < 1 || pipe(ready) < 0) {
		(void)fprintf(stderr, "usage: idle COUNT FILE\n");
		return 2;
	}
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			idle(argv[2], ready[1]);
		}
	}
	for (long i = 0; i < count; i++) {
		if (read(ready[0], &byte, 1) != 1 || !byte) {
			(void)fprintf(stderr, "a process cannot map '%s'\n", argv[2]);
			return 1;
		}
	}
	(void)printf("ready\n");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}
