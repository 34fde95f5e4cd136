/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Layouts of the libraries' communicators in memory: rank, size and name. They identify
 * communicators made before the agent attached. Every value is validated: the memory is another
 * process's, and the library's version may be unknown.
 */
#ifndef NT_AGENT_STEPS_COMM_LAYOUT_H
#define NT_AGENT_STEPS_COMM_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/host/memory.h"
#include "agent/ras/ras_answer.h"

enum {
	NT_COMM_LAYOUT_NAME = 32,
	NT_COMM_LAYOUT_FILES = 16, /* library files whose layout was learned */
};

struct nt_comm_layout_comm {
	uint64_t hash; /* NCCL's own id, the same on all ranks; 0: none */
	uint32_t rank, size;
	char name[NT_COMM_LAYOUT_NAME]; /* MPI's; else empty */
};

/* Offsets in ncclComm, learned from communicators whose creation was observed. Zeroed: none yet. */
struct nt_comm_layout_learned {
	struct {
		uint64_t file, owner; /* owner: of the process that it was learned from */
		uint32_t hash_offset; /* rank and size follow it; 0: not found */
		bool is_stated; /* by a process of the owner, and so used for the owner's alone */
	} of[NT_COMM_LAYOUT_FILES]; /* oldest first */
	uint32_t files;
};

/*
 * Reads the ncclComm at the address. file: any number for the library file, 0: unknown; owner: of the
 * process. -ENOENT: no known layout yields valid values.
 */
NT_MUST_CHECK int nt_comm_layout_nccl(const struct nt_memory *memory, uint32_t pid,
				      uint64_t address, uint64_t file, uint64_t owner,
				      const struct nt_comm_layout_learned *learned,
				      struct nt_comm_layout_comm *ret_comm);

/*
 * Finds hash, rank and size in the ncclComm at the address, once per file. At the cap it replaces
 * the oldest file of the owner with the most, if that has at least two more than this one.
 */
void nt_comm_layout_learn(const struct nt_memory *memory, uint32_t pid, uint64_t address,
			  uint64_t file, uint64_t owner, uint64_t hash, uint32_t rank,
			  uint32_t size, struct nt_comm_layout_learned *learned);

/*
 * The same from the places that NCCL's RAS states, sorted: one of them must be in the ncclComm. False:
 * none is, or there is no room. A file that was searched in vain is searched again.
 */
bool nt_comm_layout_learn_stated(const struct nt_memory *memory, uint32_t pid, uint64_t address,
				 uint64_t file, uint64_t owner, const struct nt_ras_comm *stated,
				 size_t count, struct nt_comm_layout_learned *learned);

/* True if the offsets of the file are learned, for processes of that owner. */
bool nt_comm_layout_is_learned(const struct nt_comm_layout_learned *learned, uint64_t file,
			       uint64_t owner);

/* Open MPI's ompi_communicator_t. */
NT_MUST_CHECK int nt_comm_layout_open_mpi(const struct nt_memory *memory, uint32_t pid,
					  uint64_t address, struct nt_comm_layout_comm *ret_comm);

/* gloo::Context, with or without a leading vtable pointer. */
NT_MUST_CHECK int nt_comm_layout_gloo(const struct nt_memory *memory, uint32_t pid,
				      uint64_t address, struct nt_comm_layout_comm *ret_comm);

/* The hash that NCCL derives from a unique id. */
uint64_t nt_comm_layout_nccl_hash(const uint8_t *id, size_t size);

#endif
