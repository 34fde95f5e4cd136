/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory of one process while one stack is read: a budget bounds the number of reads, whatever
 * the process has there. The data is untrusted: validate every value.
 */
#ifndef NT_AGENT_STACK_STACK_MEMORY_H
#define NT_AGENT_STACK_STACK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/host/memory.h"
#include "common/base/cleanup.h"

enum {
	NT_STACK_READS = 8192, /* of one stack: 8 threads of 64 frames take some 3,000 */
};

struct nt_stack_memory {
	struct nt_memory memory;
	uint32_t pid;
	uint32_t reads; /* so far: system calls */
	bool takes_fuse; /* its files may be opened on FUSE, whose server might not answer */
};

/* Reads exactly size bytes. -EFAULT: nothing is mapped there; -EDQUOT: the budget is spent. */
NT_MUST_CHECK int nt_stack_memory_read(struct nt_stack_memory *memory, uint64_t address, void *buf,
				       size_t size);
NT_MUST_CHECK int nt_stack_memory_u64(struct nt_stack_memory *memory, uint64_t address,
				      uint64_t *ret_value);

#endif
