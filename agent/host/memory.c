/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/memory.h"

#include <errno.h>
#include <sys/uio.h>

enum {
	LOWEST_ADDRESS = 4096, /* the first page is never mapped */
};

static int read_live(void *data, uint32_t pid, uint64_t address, void *buf, size_t size)
{
	struct iovec local = {.iov_base = buf, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
	ssize_t n;

	(void)data;
	n = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

struct nt_memory nt_memory_live(void)
{
	return (struct nt_memory){.read = read_live};
}

int nt_memory_read(const struct nt_memory *memory, uint32_t pid, uint64_t address, void *buf,
		   size_t size)
{
	if (address < LOWEST_ADDRESS || address > UINT64_MAX - size)
		return -EFAULT;
	return memory->read(memory->data, pid, address, buf, size);
}

int nt_memory_u64(const struct nt_memory *memory, uint32_t pid, uint64_t address,
		  uint64_t *ret_value)
{
	uint64_t value;
	int r = nt_memory_read(memory, pid, address, &value, sizeof(value));

	if (r == 0)
		*ret_value = value;
	return r;
}

int nt_memory_u32(const struct nt_memory *memory, uint32_t pid, uint64_t address,
		  uint32_t *ret_value)
{
	uint32_t value;
	int r = nt_memory_read(memory, pid, address, &value, sizeof(value));

	if (r == 0)
		*ret_value = value;
	return r;
}
