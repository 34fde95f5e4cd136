/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A search of one symbol table for functions by name. Tables are streamed, not held, in three
 * passes. The first, over the symbols, marks where names of functions begin in the string table.
 * The second, over the string table, compares the marked names. The third, over the symbols, finds
 * those with a matching name. A string is thus compared once, however many symbols refer to it. For
 * agent/elf/elf*.c alone.
 */
#ifndef NT_AGENT_ELF_ELF_SEARCH_H
#define NT_AGENT_ELF_ELF_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/elf/elf_reader.h"
#include "agent/elf/elf_wanted.h"

/* Precedence of definitions of one name; lower is better. */
enum nt_elf_rank {
	NT_ELF_RANK_DEFAULT,
	NT_ELF_RANK_HIDDEN, /* not the default version */
	NT_ELF_RANK_SYMTAB,
};

/* A symbol table with its names and versions; all ranges lie within the file. */
struct nt_elf_table {
	uint64_t symbols_at, strings_at, versions_at; /* offsets in the file */
	uint32_t symbols; /* 0: no table */
	uint32_t strings_bytes;
	uint32_t versions; /* number of symbols with a version */
	enum nt_elf_rank rank;
};

/*
 * The cost of one search. The bytes are an upper bound. The work assumes that few names share a
 * prefix with a wanted one.
 */
struct nt_elf_cost nt_elf_table_cost(const struct nt_elf_table *table);

struct nt_elf_hit {
	uint16_t wanted; /* index in `wanted` */
	enum nt_elf_rank rank;
	uint32_t symbol; /* number in the table */
	uint64_t value;
	const char *name; /* of a prefix: the whole name, valid during the call; else NULL */
};

/* Returns 0 to continue, 1 to stop the search, or a negative errno that ends it. */
typedef int (*nt_elf_hit_fn)(void *data, const struct nt_elf_hit *hit);

/*
 * Calls fn for every defined function that matches, or object, if these are wanted. A prefix is reported once for each place in the
 * string table, without a symbol. Returns the last result of fn, or -EOVERFLOW, -EBADMSG (the file
 * was truncated), -EIO, -ENOMEM.
 */
NT_MUST_CHECK int nt_elf_search(struct nt_elf_reader *reader, const struct nt_elf_table *table,
				const struct nt_elf_wanted *wanted, size_t n, nt_elf_hit_fn fn,
				void *data);

#endif
