/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What reading the stacks of one process costs, by version of CPython: processor time and reads, as a
 * whole and for the threads and frames alone, without the search for symbols. The process sleeps in its
 * eighth function, and a second thread waits for a lock in its fourth.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/stack/python_process.h"
#include "agent/stack/stack_read.h"
#include "tests/unit/agent/stack/live_python.h"

enum {
	ROUNDS = 51,
	FIRST_MINOR = 8,
	LAST_MINOR = 14,
};

static const char script[] = "import os, threading, time\n"
			     "lock = threading.Lock()\n"
			     "lock.acquire()\n"
			     "threading.Thread(target=lock.acquire, daemon=True).start()\n"
			     "def f(n):\n"
			     "    if n:\n"
			     "        f(n - 1)\n"
			     "    else:\n"
			     "        os.write(1, b'x')\n"
			     "        time.sleep(1000)\n"
			     "f(6)\n";

static double cpu_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *us)
{
	qsort(us, ROUNDS, sizeof(*us), compare);
	return us[ROUNDS / 2];
}

static void measure(const char *path, uint32_t pid)
{
	static struct nt_python_threads threads;
	static struct nt_stack stack;
	struct nt_stack_memory memory = {.memory = nt_memory_live(), .pid = pid};
	struct nt_python_runtime runtime;
	double whole[ROUNDS], python[ROUNDS];
	uint32_t reads = 0, frames = 0, all_reads;

	if (nt_python_find(&memory, &runtime) != NT_STACK_WHOLE) {
		(void)printf("%-44s not readable\n", path);
		return;
	}
	for (size_t i = 0; i < ROUNDS; i++) {
		double begin_us = cpu_us();

		nt_stack_read(pid, true, NULL, 0, &stack);
		whole[i] = cpu_us() - begin_us;
		all_reads = stack.reads;
		memory.reads = 0;
		nt_stack_init(&stack);
		stack.threads = 1;
		stack.thread[0] = (struct nt_stack_thread){.state = 'S'};
		begin_us = cpu_us();
		if (nt_python_threads(&memory, &runtime, &threads) == 0)
			for (size_t j = 0; j < threads.count; j++)
				(void)nt_python_frames(&memory, &runtime, threads.thread[j].address,
						       &stack);
		python[i] = cpu_us() - begin_us;
		reads = memory.reads;
		frames = stack.frames;
	}
	(void)printf("%-44s %8.0f us %5u reads; Python alone %6.0f us %4u reads %3u frames\n", path,
		     median(whole), all_reads, median(python), reads, frames);
}

int main(void)
{
	for (int minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		struct live_python python = {.pid = -1, .output = -1};
		char path[PATH_MAX];

		if (!live_python_find(minor, path)) {
			(void)printf("3.%d: no interpreter on this machine\n", minor);
			continue;
		}
		if (live_python_start(path, script, &python) == 0)
			measure(path, (uint32_t)python.pid);
		live_python_end(&python);
	}
	return 0;
}
