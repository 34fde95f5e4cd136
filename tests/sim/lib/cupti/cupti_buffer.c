/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/cupti/cupti_buffer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/lib/cupti/cupti_record.h"

enum {
	STEP_NS = 10000000, /* ends of operations are looked at so often */
};

struct buffer {
	uint8_t *data; /* the client's; NULL: none */
	size_t size, used, records, most_records;
};

/* Buffers that are filled one after the other. */
struct series {
	struct series *next;
	struct buffer buffer;
};

struct full {
	struct full *next;
	struct buffer buffer;
};

static struct series operations;
static struct series *all = &operations; /* a thread's stays when the thread ends */
static __thread struct series *own;
static struct full *full, **full_tail = &full;
static sim_cupti_request request;
static sim_cupti_complete complete;
static size_t dropped;
static uint64_t period_ns, next_period_ns;
static bool worker_runs;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all of these */
static pthread_cond_t changed;
/* Buffers are given back by one thread at a time; taken before the mutex. */
static pthread_mutex_t delivery = PTHREAD_MUTEX_INITIALIZER;

/* ---- filling; under the mutex ---- */

/* The buffer takes no more records. */
static void retire(struct series *series)
{
	struct full *item = malloc(sizeof(*item));

	if (item) {
		*item = (struct full){.buffer = series->buffer};
		*full_tail = item;
		full_tail = &item->next;
	} else {
		dropped += series->buffer.records;
	}
	series->buffer = (struct buffer){0};
}

static bool has_room(const struct buffer *buffer, size_t bytes)
{
	return buffer->data && buffer->used + bytes <= buffer->size &&
	       (buffer->most_records == 0 || buffer->records < buffer->most_records);
}

/* Unlocks to call the client. */
static void request_buffer(struct series *series)
{
	sim_cupti_request ask = request;
	struct buffer buffer = {0};

	if (!ask)
		return;
	(void)pthread_mutex_unlock(&mutex);
	ask(&buffer.data, &buffer.size, &buffer.most_records);
	(void)pthread_mutex_lock(&mutex);
	series->buffer = buffer;
}

static void *work(void *unused);

static void start_worker(void)
{
	pthread_condattr_t clock;
	sigset_t every, before;
	pthread_t thread;

	if (worker_runs)
		return;
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&changed, &clock);
	(void)pthread_condattr_destroy(&clock);
	(void)sigfillset(&every);
	(void)pthread_sigmask(SIG_SETMASK, &every, &before);
	if (pthread_create(&thread, NULL, work, NULL) == 0) {
		(void)pthread_setname_np(thread, "sim-cupti");
		(void)pthread_detach(thread);
		worker_runs = true;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void write_record(struct series *series, const void *record, size_t bytes)
{
	struct buffer *buffer = &series->buffer;

	(void)pthread_mutex_lock(&mutex);
	if (buffer->data && !has_room(buffer, bytes)) {
		retire(series);
		if (period_ns == 0 && worker_runs)
			(void)pthread_cond_signal(&changed);
	}
	if (!buffer->data)
		request_buffer(series);
	if (has_room(buffer, bytes)) {
		memcpy(buffer->data + buffer->used, record, bytes);
		buffer->used += bytes;
		buffer->records++;
	} else {
		dropped++;
	}
	(void)pthread_mutex_unlock(&mutex);
}

void sim_cupti_write_operation(const void *record, size_t bytes)
{
	write_record(&operations, record, bytes);
}

void sim_cupti_write_call(const void *record, size_t bytes)
{
	if (!own) {
		own = calloc(1, sizeof(*own));
		if (!own) {
			sim_cupti_count_dropped();
			return;
		}
		(void)pthread_mutex_lock(&mutex);
		own->next = all;
		all = own;
		(void)pthread_mutex_unlock(&mutex);
	}
	write_record(own, record, bytes);
}

void sim_cupti_count_dropped(void)
{
	(void)pthread_mutex_lock(&mutex);
	dropped++;
	(void)pthread_mutex_unlock(&mutex);
}

size_t sim_cupti_take_dropped(void)
{
	size_t taken;

	(void)pthread_mutex_lock(&mutex);
	taken = dropped;
	dropped = 0;
	(void)pthread_mutex_unlock(&mutex);
	return taken;
}

/* ---- giving back ---- */

/* Under `delivery` alone. */
static void deliver(void)
{
	sim_cupti_complete give;
	struct full *list;

	(void)pthread_mutex_lock(&mutex);
	list = full;
	full = NULL;
	full_tail = &full;
	give = complete;
	(void)pthread_mutex_unlock(&mutex);
	while (list) {
		struct full *next = list->next;

		if (give)
			give(NULL, 0, list->buffer.data, list->buffer.size, list->buffer.used);
		free(list);
		list = next;
	}
}

void sim_cupti_flush(bool but_operations)
{
	(void)pthread_mutex_lock(&delivery);
	(void)pthread_mutex_lock(&mutex);
	for (struct series *series = all; series; series = series->next)
		if (series->buffer.used > 0 && !(but_operations && series == &operations))
			retire(series);
	(void)pthread_mutex_unlock(&mutex);
	deliver();
	(void)pthread_mutex_unlock(&delivery);
}

/* Under the mutex. */
static void wait_for_work(void)
{
	uint64_t now_ns = sim_cupti_cuda.now(), until_ns = 0;
	struct timespec until;

	if (sim_cupti_keeps_any())
		until_ns = now_ns + STEP_NS;
	if (period_ns && full && (until_ns == 0 || next_period_ns < until_ns))
		until_ns = next_period_ns;
	if (until_ns == 0) {
		(void)pthread_cond_wait(&changed, &mutex);
		return;
	}
	until = (struct timespec){.tv_sec = (time_t)(until_ns / 1000000000U),
				  .tv_nsec = (long)(until_ns % 1000000000U)};
	(void)pthread_cond_timedwait(&changed, &mutex, &until);
}

static void *work(void *unused)
{
	(void)unused;
	for (;;) {
		bool is_due;

		sim_cupti_record_ended();
		(void)pthread_mutex_lock(&mutex);
		is_due = full && (period_ns == 0 || sim_cupti_cuda.now() >= next_period_ns);
		if (is_due)
			next_period_ns = sim_cupti_cuda.now() + period_ns;
		else
			wait_for_work();
		(void)pthread_mutex_unlock(&mutex);
		if (is_due) {
			(void)pthread_mutex_lock(&delivery);
			deliver();
			(void)pthread_mutex_unlock(&delivery);
		}
	}
	return NULL;
}

void sim_cupti_wake(void)
{
	(void)pthread_mutex_lock(&mutex);
	if (worker_runs)
		(void)pthread_cond_signal(&changed);
	(void)pthread_mutex_unlock(&mutex);
}

void sim_cupti_set_period(uint32_t ms)
{
	(void)pthread_mutex_lock(&mutex);
	period_ns = (uint64_t)ms * 1000000;
	next_period_ns = sim_cupti_cuda.now() + period_ns;
	if (worker_runs)
		(void)pthread_cond_signal(&changed);
	(void)pthread_mutex_unlock(&mutex);
}

void sim_cupti_set_callbacks(sim_cupti_request new_request, sim_cupti_complete new_complete)
{
	(void)pthread_mutex_lock(&mutex);
	request = new_request;
	complete = new_complete;
	start_worker();
	(void)pthread_mutex_unlock(&mutex);
}

void sim_cupti_forget_buffers(void)
{
	(void)pthread_mutex_lock(&mutex);
	request = NULL;
	complete = NULL;
	period_ns = 0;
	for (struct series *series = all; series; series = series->next)
		series->buffer = (struct buffer){0};
	while (full) {
		struct full *next = full->next;

		free(full);
		full = next;
	}
	full_tail = &full;
	(void)pthread_mutex_unlock(&mutex);
}
