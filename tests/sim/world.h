/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The communicators of a training job with tensor, data and pipeline parallelism, in Megatron's
 * order (tensor ranks next to each other, then data, then pipeline), and its calls of libnccl,
 * each of which is counted as it is made. A call that fails ends the process: the job's rank
 * cannot go on.
 */
#ifndef NT_SIM_WORLD_H
#define NT_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/job.h"
#include "tests/sim/lib/nccl/nccl.h"
#include "tests/sim/watchdog.h"

struct sim_group {
	ncclComm_t comm; /* NULL: a group of one, whose calls are not made */
	const char *name;
	uint32_t rank, size;
};

struct sim_layout {
	uint32_t tp, dp, pp;
};

struct sim_world {
	struct sim_group world, tensor, data, pipeline;
	struct sim_truth truth;
	struct sim_watchdog *watchdog; /* of all collectives; owned by the job, or NULL */
};

enum sim_making {
	SIM_MAKING_INIT, /* each group by a unique id of its own, told through the world group */
	SIM_MAKING_SPLIT,
};

/* 0, or -EINVAL where rank or size do not fit, -EIO where the library refuses. */
int sim_world_open(struct sim_world *world, uint32_t rank, struct sim_layout layout,
		   const ncclUniqueId *id, enum sim_making making);
void sim_world_close(struct sim_world *world);

void sim_all_reduce(struct sim_world *world, const struct sim_group *group, void *buffer,
		    size_t count, cudaStream_t stream);
void sim_reduce_scatter(struct sim_world *world, const struct sim_group *group, void *buffer,
			size_t count, cudaStream_t stream);
void sim_all_gather(struct sim_world *world, const struct sim_group *group, void *buffer,
		    size_t count, cudaStream_t stream);
void sim_broadcast(struct sim_world *world, const struct sim_group *group, void *buffer,
		   size_t count, cudaStream_t stream);
void sim_send(struct sim_world *world, const struct sim_group *group, const void *buffer,
	      size_t count, uint32_t peer, cudaStream_t stream);
void sim_recv(struct sim_world *world, const struct sim_group *group, void *buffer, size_t count,
	      uint32_t peer, cudaStream_t stream);

/* Ends the process with a message where the result is no success. */
void sim_must(int result, const char *what);

#endif
