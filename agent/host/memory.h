/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the memory of watched processes. The data is untrusted: validate every value. */
#ifndef NT_AGENT_HOST_MEMORY_H
#define NT_AGENT_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_memory {
	/* Reads exactly size bytes or fails with a negative errno; the buffer is then undefined. */
	int (*read)(void *data, uint32_t pid, uint64_t address, void *buf, size_t size);
	void *data;
};

/* The reader for running processes. */
struct nt_memory nt_memory_live(void);

NT_MUST_CHECK int nt_memory_read(const struct nt_memory *memory, uint32_t pid, uint64_t address,
				 void *buf, size_t size);
NT_MUST_CHECK int nt_memory_u64(const struct nt_memory *memory, uint32_t pid, uint64_t address,
				uint64_t *ret_value);
NT_MUST_CHECK int nt_memory_u32(const struct nt_memory *memory, uint32_t pid, uint64_t address,
				uint32_t *ret_value);

#endif
