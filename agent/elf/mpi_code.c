/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/elf/mpi_code.h"

#include <stddef.h>
#include <string.h>

static const char *const beginnings[] = {
	"libmpi", /* the library of Open MPI, MPICH and derivatives, and MPICH's own name */
	"libopen-pal", "libopen-rte", "mca_",   "hmca_",  "libhcoll", "libsharp", /* Open MPI */
	"libucp",      "libuct",      "libucs", "libucm", /* UCX */
	"libfabric",   "libpsm",      "libcxi", /* libfabric */
	"libibverbs",  "libmlx",      "libefa", /* verbs */
};

/* Providers that are modules of libfabric. */
static const char provider[] = "-fi.so";

bool nt_mpi_code_is_in(const char *name)
{
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return strstr(name, provider) != NULL;
}

void nt_mpi_code_add(struct nt_mpi_code *code, uint64_t start, uint64_t end)
{
	if (code->count == NT_MPI_CODE_RANGES) {
		code->over_cap++;
		return;
	}
	code->range[code->count].start = start;
	code->range[code->count++].end = end;
}

bool nt_mpi_code_has(const struct nt_mpi_code *code, uint64_t address)
{
	for (uint32_t i = 0; i < code->count; i++)
		if (address >= code->range[i].start && address < code->range[i].end)
			return true;
	return false;
}

bool nt_mpi_code_is_sound(const struct nt_mpi_code *code)
{
	if (code->count > NT_MPI_CODE_RANGES)
		return false;
	for (uint32_t i = 0; i < code->count; i++)
		if (code->range[i].start >= code->range[i].end)
			return false;
	return true;
}
