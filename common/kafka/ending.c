/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/kafka/ending.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/thread.h"

#define PATIENCE_NS (5 * NT_SECOND)

/* Whoever is done with it last frees it: the thread, or who waits for it. */
struct ending {
	rd_kafka_t *rk;
	bool is_member;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_ended, is_left_behind;
};

static atomic_uint left_behind;

struct nt_kafka_shared *nt_kafka_shared_new(void)
{
	struct nt_kafka_shared *shared = calloc(1, sizeof(*shared));

	if (shared)
		atomic_init(&shared->references, 1);
	return shared;
}

void nt_kafka_shared_ref(struct nt_kafka_shared *shared)
{
	(void)atomic_fetch_add(&shared->references, 1);
}

void nt_kafka_shared_unref(struct nt_kafka_shared *shared)
{
	if (shared && atomic_fetch_sub(&shared->references, 1) == 1)
		free(shared);
}

void nt_kafka_end_queue(rd_kafka_queue_t *queue)
{
	if (!queue)
		return;
	rd_kafka_queue_io_event_enable(queue, -1, NULL, 0);
	rd_kafka_queue_destroy(queue);
}

void nt_kafka_end_fully(rd_kafka_t *rk)
{
	struct nt_kafka_shared *shared = rd_kafka_opaque(rk);

	rd_kafka_destroy(rk);
	nt_kafka_shared_unref(shared);
}

static void destroy(rd_kafka_t *rk, bool is_member)
{
	if (is_member)
		(void)rd_kafka_consumer_close(rk);
	nt_kafka_end_fully(rk);
}

static void release(struct ending *ending)
{
	(void)pthread_cond_destroy(&ending->changed);
	(void)pthread_mutex_destroy(&ending->lock);
	free(ending);
}

static void *end(void *data)
{
	struct ending *ending = data;
	bool is_left_behind;

	destroy(ending->rk, ending->is_member);
	(void)pthread_mutex_lock(&ending->lock);
	ending->has_ended = true;
	is_left_behind = ending->is_left_behind;
	(void)pthread_cond_signal(&ending->changed);
	(void)pthread_mutex_unlock(&ending->lock);
	if (is_left_behind) {
		(void)atomic_fetch_sub(&left_behind, 1);
		release(ending);
	}
	return NULL;
}

static void wait_for(struct ending *ending, pthread_t thread)
{
	uint64_t until_ns = nt_clock_mono_ns() + PATIENCE_NS;
	bool has_ended;

	(void)pthread_mutex_lock(&ending->lock);
	while (!ending->has_ended && nt_thread_wait(&ending->changed, &ending->lock, until_ns))
		;
	has_ended = ending->has_ended;
	ending->is_left_behind = !has_ended;
	if (!has_ended)
		(void)atomic_fetch_add(&left_behind, 1);
	(void)pthread_mutex_unlock(&ending->lock);
	if (has_ended) {
		(void)pthread_join(thread, NULL);
		release(ending);
	} else {
		(void)pthread_detach(thread);
	}
}

void nt_kafka_end(rd_kafka_t *rk, bool is_member)
{
	struct ending *ending = calloc(1, sizeof(*ending));
	pthread_t thread;

	if (!ending) {
		destroy(rk, is_member);
		return;
	}
	ending->rk = rk;
	ending->is_member = is_member;
	(void)pthread_mutex_init(&ending->lock, NULL);
	nt_thread_condition_init(&ending->changed);
	if (nt_thread_start(&thread, end, ending) == 0) {
		wait_for(ending, thread);
		return;
	}
	release(ending);
	destroy(rk, is_member);
}

unsigned int nt_kafka_left_behind(void)
{
	return atomic_load(&left_behind);
}
