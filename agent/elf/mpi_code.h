/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a process maps the code of MPI: of its library, and of the libraries through which that
 * moves data (UCX, libfabric, the components of Open MPI). Code of MPI that is linked statically
 * cannot be told from the program's.
 */
#ifndef NT_AGENT_ELF_MPI_CODE_H
#define NT_AGENT_ELF_MPI_CODE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NT_MPI_CODE_RANGES = 128, /* Open MPI has some 50 */
};

/* Flat: sent between processes as it is. */
struct nt_mpi_code {
	uint32_t count;
	uint32_t over_cap; /* mappings left out */
	struct {
		uint64_t start, end;
	} range[NT_MPI_CODE_RANGES];
};

/* True if a file of this name, without its folder, holds such code. */
bool nt_mpi_code_is_in(const char *name);

/* Adds a mapping that is in order. */
void nt_mpi_code_add(struct nt_mpi_code *code, uint64_t start, uint64_t end);
bool nt_mpi_code_has(const struct nt_mpi_code *code, uint64_t address);

/* True if the values are possible: they may come from a compromised worker. */
bool nt_mpi_code_is_sound(const struct nt_mpi_code *code);

#endif
