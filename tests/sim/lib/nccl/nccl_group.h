/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The group of the calling thread: communicators to be made and calls to be launched at its end.
 * Outside of a group both are done at once.
 */
#ifndef NT_SIM_NCCL_GROUP_H
#define NT_SIM_NCCL_GROUP_H

#include <pthread.h>

#include "tests/sim/lib/nccl/nccl.h"
#include "tests/sim/lib/transfer.h"

enum sim_init_kind {
	SIM_INIT_ID,
	SIM_INIT_SPLIT,
};

struct sim_init {
	enum sim_init_kind kind;
	struct ncclComm *parent;
	ncclUniqueId id;
	unsigned int ranks, rank;
	int device, color, key;
	const char *name;
	ncclComm_t *ret;
	ncclResult_t result;
	pthread_t thread;
};

/* Makes the communicator, now or at the end of the group. */
ncclResult_t sim_group_init(const struct sim_init *init);
/* Launches the call, now or at the end of the group. */
ncclResult_t sim_group_call(struct ncclComm *comm, cudaStream_t stream, struct sim_call *call);

#endif
