/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls one probed function as fast as it can from some threads, then, if told so, calmly. Prints a
 * line each second:
 *
 *	hot SECOND CALLS_A_SECOND CPU_NS_A_CALL
 *	calm SECOND CALLS_A_SECOND CPU_NS_A_CALL
 *
 * CPU time is the threads' own, which other load of the machine leaves alone: a probe shows itself
 * there by some hundred nanoseconds, so that a script sees when it goes and when it is back.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/attack/attack.h"
#include "tests/sim/job.h"

enum {
	THREADS_MAX = 64,
	BATCH = 256,
	CALM_BATCH = 16,
	CALM_PAUSE_NS = 100 * 1000 * 1000,
};

struct worker {
	_Alignas(128) _Atomic uint64_t calls;
	_Atomic uint64_t cpu_ns;
	pthread_t thread;
};

static struct worker workers[THREADS_MAX];
static attack_call call;
static const void *argument; /* NULL for libraries that check theirs */
static atomic_bool calm, ended;

static uint64_t cpu_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void make_calls(struct worker *worker, int calls)
{
	const void *a = argument;
	uint64_t begin_ns = cpu_now_ns();

	for (int i = 0; i < calls; i++)
		(void)call(a, a, a, a, a, a, a, a);
	worker->cpu_ns += cpu_now_ns() - begin_ns;
	worker->calls += (uint64_t)calls;
}

static void *run(void *data)
{
	struct worker *worker = data;

	while (!atomic_load_explicit(&ended, memory_order_relaxed)) {
		if (atomic_load_explicit(&calm, memory_order_relaxed)) {
			(void)call(argument, argument, argument, argument, argument, argument,
				   argument, argument); /* into the caches */
			make_calls(worker, CALM_BATCH);
			sim_sleep_ns(CALM_PAUSE_NS);
		} else {
			make_calls(worker, BATCH);
		}
	}
	return NULL;
}

/* One line for each second, until the time is over or a signal came. */
static bool watch(const char *phase, int threads, double seconds)
{
	uint64_t calls = 0, cpu_ns = 0, wall_ns = sim_now_ns();

	for (int i = 0; i < threads; i++) {
		calls += workers[i].calls;
		cpu_ns += workers[i].cpu_ns;
	}
	for (int second = 1; second <= (int)seconds; second++) {
		uint64_t all = 0, all_ns = 0, now_ns;
		bool signalled = attack_wait(1);

		now_ns = sim_now_ns();
		for (int i = 0; i < threads; i++) {
			all += workers[i].calls;
			all_ns += workers[i].cpu_ns;
		}
		(void)printf("%s %d %.0f %.2f\n", phase, second,
			     (double)(all - calls) * 1e9 / (double)(now_ns - wall_ns),
			     all > calls ? (double)(all_ns - cpu_ns) / (double)(all - calls) : 0.0);
		(void)fflush(stdout);
		calls = all;
		cpu_ns = all_ns;
		wall_ns = now_ns;
		if (signalled)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	double threads = 1, seconds = 10, calm_seconds = 0, user = ATTACK_NOBODY;
	const char *function = "cudaLaunchKernel", *libraries = NULL, *with = "memory";
	const struct attack_option options[] = {
		{"function", "probed function to call (cudaLaunchKernel)", NULL, &function},
		{"threads", "threads that call it (1)", &threads, NULL},
		{"seconds", "how long at full speed (10)", &seconds, NULL},
		{"calm", "seconds of some calls each 100 ms behind it (0)", &calm_seconds, NULL},
		{"libraries", "directory of the libraries (lib beside the program)", NULL,
		 &libraries},
		{"with", "arguments: memory or null", NULL, &with},
		{"user", "user id to run as (nobody)", &user, NULL},
	};

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	attack_take_signals();
	attack_become((uid_t)user);
	argument = with[0] == 'm' ? attack_target : NULL;
	call = attack_function(libraries, function);
	for (int i = 0; i < (int)threads; i++)
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0)
			attack_give_up("start a thread");
	if (watch("hot", (int)threads, seconds)) {
		atomic_store(&calm, true);
		(void)watch("calm", (int)threads, calm_seconds);
	}
	atomic_store(&ended, true);
	for (int i = 0; i < (int)threads; i++)
		(void)pthread_join(workers[i].thread, NULL);
	return 0;
}
