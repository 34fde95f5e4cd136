/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Symbols of an ELF file as file offsets, as attaching needs them: dynamic symbols with their
 * default version, .symtab for what is linked statically, aliases found out, and the cost of the
 * first instruction. The file is hostile: every offset is checked, and reading it costs no more than
 * a budget.
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
	 * Where a probe goes: past endbr64, or to the second instruction where the first is dear and
	 * leaves alone what the probe looks at. A return probe reads and writes the return address
	 * as well, so that it may have to stay where an entry probe need not.
	 */
	uint64_t entry_offset, return_offset;
	enum nt_insn insn, return_insn; /* there */
};

/*
 * -EBADMSG: no ELF file of a machine that is known, or no regular file. It must not be used by two
 * threads at once.
 */
NT_MUST_CHECK int nt_elf_open(const char *path, struct nt_elf **ret_elf);
/* The same of an open file, which must stay open as long. budget: NULL is the default. */
NT_MUST_CHECK int nt_elf_open_fd(int fd, const struct nt_elf_budget *budget,
				 struct nt_elf **ret_elf);
void nt_elf_close(struct nt_elf *elf);
NT_DEFINE_AUTO(nt_elf, nt_elf_close)

const struct nt_elf_cost *nt_elf_cost(const struct nt_elf *elf);

/* Has symbols that are not looked at, since their table is too large for the budget. */
bool nt_elf_passed_over(const struct nt_elf *elf);

struct nt_elf_found {
	int result; /* 0, -ENOENT: not defined in this file, -EBADMSG: its place is not in the code */
	struct nt_elf_symbol symbol; /* where result is 0; not of a prefix */
};

/*
 * Looks for up to NT_ELF_WANTED_MAX functions in one pass over .dynsym and one over .symtab.
 * .dynsym goes first where both define a function, and there the default version. Fails as a whole,
 * with ret_found undefined, where the file cannot be read or exceeds its budget.
 */
NT_MUST_CHECK int nt_elf_find_all(struct nt_elf *elf, const struct nt_elf_wanted *wanted, size_t n,
				  struct nt_elf_found *ret_found);

/*
 * The same of all that the compiler made of a function: "f" and clones as "f.constprop.0", but not
 * what it split off as cold. Returns how many there are (0: none), -E2BIG for more than max: those
 * that were left out would be missed. max: up to 16.
 */
NT_MUST_CHECK int nt_elf_find_clones(struct nt_elf *elf, const char *name,
				     struct nt_elf_symbol *ret_symbol, size_t max);

/* A place that the program was built with for probes (USDT). */
struct nt_elf_mark {
	uint64_t offset; /* in the file, of a nop */
	/* in the file: the kernel counts it up while a probe is there; 0: none */
	uint64_t semaphore;
};

/*
 * All of this name. Returns how many there are (0: none), -E2BIG for more than max, -EBADMSG where
 * one lies: its place is no nop in the code, or its semaphore not in the data.
 */
NT_MUST_CHECK int nt_elf_find_marks(struct nt_elf *elf, const char *provider, const char *name,
				    struct nt_elf_mark *ret_mark, size_t max);

/* 1: has a function whose name begins so, 0: has none. */
NT_MUST_CHECK int nt_elf_has_prefix(struct nt_elf *elf, const char *prefix);

/* Build-id as hex; empty where there is none. */
const char *nt_elf_build_id(const struct nt_elf *elf);

#endif
