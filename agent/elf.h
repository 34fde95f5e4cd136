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

/* Has any function symbol with this prefix: a cheap test for static linking. */
bool nt_elf_has_prefix(const struct nt_elf *elf, const char *prefix);

/* Build-id as hex; empty where there is none. */
const char *nt_elf_build_id(const struct nt_elf *elf);

#endif
