/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Symbols of an ELF file as file offsets, as attaching needs them: dynamic symbols with their
 * default version, .symtab for what is linked statically, aliases found out, and the cost of the
 * first instruction. The file is hostile: every offset is checked.
 */
#ifndef NT_AGENT_ELF_H
#define NT_AGENT_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

struct nt_elf;

/* What a breakpoint on the first instruction costs: docs/probes.md. */
enum nt_insn {
	NT_INSN_CHEAP, /* push, nop, jmp, jcc, call: emulated by the kernel */
	NT_INSN_SLOW, /* stepped out of line: about 20 times as dear */
	NT_INSN_REFUSED, /* the kernel does not take it */
};

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

NT_MUST_CHECK int nt_elf_open(const char *path, struct nt_elf **ret_elf);
void nt_elf_close(struct nt_elf *elf);
NT_DEFINE_AUTO(nt_elf, nt_elf_close)

/* -ENOENT: not defined in this file. Looks at .dynsym first, then at .symtab. */
NT_MUST_CHECK int nt_elf_find(const struct nt_elf *elf, const char *name,
			      struct nt_elf_symbol *ret_symbol);

/*
 * The same of all that the compiler made of a function: "f" and clones as "f.constprop.0", but not
 * what it split off as cold. Returns how many there are (0: none), -E2BIG for more than max: those
 * that were left out would be missed.
 */
NT_MUST_CHECK int nt_elf_find_clones(const struct nt_elf *elf, const char *name,
				     struct nt_elf_symbol *ret_symbol, size_t max);

/* A place that the program was built with for probes (USDT). */
struct nt_elf_mark {
	uint64_t offset; /* in the file, of a nop */
	uint64_t
		semaphore; /* in the file: the kernel counts it up while a probe is there; 0: none */
};

/*
 * All of this name. Returns how many there are (0: none), -E2BIG for more than max, -EBADMSG where
 * one lies: its place is no nop in the code, or its semaphore not in the data.
 */
NT_MUST_CHECK int nt_elf_find_marks(const struct nt_elf *elf, const char *provider,
				    const char *name, struct nt_elf_mark *ret_mark, size_t max);

/* Has any function symbol with this prefix: a cheap test for static linking. */
bool nt_elf_has_prefix(const struct nt_elf *elf, const char *prefix);

/* Build-id as hex; empty where there is none. */
const char *nt_elf_build_id(const struct nt_elf *elf);

#endif
