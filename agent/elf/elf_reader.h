/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file access of the ELF reader: bytes read, units of work and memory held count against a
 * budget. Anything beyond it fails with -EOVERFLOW. For agent/elf/elf*.c alone.
 */
#ifndef NT_AGENT_ELF_ELF_READER_H
#define NT_AGENT_ELF_ELF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/elf/elf_budget.h"
#include "common/base/cleanup.h"

struct nt_elf_reader {
	int fd; /* of a regular file; borrowed */
	uint64_t size; /* of the file when it was opened */
	struct nt_elf_budget budget;
	struct nt_elf_cost cost;
	uint64_t memory; /* held now */
};

/* -EBADMSG: not a regular file. */
NT_MUST_CHECK int nt_elf_reader_init(struct nt_elf_reader *reader, int fd,
				     const struct nt_elf_budget *budget);

/* True if the range lies in the file, by its size at open. */
bool nt_elf_reader_holds(const struct nt_elf_reader *reader, uint64_t offset, uint64_t len);

/*
 * Reads exactly len bytes. -EBADMSG: the file is shorter. -EOVERFLOW: they exceed the budget, and
 * nothing was read.
 */
NT_MUST_CHECK int nt_elf_reader_read(struct nt_elf_reader *reader, uint64_t offset, void *to,
				     size_t len);
/* Reads up to len bytes; returns their number. */
NT_MUST_CHECK ssize_t nt_elf_reader_read_some(struct nt_elf_reader *reader, uint64_t offset,
					      void *to, size_t len);

/* True if this much of the budget is left. */
bool nt_elf_reader_affords(const struct nt_elf_reader *reader, uint64_t bytes, uint64_t work);
NT_MUST_CHECK int nt_elf_reader_work(struct nt_elf_reader *reader, uint64_t units);

/* Allocates zeroed memory. -EOVERFLOW or -ENOMEM. */
NT_MUST_CHECK int nt_elf_reader_alloc(struct nt_elf_reader *reader, size_t bytes, void **ret);
/* Accepts NULL. `bytes` as allocated. */
void nt_elf_reader_free(struct nt_elf_reader *reader, void *p, size_t bytes);

#endif
