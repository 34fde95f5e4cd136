/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/handle_reaper.h"

#include <stdlib.h>

#include "common/system/clock.h"
#include "common/system/thread.h"

#define PATIENCE_NS (5 * NT_SECOND)

/* Freed by its last user: the thread that destroys the handle, or the one that waits for it. */
struct nt_kafka_opaque {
	struct nt_kafka_shared *shared;
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

void nt_kafka_shared_unref(struct nt_kafka_shared *shared)
{
	if (shared && atomic_fetch_sub(&shared->references, 1) == 1)
		free(shared);
}

struct nt_kafka_opaque *nt_kafka_opaque_new(struct nt_kafka_shared *shared)
{
	struct nt_kafka_opaque *opaque = calloc(1, sizeof(*opaque));

	if (!opaque)
		return NULL;
	(void)atomic_fetch_add(&shared->references, 1);
	opaque->shared = shared;
	(void)pthread_mutex_init(&opaque->lock, NULL);
	nt_thread_condition_init(&opaque->changed);
	return opaque;
}

void nt_kafka_opaque_free(struct nt_kafka_opaque *opaque)
{
	(void)pthread_cond_destroy(&opaque->changed);
	(void)pthread_mutex_destroy(&opaque->lock);
	nt_kafka_shared_unref(opaque->shared);
	free(opaque);
}

struct nt_kafka_shared *nt_kafka_opaque_shared(const struct nt_kafka_opaque *opaque)
{
	return opaque->shared;
}

void nt_kafka_end_queue(rd_kafka_queue_t *queue)
{
	if (!queue)
		return;
	rd_kafka_queue_io_event_enable(queue, -1, NULL, 0);
	rd_kafka_queue_destroy(queue);
}

static void destroy(struct nt_kafka_opaque *opaque)
{
	if (opaque->is_member)
		(void)rd_kafka_consumer_close(opaque->rk);
	rd_kafka_destroy(opaque->rk);
}

static void *end(void *data)
{
	struct nt_kafka_opaque *opaque = data;
	bool is_left_behind;

	destroy(opaque);
	(void)pthread_mutex_lock(&opaque->lock);
	opaque->has_ended = true;
	is_left_behind = opaque->is_left_behind;
	(void)pthread_cond_signal(&opaque->changed);
	(void)pthread_mutex_unlock(&opaque->lock);
	if (is_left_behind) {
		(void)atomic_fetch_sub(&left_behind, 1);
		nt_kafka_opaque_free(opaque);
	}
	return NULL;
}

static void wait_for(struct nt_kafka_opaque *opaque, pthread_t thread)
{
	uint64_t until_ns = nt_clock_mono_ns() + PATIENCE_NS;
	bool has_ended;

	(void)pthread_mutex_lock(&opaque->lock);
	while (!opaque->has_ended && nt_thread_wait(&opaque->changed, &opaque->lock, until_ns))
		;
	has_ended = opaque->has_ended;
	opaque->is_left_behind = !has_ended;
	if (!has_ended)
		(void)atomic_fetch_add(&left_behind, 1);
	(void)pthread_mutex_unlock(&opaque->lock);
	if (has_ended) {
		(void)pthread_join(thread, NULL);
		nt_kafka_opaque_free(opaque);
	} else {
		(void)pthread_detach(thread);
	}
}

void nt_kafka_end(rd_kafka_t *rk, bool is_member)
{
	struct nt_kafka_opaque *opaque = rd_kafka_opaque(rk);
	pthread_t thread;

	opaque->rk = rk;
	opaque->is_member = is_member;
	if (nt_thread_start(&thread, end, opaque) == 0) {
		wait_for(opaque, thread);
		return;
	}
	destroy(opaque);
	nt_kafka_opaque_free(opaque);
}

void nt_kafka_end_fully(rd_kafka_t *rk)
{
	struct nt_kafka_opaque *opaque = rd_kafka_opaque(rk);

	rd_kafka_destroy(rk);
	nt_kafka_opaque_free(opaque);
}

unsigned int nt_kafka_left_behind(void)
{
	return atomic_load(&left_behind);
}
