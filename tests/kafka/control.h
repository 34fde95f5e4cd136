/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The brokers of a test, killed and started from within it: NT_TEST_CONTROL is tests/kafka/kafka.sh. */
#ifndef NT_TESTS_KAFKA_CONTROL_H
#define NT_TESTS_KAFKA_CONTROL_H

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/common/kafka.h"

extern char **environ;

/* 0, or -1 where it did not work. */
static inline int control(const char *verb, const char *node)
{
	const char *script = getenv("NT_TEST_CONTROL");
	const char *const argv[] = {script, verb, node, NULL};
	pid_t pid;
	int status;

	if (!script || posix_spawn(&pid, script, NULL, NULL, (char *const *)argv, environ) != 0)
		return -1;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0
		       ? 0
		       : -1;
}

/* For what others do in their own time. False: not in 60 s. */
#define EVENTUALLY(condition)                                                                      \
	({                                                                                         \
		const struct timespec pause_ = {.tv_nsec = 20000000};                              \
		int left_ = 3000;                                                                  \
		while (!(condition) && --left_ > 0)                                                \
			(void)nanosleep(&pause_, NULL);                                            \
		left_ > 0;                                                                         \
	})

#endif
