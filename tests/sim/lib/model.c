/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/model.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static unsigned int waiters;

void sim_model_lock(void)
{
	(void)pthread_mutex_lock(&mutex);
}

void sim_model_unlock(void)
{
	(void)pthread_mutex_unlock(&mutex);
}

uint64_t sim_model_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

struct timespec sim_model_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000U),
				 .tv_nsec = (long)(ns % 1000000000U)};
}

void sim_model_sleep_until(uint64_t ns)
{
	struct timespec until = sim_model_timespec(ns);

	if (ns <= sim_model_now())
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void sim_model_await(void)
{
	waiters++;
	(void)pthread_cond_wait(&moved, &mutex);
	waiters--;
}

void sim_model_moved(void)
{
	if (waiters)
		(void)pthread_cond_broadcast(&moved);
}
