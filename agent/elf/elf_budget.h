/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What reading an ELF file may cost, and what it has cost. */
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
 * What one file may cost, from its opening to its closing. Whatever would exceed it fails with
 * -EOVERFLOW, and so does every later call that costs as much. A symbol table that is too large to be
 * searched once is passed over, so that a library keeps its .dynsym.
 */
struct nt_elf_budget {
	uint64_t bytes; /* read from the file */
	uint64_t work; /* symbols visited, names looked at, comparisons of up to 16 bytes */
	uint64_t memory; /* bytes held at a time */
};

/* What it has cost so far; memory: at most at a time. */
struct nt_elf_cost {
	uint64_t bytes, work, memory;
};

#endif
