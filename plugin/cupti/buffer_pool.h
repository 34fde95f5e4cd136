/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers that CUPTI fills with records. Their memory is touched only while records are made. */
#ifndef NT_PLUGIN_CUPTI_BUFFER_POOL_H
#define NT_PLUGIN_CUPTI_BUFFER_POOL_H

#include <stddef.h>
#include <stdint.h>

enum {
	/* Small: a buffer is delivered when all its kernels have ended. */
	NT_BUFFER_BYTES = 16 * 1024,
	NT_BUFFERS = 256,
};

/* NULL: all are in use. Called by threads of the program; takes no lock. */
uint8_t *nt_buffer_pool_take(void);
/* 0: it is none of nt_buffer_pool_take(). */
int nt_buffer_pool_give(const uint8_t *buffer);

#endif
