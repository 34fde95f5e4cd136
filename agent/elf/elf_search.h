/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A search of one symbol table for functions by name. The tables are streamed, not held: the first
 * pass over the symbols marks where in the string table names of functions begin, one pass over the
 * string table compares the marked names, and a second pass over the symbols finds those that bear a
 * matching name. Names are so compared once for each place in the string table, however many
 * symbols refer to it. For agent/elf*.c alone.
 */
#ifndef NT_AGENT_ELF_ELF_SEARCH_H
#define NT_AGENT_ELF_ELF_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/elf/elf_reader.h"
#include "agent/elf/elf_wanted.h"

/* Lower is better where a name is defined twice. */
enum nt_elf_rank {
	NT_ELF_RANK_DEFAULT,
	NT_ELF_RANK_HIDDEN, /* not the default version */
	NT_ELF_RANK_SYMTAB,
};

/* A symbol table with its names and versions, all within the file. */
struct nt_elf_table {
	uint64_t symbols_at, strings_at, versions_at; /* offsets in the file */
	uint32_t symbols; /* 0: there is no such table */
	uint32_t strings_bytes;
	uint32_t versions; /* of the first so many symbols */
	enum nt_elf_rank rank;
};

/*
 * What one search costs: the bytes at most, and the work where no more than a few names begin as a
 * wanted one does.
 */
struct nt_elf_cost nt_elf_table_cost(const struct nt_elf_table *table);

struct nt_elf_hit {
	uint16_t wanted; /* its index */
	enum nt_elf_rank rank;
	uint32_t symbol; /* number in the table */
	uint64_t value;
};

/* 0: go on, 1: stop the search, or a negative errno that ends it. */
typedef int (*nt_elf_hit_fn)(void *data, const struct nt_elf_hit *hit);

/*
 * Calls fn for every defined function that matches. A prefix is reported once for each place in the
 * string table, and without a symbol. Returns what the last call of fn did, or -EOVERFLOW,
 * -EBADMSG (the file has become shorter), -EIO, -ENOMEM.
 */
NT_MUST_CHECK int nt_elf_search(struct nt_elf_reader *reader, const struct nt_elf_table *table,
				const struct nt_elf_wanted *wanted, size_t n, nt_elf_hit_fn fn,
				void *data);

#endif
