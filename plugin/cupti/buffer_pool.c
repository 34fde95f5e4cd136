/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cupti/buffer_pool.h"

#include <stdatomic.h>
#include <stdlib.h>

static uint8_t reserved; /* its address stands for a buffer that is being made */
static uint8_t *_Atomic taken[NT_BUFFERS]; /* NULL: free. What another client freed stays here. */

uint8_t *nt_buffer_pool_take(void)
{
	for (int i = 0; i < NT_BUFFERS; i++) {
		uint8_t *buffer = NULL;

		if (!atomic_compare_exchange_strong(&taken[i], &buffer, &reserved))
			continue;
		buffer = aligned_alloc(8, NT_BUFFER_BYTES);
		atomic_store(&taken[i], buffer);
		return buffer;
	}
	return NULL;
}

int nt_buffer_pool_give(uint8_t *buffer)
{
	for (int i = 0; buffer && buffer != &reserved && i < NT_BUFFERS; i++) {
		uint8_t *mine = buffer;

		if (!atomic_compare_exchange_strong(&taken[i], &mine, NULL))
			continue;
		free(buffer);
		return 1;
	}
	return 0;
}
