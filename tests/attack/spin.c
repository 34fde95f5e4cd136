/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls one probed function as fast as it can from some threads, then, if told so, calmly. Prints a
 * line each second:
 *
 *	hot SECOND CALLS_A_SECOND CPU_NS_A_CALL CPU_NS_BESIDE
 *	calm SECOND CALLS_A_SECOND CPU_NS_A_CALL CPU_NS_BESIDE
 *
 * The last is of a function that is not probed and does the same (--beside), called in turn by the same
 * threads: what the machine does otherwise slows both.
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
	BATCH = 4096,
	CALM_BATCH = 16,
	CALM_PAUSE_NS = 100 * 1000 * 1000,
};

struct worker {
	_Alignas(128) _Atomic uint64_t calls;
	_Atomic uint64_t cpu_ns;
	_Atomic uint64_t beside_ns; /* for as many calls */
	pthread_t thread;
};

static struct worker workers[THREADS_MAX];
static attack_call call, beside; /* beside: NULL: none */
static const void *argument; /* NULL for libraries that check theirs */
static atomic_bool calm, ended;

static uint64_t cpu_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t time_calls(attack_call function, int calls)
{
	const void *a = argument;
	uint64_t begin_ns = cpu_now_ns();

	for (int i = 0; i < calls; i++)
		(void)function(a, a, a, a, a, a, a, a);
	return cpu_now_ns() - begin_ns;
}

static void make_calls(struct worker *worker, int calls)
{
	worker->cpu_ns += time_calls(call, calls);
	if (beside)
		worker->beside_ns += time_calls(beside, calls);
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

static double per_call(uint64_t ns, uint64_t calls)
{
	return calls ? (double)ns / (double)calls : 0.0;
}

/* One line for each second, until the time is over or a signal came. */
static bool watch(const char *phase, int threads, double seconds)
{
	uint64_t calls = 0, cpu_ns = 0, beside_ns = 0, wall_ns = sim_now_ns();

	for (int i = 0; i < threads; i++) {
		calls += workers[i].calls;
		cpu_ns += workers[i].cpu_ns;
		beside_ns += workers[i].beside_ns;
	}
	for (int second = 1; second <= (int)seconds; second++) {
		uint64_t all = 0, all_ns = 0, all_beside_ns = 0, now_ns;
		bool signalled = attack_wait(1);

		now_ns = sim_now_ns();
		for (int i = 0; i < threads; i++) {
			all += workers[i].calls;
			all_ns += workers[i].cpu_ns;
			all_beside_ns += workers[i].beside_ns;
		}
		(void)printf("%s %d %.0f %.3f %.3f\n", phase, second,
			     (double)(all - calls) * 1e9 / (double)(now_ns - wall_ns),
			     per_call(all_ns - cpu_ns, all - calls),
			     per_call(all_beside_ns - beside_ns, all - calls));
		(void)fflush(stdout);
		calls = all;
		cpu_ns = all_ns;
		beside_ns = all_beside_ns;
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
	const char *control = "";
	const struct attack_option options[] = {
		{"function", "probed function to call (cudaLaunchKernel)", NULL, &function},
		{"beside", "function to call in turn with it (none)", NULL, &control},
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
	if (*control)
		beside = attack_function(libraries, control);
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
