/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file of a provider of libibverbs in a process: the one that holds the functions whose addresses
 * a context has. May block, and the file is untrusted: for workers.
 */
#ifndef NT_AGENT_RDMA_PROVIDER_FILE_H
#define NT_AGENT_RDMA_PROVIDER_FILE_H

#include <stdint.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

enum {
	NT_PROVIDER_FILE_BUILD_ID = 72, /* in hex, with its NUL */
};

/* A provider of libibverbs: where in its file its functions are probed. */
struct nt_provider_place {
	uint64_t post_offset, poll_offset; /* 0: not requested */
	char build_id
		[NT_PROVIDER_FILE_BUILD_ID]; /* hex; empty: it has none, or no file was found */
	/* The process holds a device; looked up where no addresses are given. */
	uint64_t holds_device; /* 0 or 1 */
};

/*
 * The mapped file with code at the address, as an O_PATH descriptor that the caller closes. Address
 * 0: the first file with the name of a provider (*-rdmav34.so). -ENOENT: there is none.
 */
NT_MUST_CHECK int nt_provider_file_open(uint32_t pid, uint64_t address, struct stat *ret_stat);

/*
 * Where to probe post_send and poll_cq, at these addresses of the process, in the open file, and its
 * build-id. Addresses 0: the build-id alone. -ENXIO: they are not both in this file. -ENOTSUP: an
 * instruction there is refused, or slow.
 */
NT_MUST_CHECK int nt_provider_file_read(uint32_t pid, int fd, uint64_t post, uint64_t poll,
					struct nt_provider_place *ret_provider);

#endif
