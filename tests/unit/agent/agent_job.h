/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Synthetic jobs on a synthetic node: the calls of an MPI rank and of an NCCL rank, step by step.
 */
#ifndef NT_TESTS_UNIT_AGENT_AGENT_JOB_H
#define NT_TESTS_UNIT_AGENT_AGENT_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/agent/agent_node.h"

enum {
	PID = 100,
	DOUBLE = 0x7000, /* address of the data type */
	STREAM = 0x51,
};

#define WORLD                    0x7f0000001000ULL
#define ENVIRON(node, pid, text) node_describe_as(node, pid, text, sizeof(text) - 1)
#define MPI_ENVIRON(rank)                                                                          \
	"OMPI_COMM_WORLD_RANK=" rank "\0OMPI_COMM_WORLD_SIZE=2\0PMIX_NAMESPACE=77\0"

static uint8_t world_bytes[4][FAKE_MPI_BYTES];

static inline void mpi_process(struct node *node, uint32_t pid, uint32_t rank, bool late)
{
	fake_mpi(world_bytes[rank], WORLD, "MPI_COMM_WORLD", rank, 2);
	fake_memory_add(&node->memory, pid, WORLD, world_bytes[rank], FAKE_MPI_BYTES);
	node_map(node, pid, "/usr/lib/libmpi.so.40", NT_LIBRARY_MPI, late);
}

static inline void mpi_init(struct node *node, uint32_t pid)
{
	struct nt_event_call call = node_call(node, pid, pid, "MPI_Init", NT_LIBRARY_MPI, MS);

	node_event(node, &call);
}

/* count doubles; the call lasts ns. */
static inline void mpi_reduce(struct node *node, uint32_t pid, uint64_t comm, uint64_t count,
			      uint64_t ns)
{
	struct nt_event_call call = node_call(node, pid, pid, "MPI_Allreduce", NT_LIBRARY_MPI, ns);

	call.word[2] = count;
	call.word[3] = DOUBLE + (1ULL << 40);
	call.word[5] = comm;
	call.deref = 8;
	node_event(node, &call);
}

/* Steps of 20 ms own work and 5 ms in the reduction. */
static inline void mpi_steps(struct node *node, uint32_t pid, int steps)
{
	for (int i = 0; i < steps; i++) {
		node->now_ns += 20 * MS;
		mpi_reduce(node, pid, WORLD, 1000, 5 * MS);
		node->now_ns += 5 * MS;
	}
}

static inline uint8_t *nccl_bytes(struct node *node, uint32_t pid, uint64_t handle, uint64_t hash,
				  uint32_t rank, uint32_t size)
{
	uint8_t *bytes = calloc(1, FAKE_NCCL_BYTES);

	assert_non_null(bytes);
	fake_nccl(bytes, hash, rank, size);
	fake_memory_add(&node->memory, pid, handle, bytes, FAKE_NCCL_BYTES);
	return bytes;
}

static inline void nccl_init(struct node *node, uint32_t pid, uint32_t tid, uint64_t handle,
			     uint32_t rank, uint32_t size, uint8_t id_byte)
{
	struct nt_event_call call =
		node_call(node, pid, tid, "ncclCommInitRank", NT_LIBRARY_NCCL, MS);
	uint8_t id[NT_ID_BYTES];

	memset(id, id_byte, sizeof(id));
	call.word[0] = 0x6000;
	call.word[1] = size;
	call.word[2] = rank;
	call.deref = handle;
	nt_tracker_event(node->tracker, &call, id);
}

static inline void nccl_reduce(struct node *node, uint32_t pid, uint32_t tid, uint64_t handle,
			       uint64_t count, uint64_t stream)
{
	struct nt_event_call call = node_call(node, pid, tid, "ncclAllReduce", NT_LIBRARY_NCCL, 0);

	call.word[2] = count;
	call.word[3] = 7; /* float32 */
	call.word[5] = handle;
	call.word[6] = stream;
	node_event(node, &call);
}

static inline void stream_sync(struct node *node, uint32_t pid, uint32_t tid, uint64_t stream,
			       uint64_t ns)
{
	struct nt_event_call call =
		node_call(node, pid, tid, "cudaStreamSynchronize", NT_LIBRARY_CUDART, ns);

	call.word[0] = stream;
	node_event(node, &call);
	node->now_ns += ns;
}

/* A data-parallel step: 2 ms host, 20 ms awaited kernels, a reduction that takes wait_ns. */
static inline void nccl_steps(struct node *node, uint32_t pid, uint64_t handle, bool check,
			      int steps, uint64_t wait_ns)
{
	for (int i = 0; i < steps; i++) {
		node->now_ns += 2 * MS;
		node->counters.calls[NT_COUNTER_LAUNCH] += 100;
		if (check)
			stream_sync(node, pid, pid, STREAM, 20 * MS);
		nccl_reduce(node, pid, pid, handle, 1 << 20, STREAM + 1);
		stream_sync(node, pid, pid, STREAM + 1, wait_ns);
	}
}

#endif
