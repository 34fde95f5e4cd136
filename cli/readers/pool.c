/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/pool.h"

#include <sched.h>
#include <stdatomic.h>

#include "common/system/thread.h"

struct pool {
	void (*run)(void *data, size_t i);
	void *data;
	size_t count;
	_Atomic size_t next; /* taken by no thread yet */
};

size_t nt_pool_threads(void)
{
	cpu_set_t usable;
	size_t n = 1;

	CPU_ZERO(&usable);
	if (sched_getaffinity(0, sizeof(usable), &usable) == 0)
		n = (size_t)CPU_COUNT(&usable);
	return n < NT_POOL_THREADS ? n : NT_POOL_THREADS;
}

static void *work(void *data)
{
	struct pool *pool = data;
	size_t i;

	while ((i = atomic_fetch_add(&pool->next, 1)) < pool->count)
		pool->run(pool->data, i);
	return NULL;
}

void nt_pool_run(size_t threads, size_t count, void (*run)(void *data, size_t i), void *data)
{
	struct pool pool = {.run = run, .data = data, .count = count};
	pthread_t thread[NT_POOL_THREADS - 1]; /* the calling one works too */
	size_t started = 0;

	while (started + 1 < threads && started + 1 < count && started < NT_POOL_THREADS - 1 &&
	       nt_thread_start(&thread[started], work, &pool) == 0)
		started++;
	(void)work(&pool);
	while (started)
		(void)pthread_join(thread[--started], NULL);
}

void nt_pool_memory_init(struct nt_pool_memory *memory, size_t bytes)
{
	*memory = (struct nt_pool_memory){.bytes = bytes, .left = bytes};
	(void)pthread_mutex_init(&memory->lock, NULL);
	(void)pthread_cond_init(&memory->given, NULL);
}

void nt_pool_memory_release(struct nt_pool_memory *memory)
{
	(void)pthread_cond_destroy(&memory->given);
	(void)pthread_mutex_destroy(&memory->lock);
}

size_t nt_pool_memory_take(struct nt_pool_memory *memory, size_t bytes)
{
	const size_t taken = bytes < memory->bytes ? bytes : memory->bytes;

	(void)pthread_mutex_lock(&memory->lock);
	while (memory->left < taken)
		(void)pthread_cond_wait(&memory->given, &memory->lock);
	memory->left -= taken;
	(void)pthread_mutex_unlock(&memory->lock);
	return taken;
}

void nt_pool_memory_give(struct nt_pool_memory *memory, size_t bytes)
{
	(void)pthread_mutex_lock(&memory->lock);
	memory->left += bytes;
	(void)pthread_cond_broadcast(&memory->given);
	(void)pthread_mutex_unlock(&memory->lock);
}
