/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/stack_memory.h"

#include <errno.h>

int nt_stack_memory_read(struct nt_stack_memory *memory, uint64_t address, void *buf, size_t size)
{
	if (memory->reads >= NT_STACK_READS)
		return -EDQUOT;
	memory->reads++;
	return nt_memory_read(&memory->memory, memory->pid, address, buf, size);
}

int nt_stack_memory_u64(struct nt_stack_memory *memory, uint64_t address, uint64_t *ret_value)
{
	uint64_t value;
	int r = nt_stack_memory_read(memory, address, &value, sizeof(value));

	if (r == 0)
		*ret_value = value;
	return r;
}
