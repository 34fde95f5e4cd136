/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cost of a breakpoint on an instruction. The kernel emulates a few instructions
 * (docs/probes.md); any other is copied out of line, run there and trapped again.
 */
#ifndef NT_AGENT_ELF_INSN_H
#define NT_AGENT_ELF_INSN_H

#include <stddef.h>
#include <stdint.h>

/* The cost of a breakpoint on the first instruction: docs/probes.md. */
enum nt_insn {
	NT_INSN_CHEAP, /* push, nop, jmp, jcc, call: emulated by the kernel */
	NT_INSN_SLOW, /* stepped out of line: about 20 times the cost */
	NT_INSN_REFUSED, /* the kernel refuses it */
};

enum {
	NT_INSN_BYTES = 32, /* enough of a function's start to place a probe */
};

/* Where to probe a function and at what cost; code holds its first `len` bytes. */
struct nt_insn_plan {
	uint32_t entry, ret; /* bytes past the start at which an entry and a return probe go */
	enum nt_insn entry_insn, return_insn; /* there */
};

void nt_insn_plan_x86_64(const uint8_t *code, size_t len, struct nt_insn_plan *ret_plan);
void nt_insn_plan_arm64(const uint8_t *code, size_t len, struct nt_insn_plan *ret_plan);

#endif
