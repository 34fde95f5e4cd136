/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The worker that takes a profile: it samples for some seconds, and then answers. */
#ifndef NT_AGENT_PROFILE_PROFILE_WORKER_H
#define NT_AGENT_PROFILE_PROFILE_WORKER_H

#include <stddef.h>
#include <stdint.h>

#include "agent/profile/profile.h"

enum {
	NT_PROFILE_PIECE = 32 << 10, /* bytes of one answer, but of the last one */
	NT_PROFILE_CPU_SHARE = 20, /* a 20th of one core, */
	NT_PROFILE_CPU_BEGIN_MS = 200, /* after the first reading of files */
};

struct nt_profile_task {
	uint64_t start_boot_ns; /* of the process */
	uint32_t pid;
	bool takes_fuse; /* as nt_stack_reader_new() */
	struct nt_profile_wish wish;
	uint32_t thread[NT_STACK_THREADS]; /* as nt_stack_read() */
};

/* An nt_worker_fn. Its answers are the pieces of a struct nt_profile, in order. */
void nt_profile_serve(int socket, const uint8_t *request, size_t len, int fd);

#endif
