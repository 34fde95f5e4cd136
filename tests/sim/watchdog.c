/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/watchdog.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "tests/sim/world.h"

enum {
	WORKS = 1000, /* not known to be complete; their events are used in turn */
};

struct work {
	cudaEvent_t start, end;
	bool has_started;
};

struct sim_watchdog {
	enum sim_watchdog_kind kind;
	uint64_t poll_ns;
	int device;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake;
	bool ends;
	struct work work[WORKS];
	uint64_t begun, complete; /* so far */
};

static bool is_complete(cudaEvent_t event)
{
	const cudaError_t r = cudaEventQuery(event);

	if (r != cudaSuccess && r != cudaErrorNotReady)
		sim_must((int)r, "cudaEventQuery");
	return r == cudaSuccess;
}

static void poll_nccl2(struct sim_watchdog *watchdog)
{
	for (; watchdog->complete < watchdog->begun; watchdog->complete++) {
		struct work *work = &watchdog->work[watchdog->complete % WORKS];

		work->has_started = work->has_started || is_complete(work->start);
		if (!work->has_started || !is_complete(work->end))
			return;
	}
}

static void poll_legacy(struct sim_watchdog *watchdog)
{
	const uint64_t from = watchdog->complete;
	bool all = true;

	for (uint64_t i = from; i < watchdog->begun; i++) {
		all = is_complete(watchdog->work[i % WORKS].end) && all;
		if (all)
			watchdog->complete = i + 1;
	}
}

static void *watch(void *data)
{
	struct sim_watchdog *watchdog = data;
	struct timespec until;

	sim_must((int)cudaSetDevice(watchdog->device), "cudaSetDevice");
	(void)pthread_mutex_lock(&watchdog->lock);
	while (!watchdog->ends) {
		if (watchdog->kind == SIM_WATCHDOG_NCCL2)
			poll_nccl2(watchdog);
		else
			poll_legacy(watchdog);
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)(watchdog->poll_ns % 1000000000U);
		until.tv_sec +=
			(time_t)(watchdog->poll_ns / 1000000000U) + until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)pthread_cond_timedwait(&watchdog->wake, &watchdog->lock, &until);
	}
	(void)pthread_mutex_unlock(&watchdog->lock);
	return NULL;
}

struct sim_watchdog *sim_watchdog_new(enum sim_watchdog_kind kind, uint64_t poll_ns, int device)
{
	struct sim_watchdog *watchdog = calloc(1, sizeof(*watchdog));

	sim_must(!watchdog, "calloc");
	watchdog->kind = kind;
	watchdog->poll_ns = poll_ns;
	watchdog->device = device;
	for (int i = 0; i < WORKS; i++) {
		struct work *work = &watchdog->work[i];

		sim_must(cudaEventCreateWithFlags(&work->start, cudaEventDisableTiming), "event");
		sim_must(cudaEventCreateWithFlags(&work->end, cudaEventDisableTiming), "event");
	}
	(void)pthread_mutex_init(&watchdog->lock, NULL);
	(void)pthread_cond_init(&watchdog->wake, NULL);
	sim_must(pthread_create(&watchdog->thread, NULL, watch, watchdog), "a thread");
	return watchdog;
}

void sim_watchdog_free(struct sim_watchdog *watchdog)
{
	if (!watchdog)
		return;
	(void)pthread_mutex_lock(&watchdog->lock);
	watchdog->ends = true;
	(void)pthread_cond_signal(&watchdog->wake);
	(void)pthread_mutex_unlock(&watchdog->lock);
	(void)pthread_join(watchdog->thread, NULL);
	for (int i = 0; i < WORKS; i++) {
		(void)cudaEventDestroy(watchdog->work[i].start);
		(void)cudaEventDestroy(watchdog->work[i].end);
	}
	(void)pthread_cond_destroy(&watchdog->wake);
	(void)pthread_mutex_destroy(&watchdog->lock);
	free(watchdog);
}

void sim_watchdog_begin(struct sim_watchdog *watchdog, cudaStream_t stream)
{
	struct work *work;

	if (!watchdog)
		return;
	(void)pthread_mutex_lock(&watchdog->lock);
	sim_must(watchdog->begun - watchdog->complete == WORKS, "the watchdog");
	work = &watchdog->work[watchdog->begun % WORKS];
	work->has_started = false;
	if (watchdog->kind == SIM_WATCHDOG_NCCL2) {
		poll_nccl2(watchdog);
		sim_must(cudaEventRecord(work->start, stream), "cudaEventRecord");
	}
	(void)pthread_mutex_unlock(&watchdog->lock);
}

void sim_watchdog_end(struct sim_watchdog *watchdog, cudaStream_t stream)
{
	if (!watchdog)
		return;
	(void)pthread_mutex_lock(&watchdog->lock);
	sim_must(cudaEventRecord(watchdog->work[watchdog->begun % WORKS].end, stream),
		 "cudaEventRecord");
	watchdog->begun++;
	(void)pthread_mutex_unlock(&watchdog->lock);
}
