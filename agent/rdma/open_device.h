/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A device of RDMA that a process opened before its verbs were observed: whether it holds one, and
 * where the provider's functions are, by the context in its memory. May block, and the process's
 * memory is untrusted: for workers.
 */
#ifndef NT_AGENT_RDMA_OPEN_DEVICE_H
#define NT_AGENT_RDMA_OPEN_DEVICE_H

#include <stddef.h>
#include <stdint.h>

enum {
	NT_OPEN_DEVICES = 16, /* of one process; further ones are not searched for */
};

/* Fills fd with the descriptors of its devices (/dev/infiniband/uverbs*). Returns their number. */
size_t nt_open_device_list(uint32_t pid, int fd[NT_OPEN_DEVICES]);

/*
 * Searches the process's memory, as far as it is its own and in use, for a context of one of these
 * descriptors. Reads at most 256 MiB, looks at 256 GiB of mappings, and passes over those above 1 TiB.
 * -ENOENT: there is none, or it was not found.
 */
__attribute__((warn_unused_result)) int nt_open_device_functions(uint32_t pid, const int *fd,
								 size_t fds, uint64_t *ret_post,
								 uint64_t *ret_poll);

#endif
