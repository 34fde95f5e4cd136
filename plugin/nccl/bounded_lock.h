/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that is awaited for some 50 us at most: its holder needs less than a microsecond, unless it
 * lost its processor, or is a thread of the process that this one was forked from.
 */
#ifndef NT_PLUGIN_NCCL_BOUNDED_LOCK_H
#define NT_PLUGIN_NCCL_BOUNDED_LOCK_H

#include <sched.h>
#include <stdatomic.h>

enum {
	NT_BOUNDED_LOCK_TRIES = 200,
	NT_BOUNDED_LOCK_SPINS = 100, /* of them; the others let the holder run */
};

/* False: it was not taken. */
static inline int nt_bounded_lock_take(atomic_flag *lock)
{
	for (int i = 0; i < NT_BOUNDED_LOCK_TRIES; i++) {
		if (!atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
			return 1;
		if (i >= NT_BOUNDED_LOCK_SPINS)
			(void)sched_yield();
	}
	return 0;
}

static inline void nt_bounded_lock_let_go(atomic_flag *lock)
{
	atomic_flag_clear_explicit(lock, memory_order_release);
}

#endif
