/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libneutracer-cupti.so: the CUDA driver loads it into a process whose environment has
 *
 *	CUDA_INJECTION64_PATH=/path/to/libneutracer-cupti.so
 *
 * CUPTI itself is that which the process uses; NEUTRACER_CUPTI_LIBRARY names another.
 *
 * It starts one thread, which looks once a second whether the agent asks for a measurement. It
 * opens no file and no socket, and prints nothing.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

#include "plugin/cupti/measurement.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjection(void);

static void *run(void *unused)
{
	(void)unused;
	(void)prctl(PR_SET_NAME, "neutracer-cupti");
	for (;;) {
		const uint32_t ms = nt_measurement_tick();
		const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

		(void)nanosleep(&wait, NULL);
	}
	return NULL;
}

/* The program's signals are not for this thread. */
static void start_thread(int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
				       void *))
{
	sigset_t all, before;
	pthread_t thread;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before); /* on Linux: of the calling thread */
	(void)create(&thread, NULL, run, NULL);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Called by the driver inside cuInit(). Returns 1 in any case: the program goes on without us. */
int InitializeInjection(void)
{
	static atomic_flag is_started = ATOMIC_FLAG_INIT;
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (atomic_flag_test_and_set(&is_started))
		return 1;
	/* Up to glibc 2.33 it lies in libpthread, which a program with CUDA has loaded. */
	*(void **)&create = dlsym(RTLD_DEFAULT, "pthread_create");
	if (create)
		start_thread(create);
	return 1;
}
