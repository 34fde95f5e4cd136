/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers that CUPTI fills with records: at most NT_BUFFERS at a time. They are of the heap: if
 * another client takes over, CUPTI gives the last of them to it, and it may free them.
 */
#ifndef NT_PLUGIN_CUPTI_BUFFER_POOL_H
#define NT_PLUGIN_CUPTI_BUFFER_POOL_H

#include <stddef.h>
#include <stdint.h>

enum {
	/* Small: a buffer is delivered when all its kernels have ended. */
	NT_BUFFER_BYTES = 16 * 1024,
	NT_BUFFERS = 256,
};

/* NULL: all are in use, or there is no memory. Called by threads of the program. */
uint8_t *nt_buffer_pool_take(void);
/* Frees it. 0: it is none of nt_buffer_pool_take(), or was given back. */
int nt_buffer_pool_give(uint8_t *buffer);

#endif
