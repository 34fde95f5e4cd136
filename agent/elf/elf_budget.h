/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The budget for reading an ELF file, and the cost so far. */
#ifndef NT_AGENT_ELF_ELF_BUDGET_H
#define NT_AGENT_ELF_ELF_BUDGET_H

#include <stdint.h>

enum {
	/* The default budget. */
	NT_ELF_BYTES_MAX = 64 << 20,
	NT_ELF_WORK_MAX = 4 << 20,
	NT_ELF_MEMORY_MAX = 6 << 20,
};

/*
 * The most that one file may cost from open to close. Anything beyond it fails with -EOVERFLOW,
 * also on a retry. A symbol table that is too large to be searched once is skipped, so that .dynsym
 * of a library remains usable.
 */
struct nt_elf_budget {
	uint64_t bytes; /* read from the file */
	uint64_t work; /* symbols visited, names read, comparisons of up to 16 bytes */
	uint64_t memory; /* bytes held at a time */
};

/* The cost so far; memory: the peak. */
struct nt_elf_cost {
	uint64_t bytes, work, memory;
};

#endif
