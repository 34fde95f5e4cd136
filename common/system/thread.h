/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads with all signals blocked, and condition waits on the monotonic clock. */
#ifndef NT_COMMON_SYSTEM_THREAD_H
#define NT_COMMON_SYSTEM_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

/* With all signals blocked: the main thread handles them. -EAGAIN. */
NT_MUST_CHECK int nt_thread_start(pthread_t *ret_thread, void *(*run)(void *data), void *data);

/* Initialises a condition for nt_thread_wait(). */
void nt_thread_condition_init(pthread_cond_t *condition);

/*
 * With the lock held: waits until the condition is signalled, or spuriously wakes. False: the
 * deadline, on the monotonic clock, has passed.
 */
bool nt_thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_mono_ns);

#endif
