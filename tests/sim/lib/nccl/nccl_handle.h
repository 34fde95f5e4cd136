/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A communicator as the program holds it: a block that looks like the real one from outside. */
#ifndef NT_SIM_NCCL_HANDLE_H
#define NT_SIM_NCCL_HANDLE_H

#include <stdbool.h>

#include "tests/sim/lib/communicator.h"
#include "tests/sim/lib/nccl/nccl.h"
#include "tests/sim/lib/nccl/profiled.h"

enum {
	SIM_HANDLE_BYTES = 0x107000,
};

struct ncclComm {
	uint64_t start_magic;
	struct sim_comm *comm;
	const char *last_error;
	struct sim_profiled *profiled; /* NULL: without a profiler plugin */
	char rest[SIM_HANDLE_BYTES - 32];
};

_Static_assert(sizeof(struct ncclComm) == SIM_HANDLE_BYTES, "offsets are of the whole");

/* The reference to comm goes along. NULL: no memory, or too many ranks in this process. */
struct ncclComm *sim_handle_new(struct sim_comm *comm, const char *name);
/* What is under way is given up. With `drains`, a profiler first sees what is done. */
void sim_handle_free(struct ncclComm *handle, bool drains);
bool sim_handle_is_valid(const struct ncclComm *handle);
/* One launch more, in the place where the real library counts them. */
void sim_handle_count(struct ncclComm *handle);

#endif
