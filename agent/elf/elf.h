/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An ELF reader: symbols as file offsets where probes can be attached. It reads dynamic symbols
 * with their default version, and .symtab for statically linked code, resolves aliases, and rates
 * the first instruction. The file is untrusted: every offset is checked, and reading it stays
 * within a budget.
 */
#ifndef NT_AGENT_ELF_ELF_H
#define NT_AGENT_ELF_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/elf/elf_budget.h"
#include "agent/elf/elf_wanted.h"
#include "agent/elf/insn.h"
#include "common/base/cleanup.h"

struct nt_elf;

struct nt_elf_symbol {
	uint64_t offset; /* in the file */
	/*
	 * Where a probe is placed: past endbr64, or at the second instruction if the first is slow
	 * and does not change what the probe reads. A return probe also reads and writes the return
	 * address, so its place may have to differ.
	 */
	uint64_t entry_offset, return_offset;
	enum nt_insn insn, return_insn; /* there */
};

/* -EBADMSG: not an ELF file of a supported machine, or not a regular file. Not thread-safe. */
NT_MUST_CHECK int nt_elf_open(const char *path, struct nt_elf **ret_elf);
/*
 * The same for an open file, which is borrowed until nt_elf_close(). budget: NULL is the default.
 */
NT_MUST_CHECK int nt_elf_open_fd(int fd, const struct nt_elf_budget *budget,
				 struct nt_elf **ret_elf);
void nt_elf_close(struct nt_elf *elf);
NT_DEFINE_AUTO(nt_elf, nt_elf_close)

const struct nt_elf_cost *nt_elf_cost(const struct nt_elf *elf);

/* True if a symbol table exceeds the budget and is not searched. */
bool nt_elf_passed_over(const struct nt_elf *elf);

struct nt_elf_found {
	int result; /* 0, -ENOENT: not defined here, -EBADMSG: its address is not in the code */
	struct nt_elf_symbol symbol; /* if result is 0; not set for a prefix */
};

/*
 * Finds up to NT_ELF_WANTED_MAX functions in one pass over .dynsym and one over .symtab. .dynsym
 * takes precedence, and in it the default version. Fails as a whole, with ret_found undefined, if
 * the file cannot be read or exceeds its budget.
 */
NT_MUST_CHECK int nt_elf_find_all(struct nt_elf *elf, const struct nt_elf_wanted *wanted, size_t n,
				  struct nt_elf_found *ret_found);

/*
 * The same for all clones of one function: "f" and, for example, "f.constprop.0", but not parts
 * split off as cold. Returns their number (0: none); -E2BIG: more than max, as a subset would miss
 * calls. max: up to 16.
 */
NT_MUST_CHECK int nt_elf_find_clones(struct nt_elf *elf, const char *name,
				     struct nt_elf_symbol *ret_symbol, size_t max);

/* A USDT mark: a place for probes that the program was built with. */
struct nt_elf_mark {
	uint64_t offset; /* in the file, of a nop */
	/* file offset of a counter that the kernel increments for each probe; 0: none */
	uint64_t semaphore;
};

/*
 * Finds all marks of this name. Returns their number (0: none). -E2BIG: more than max. -EBADMSG: a
 * mark is invalid: no nop in the code, or its semaphore is not in the data.
 */
NT_MUST_CHECK int nt_elf_find_marks(struct nt_elf *elf, const char *provider, const char *name,
				    struct nt_elf_mark *ret_mark, size_t max);

/* 1: a function has a name with this prefix; 0: none. */
NT_MUST_CHECK int nt_elf_has_prefix(struct nt_elf *elf, const char *prefix);

typedef void (*nt_elf_name_fn)(void *data, const char *name);

/* Calls fn for each name of a dynamic function with this prefix; the name is valid in the call. */
NT_MUST_CHECK int nt_elf_each_name(struct nt_elf *elf, const char *prefix, nt_elf_name_fn fn,
				   void *data);

/*
 * Link-time addresses of up to NT_ELF_OBJECTS data objects, in one pass as above; 0: not defined here.
 * Fails as nt_elf_find_all().
 */
enum {
	NT_ELF_OBJECTS = 8,
};
NT_MUST_CHECK int nt_elf_find_objects(struct nt_elf *elf, const char *const *name, size_t n,
				      uint64_t *ret_address);

/*
 * What is added to a link-time address, where `start` is the address of the file's offset in an
 * executable mapping. It wraps. -ENOENT: the file has no code there.
 */
NT_MUST_CHECK int nt_elf_load_bias(const struct nt_elf *elf, uint64_t start, uint64_t offset,
				   uint64_t *ret_bias);

/* Link-time address of the table that finds call-frame information (.eh_frame_hdr). 0: none. */
uint64_t nt_elf_unwind_table(const struct nt_elf *elf);

enum {
	NT_ELF_FUNCTIONS = 64, /* named at a time */
	NT_ELF_FUNCTION = 128, /* bytes of a name, with its NUL; longer ones are cut */
};
/*
 * Names the functions that hold these link-time addresses, in one pass over .symtab and, for what is
 * not found there, one over .dynsym. "": not known. Fails as nt_elf_find_all().
 */
NT_MUST_CHECK int nt_elf_name_functions(struct nt_elf *elf, const uint64_t *address, size_t n,
					char (*ret_name)[NT_ELF_FUNCTION]);

/* Build-id as hex; empty where there is none. */
const char *nt_elf_build_id(const struct nt_elf *elf);

#endif
