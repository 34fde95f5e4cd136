/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What all our threads share: signals are not theirs, and their waits know no leap of the real time. */
#ifndef NT_COMMON_SYSTEM_THREAD_H
#define NT_COMMON_SYSTEM_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

/* With all signals blocked: they are the main thread's business. -EAGAIN. */
NT_MUST_CHECK int nt_thread_start(pthread_t *ret_thread, void *(*run)(void *data), void *data);

/* A condition that nt_thread_wait() can wait for. */
void nt_thread_condition_init(pthread_cond_t *condition);

/*
 * With the lock held: until the condition is signalled, or for no reason. False: the time, of
 * the monotonic clock, has come.
 */
bool nt_thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_mono_ns);

#endif
