/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/nccl_handle.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/nccl/nccl_cuda.h"
#include "tests/sim/lib/nccl/ras.h"
#include "tests/sim/lib/nccl/setting.h"

/* struct ncclComm of 2.28.9: a program that attaches late reads a rank from there. */
enum {
	AT_MAGIC = 0x1044c0,
	AT_HASH = 0x1044c8,
	AT_RANK = 0x1044d0,
	AT_RANKS = 0x1044d4,
	AT_DEVICE = 0x1044d8,
	AT_BUS = 0x1044f0,
	AT_NODE = 0x104584, /* node, nodes, local rank, local ranks */
	AT_OP_COUNT = 0x1045f0,
	AT_NAME = 0x1069b8,
	SHIFT_MAX = 0x400,
};

#define COMM_MAGIC 0x0280028002800280U

/* SIM_NCCL_SHIFT: so many bytes further on, as in a release that nobody knows. */
static size_t shift(void)
{
	static size_t bytes = SIZE_MAX;

	if (bytes == SIZE_MAX) {
		bytes = sim_setting_number(getenv("SIM_NCCL_SHIFT")) & ~(size_t)7;
		bytes = bytes <= SHIFT_MAX ? bytes : 0;
	}
	return bytes;
}

static void put(struct ncclComm *handle, size_t at, const void *value, size_t size)
{
	memcpy((char *)handle + at + shift(), value, size);
}

struct ncclComm *sim_handle_new(struct sim_comm *comm, const char *name)
{
	struct ncclComm *handle = calloc(1, sizeof(*handle));
	uint64_t magic = COMM_MAGIC, bus = (uint64_t)(comm->device + 1) << 12;
	uint32_t node[] = {0, 1, comm->rank, comm->ranks};
	struct sim_profiler_comm_info info = {.hash = comm->hash,
					      .name = name,
					      .device = comm->device,
					      .ranks = (int)comm->ranks,
					      .rank = (int)comm->rank};

	if (!handle)
		return NULL;
	handle->start_magic = magic;
	handle->comm = comm;
	put(handle, AT_MAGIC, &magic, sizeof(magic));
	put(handle, AT_HASH, &comm->hash, sizeof(comm->hash));
	put(handle, AT_RANK, &comm->rank, sizeof(comm->rank));
	put(handle, AT_RANKS, &comm->ranks, sizeof(comm->ranks));
	put(handle, AT_DEVICE, &comm->device, sizeof(comm->device));
	put(handle, AT_BUS, &bus, sizeof(bus));
	put(handle, AT_NODE, node, sizeof(node));
	put(handle, AT_NAME, &name, sizeof(name));
	sim_cuda.lock();
	if (sim_cuda.watch(&comm->shared->member[comm->rank].bell) != CUDA_SUCCESS) {
		sim_cuda.unlock();
		free(handle);
		return NULL;
	}
	sim_cuda.unlock();
	handle->profiled = sim_profiled_new(&info);
	sim_ras_add(comm);
	return handle;
}

void sim_handle_count(struct ncclComm *handle)
{
	uint64_t *count = (uint64_t *)(void *)((char *)handle + AT_OP_COUNT + shift());

	++*count;
}

void sim_handle_free(struct ncclComm *handle, bool drains)
{
	struct sim_profiled *profiled = handle->profiled;
	struct sim_comm *comm = handle->comm;

	sim_ras_remove(comm);
	sim_profiled_stop(profiled, drains);
	sim_cuda.lock();
	comm->aborted = true;
	sim_cuda.unwatch(&comm->shared->member[comm->rank].bell);
	sim_cuda.progress();
	sim_comm_unref(comm);
	sim_cuda.unlock();
	free(handle);
	sim_profiled_finalize(profiled); /* as late as in the real library */
}

bool sim_handle_is_valid(const struct ncclComm *handle)
{
	return handle && handle->start_magic == COMM_MAGIC;
}
