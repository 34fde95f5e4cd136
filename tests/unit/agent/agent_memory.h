/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of a synthetic process: a few byte ranges at chosen addresses. */
#ifndef NT_TESTS_UNIT_AGENT_AGENT_MEMORY_H
#define NT_TESTS_UNIT_AGENT_AGENT_MEMORY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/host/memory.h"

enum {
	FAKE_RUNS = 32,
};

struct fake_memory {
	struct {
		uint32_t pid; /* 0: any */
		uint64_t address;
		uint8_t *data;
		size_t size;
	} run[FAKE_RUNS];
	size_t runs;
	uint64_t reads;
};

static inline int fake_memory_read(void *data, uint32_t pid, uint64_t address, void *buf,
				   size_t size)
{
	struct fake_memory *memory = data;

	memory->reads++;
	for (size_t i = 0; i < memory->runs; i++) {
		uint64_t at = memory->run[i].address;

		if ((memory->run[i].pid && memory->run[i].pid != pid) || address < at ||
		    address - at > memory->run[i].size ||
		    size > memory->run[i].size - (address - at))
			continue;
		memcpy(buf, memory->run[i].data + (address - at), size);
		return 0;
	}
	return -EFAULT;
}

static inline void fake_memory_add(struct fake_memory *memory, uint32_t pid, uint64_t address,
				   void *data, size_t size)
{
	memory->run[memory->runs].pid = pid;
	memory->run[memory->runs].address = address;
	memory->run[memory->runs].data = data;
	memory->run[memory->runs++].size = size;
}

static inline struct nt_memory fake_memory(struct fake_memory *memory)
{
	return (struct nt_memory){.read = fake_memory_read, .data = memory};
}

/* An ncclComm of 2.28.9; the struct must hold FAKE_NCCL_BYTES zeroed bytes. */
enum {
	FAKE_NCCL_BYTES = 0x107000,
	FAKE_NCCL_HASH = 0x1044c8,
};

static inline void fake_nccl_at(uint8_t *comm, size_t offset, uint64_t hash, uint32_t rank,
				uint32_t size, size_t local)
{
	const uint64_t magic = 0x0280028002800280ULL;
	const uint32_t place[] = {rank, size, 0};
	const uint32_t local_place[] = {rank % 4, size < 4 ? size : 4};

	memcpy(comm, &magic, sizeof(magic));
	memcpy(comm + offset, &hash, sizeof(hash));
	memcpy(comm + offset + 8, place, sizeof(place));
	memcpy(comm + local, local_place, sizeof(local_place));
}

static inline void fake_nccl(uint8_t *comm, uint64_t hash, uint32_t rank, uint32_t size)
{
	fake_nccl_at(comm, FAKE_NCCL_HASH, hash, rank, size, 0x10458c);
}

/* An ompi_communicator_t of 4.1 and its group; together FAKE_MPI_BYTES, at `address`. */
enum {
	FAKE_MPI_BYTES = 512,
};

static inline void fake_mpi(uint8_t *comm, uint64_t address, const char *name, uint32_t rank,
			    uint32_t size)
{
	const uint64_t group = address + 256;
	const uint32_t place[] = {size, rank};

	memset(comm, 0, FAKE_MPI_BYTES);
	memcpy(comm + 160, name, strlen(name));
	memcpy(comm + 228, &rank, sizeof(rank));
	memcpy(comm + 248, &group, sizeof(group));
	memcpy(comm + 256 + 16, place, sizeof(place));
}

#endif
