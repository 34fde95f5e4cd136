/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * librdkafka uses C11 threads, which the thread sanitizer does not support: it crashes. They are
 * mapped to POSIX threads here, with which glibc shares the structs.
 */
#ifndef NT_TESTS_UNIT_COMMON_KAFKA_THREADS_H
#define NT_TESTS_UNIT_COMMON_KAFKA_THREADS_H
#ifdef __SANITIZE_THREAD__

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

/* The library's atomic counters are not instrumented either. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "ignore_noninstrumented_modules=1";
}

struct threads_start {
	thrd_start_t run;
	void *data;
};

static int threads_result(int r)
{
	if (r == ETIMEDOUT)
		return thrd_timedout;
	if (r == EBUSY)
		return thrd_busy;
	return r ? thrd_error : thrd_success;
}

static void *threads_run(void *data)
{
	struct threads_start start = *(struct threads_start *)data;

	free(data);
	return (void *)(intptr_t)start.run(start.data);
}

int thrd_create(thrd_t *thread, thrd_start_t run, void *data)
{
	struct threads_start *start = malloc(sizeof(*start));

	if (!start)
		return thrd_nomem;
	*start = (struct threads_start){run, data};
	return threads_result(pthread_create(thread, NULL, threads_run, start));
}

int thrd_join(thrd_t thread, int *ret_result)
{
	void *result = NULL;
	int r = pthread_join(thread, &result);

	if (ret_result)
		*ret_result = (int)(intptr_t)result;
	return threads_result(r);
}

int mtx_init(mtx_t *mutex, int type)
{
	pthread_mutexattr_t attributes;

	(void)pthread_mutexattr_init(&attributes);
	if (type & mtx_recursive)
		(void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	return threads_result(pthread_mutex_init((pthread_mutex_t *)mutex, &attributes));
}

void mtx_destroy(mtx_t *mutex)
{
	(void)pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int mtx_lock(mtx_t *mutex)
{
	return threads_result(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_trylock(mtx_t *mutex)
{
	return threads_result(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

int mtx_unlock(mtx_t *mutex)
{
	return threads_result(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

int cnd_init(cnd_t *condition)
{
	return threads_result(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

void cnd_destroy(cnd_t *condition)
{
	(void)pthread_cond_destroy((pthread_cond_t *)condition);
}

int cnd_signal(cnd_t *condition)
{
	return threads_result(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
	return threads_result(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
	return threads_result(
		pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
	return threads_result(pthread_cond_timedwait((pthread_cond_t *)condition,
						     (pthread_mutex_t *)mutex, until));
}

#endif
#endif
