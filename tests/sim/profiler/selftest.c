/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stand-in libnccl loads and calls profiler plugins as the real one does, with its faults. Given words,
 * only the tests whose names contain the first of them run.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/profiler/profiled_job.h"

enum {
	TEST_SECONDS = 100,
};

static const struct profiler_test *const files[] = {event_tests, loading_tests, mask_tests,
						    time_tests, graph_tests};
static unsigned int tests;

const char *library_folder;
unsigned int *static_inits;

static void run(const struct profiler_test *test, const char *counts)
{
	int status = -1;
	pid_t pid;

	memset(seen, 0, sizeof(*seen));
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		failures = 0;
		(void)alarm(TEST_SECONDS);
		set("SIM_PLUGIN_OUT", counts);
		test->run();
		(void)fflush(stdout);
		_exit(failures != 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		failures++;
	(void)printf("%s %u - %s\n", status == 0 ? "ok" : "not ok", ++tests, test->name);
	(void)fflush(stdout);
}

/* Calls run() for what is wanted, or counts it. */
static unsigned int each(const char *wanted, const char *counts)
{
	unsigned int count = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		for (const struct profiler_test *test = files[i]; test->name; test++) {
			if (wanted && !strstr(test->name, wanted))
				continue;
			count++;
			if (counts)
				run(test, counts);
		}
	return count;
}

int main(int argc, char **argv)
{
	char counts[] = "/tmp/nt-profiler.XXXXXX", folder[4096];
	const char *wanted = argc > 1 ? argv[1] : NULL;
	int fd = mkstemp(counts);

	(void)snprintf(folder, sizeof(folder), "%.*s/lib", (int)(strrchr(argv[0], '/') - argv[0]),
		       argv[0]);
	library_folder = folder;
	static_inits = mmap(NULL, sizeof(*static_inits), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || ftruncate(fd, sizeof(*seen)) != 0 || static_inits == MAP_FAILED)
		return 1;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (seen == MAP_FAILED)
		return 1;
	(void)printf("1..%u\n", each(wanted, NULL));
	(void)each(wanted, counts);
	(void)unlink(counts);
	return failures != 0;
}
