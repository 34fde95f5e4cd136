/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "common/system/clock.h"

int nt_thread_start(pthread_t *ret_thread, void *(*run)(void *data), void *data)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret_thread, NULL, run, data);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

void nt_thread_condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t monotonic;

	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(condition, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
}

bool nt_thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_mono_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(until_mono_ns / NT_SECOND),
				       .tv_nsec = (long)(until_mono_ns % NT_SECOND)};

	return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
}
