/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pool of threads that read the files of a job at the same time. */
#ifndef NT_CLI_READERS_POOL_H
#define NT_CLI_READERS_POOL_H

#include <pthread.h>
#include <stddef.h>

enum {
	NT_POOL_THREADS = 8,
};

/* As many threads as the machine has processors for, at most NT_POOL_THREADS. */
size_t nt_pool_threads(void);

/*
 * Calls run(data, i) once for each i below count, on that many threads; also on fewer, if they
 * cannot be started. Returns after the last call. `run` must only write to what belongs to i.
 */
void nt_pool_run(size_t threads, size_t count, void (*run)(void *data, size_t i), void *data);

/*
 * The memory that threads of a pool may use at the same time. One that needs more than there is
 * uses it alone.
 */
struct nt_pool_memory {
	pthread_mutex_t lock;
	pthread_cond_t given; /* back */
	size_t bytes, left;
};

void nt_pool_memory_init(struct nt_pool_memory *memory, size_t bytes);
void nt_pool_memory_release(struct nt_pool_memory *memory);
/* Waits until so much is left, and returns what to give back. */
size_t nt_pool_memory_take(struct nt_pool_memory *memory, size_t bytes);
void nt_pool_memory_give(struct nt_pool_memory *memory, size_t bytes);

#endif
