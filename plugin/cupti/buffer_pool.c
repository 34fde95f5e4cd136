/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cupti/buffer_pool.h"

#include <stdatomic.h>

enum {
	WORD_BITS = 64,
	WORDS = NT_BUFFERS / WORD_BITS,
};

static uint8_t pool[NT_BUFFERS][NT_BUFFER_BYTES] __attribute__((aligned(64)));
static _Atomic uint64_t in_use[WORDS]; /* a bit per buffer */

uint8_t *nt_buffer_pool_take(void)
{
	for (int word = 0; word < WORDS; word++) {
		uint64_t used = atomic_load_explicit(&in_use[word], memory_order_relaxed);

		while (~used) {
			const int bit = __builtin_ctzll(~used);

			if (atomic_compare_exchange_weak_explicit(
				    &in_use[word], &used, used | UINT64_C(1) << bit,
				    memory_order_acquire, memory_order_relaxed))
				return pool[word * WORD_BITS + bit];
		}
	}
	return NULL;
}

int nt_buffer_pool_give(const uint8_t *buffer)
{
	const uintptr_t at = (uintptr_t)buffer - (uintptr_t)pool;
	const size_t index = at / NT_BUFFER_BYTES;

	if (at >= sizeof(pool) || at % NT_BUFFER_BYTES)
		return 0;
	atomic_fetch_and_explicit(&in_use[index / WORD_BITS], ~(UINT64_C(1) << index % WORD_BITS),
				  memory_order_release);
	return 1;
}
