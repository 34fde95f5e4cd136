/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/elf/insn.h"

#include <stdbool.h>
#include <string.h>

enum {
	LONGEST = 15,

	REG_SP = 4,
};

/* rdi rsi rdx rcx r8 r9 and rsp: read by an entry probe. */
static bool is_watched(int reg)
{
	return reg == 7 || reg == 6 || reg == 2 || reg == 1 || reg == 8 || reg == 9 ||
	       reg == REG_SP;
}

struct x86 {
	size_t len; /* 0: not decoded */
	enum nt_insn cost;
	bool harmless; /* changes no argument register, rsp or control flow */
};

/* The nops that the kernel emulates, by length. */
static bool is_known_nop(const uint8_t *code, size_t len, size_t *ret_len)
{
	static const uint8_t nop[][8] = {
		{0x90},
		{0x66, 0x90},
		{0x0f, 0x1f, 0x00},
		{0x0f, 0x1f, 0x40, 0x00},
		{0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
		{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
	};

	for (size_t i = 0; i < sizeof(nop) / sizeof(nop[0]); i++)
		if (len > i && memcmp(code, nop[i], i + 1) == 0) {
			*ret_len = i + 1;
			return true;
		}
	return false;
}

/* Bytes of a ModRM operand, itself included; 0: beyond the end. */
static size_t modrm_len(const uint8_t *code, size_t len)
{
	size_t n = 1;
	uint8_t mod, rm;

	if (len < 1)
		return 0;
	mod = code[0] >> 6;
	rm = code[0] & 7;
	if (mod != 3 && rm == 4) {
		if (len < 2)
			return 0;
		if (mod == 0 && (code[1] & 7) == 5)
			n += 4;
		n++;
	}
	if (mod == 1)
		n++;
	else if (mod == 2 || (mod == 0 && rm == 5))
		n += 4;
	return n <= len ? n : 0;
}

/* Instructions that the kernel steps out of line, if they write at most one register. */
static void decode_slow(const uint8_t *code, size_t len, size_t at, uint8_t rex, bool word,
			struct x86 *insn)
{
	uint8_t op = code[at++];
	int reg, rm;
	int written = -1; /* a register that is written; -2: memory */
	size_t n, immediate = 0;

	insn->cost = NT_INSN_SLOW;
	if ((op & 0xf8) == 0xb8) { /* mov $imm,reg */
		written = (op & 7) | (rex & 1) << 3;
		immediate = rex & 8 ? 8 : word ? 2 : 4;
		insn->len = immediate <= len - at ? at + immediate : 0;
		insn->harmless = !is_watched(written);
		return;
	}
	n = modrm_len(code + at, len - at);
	if (!n)
		return;
	reg = (code[at] >> 3 & 7) | (rex & 4) << 1;
	rm = (code[at] & 7) | (rex & 1) << 3;
	switch (op) {
	case 0x38: /* cmp */
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x84: /* test */
	case 0x85:
		break;
	case 0x80: /* group 1: cmp alone leaves its operand as it is */
	case 0x81:
	case 0x83:
		immediate = op != 0x81 ? 1 : word ? 2 : 4;
		if ((reg & 7) != 7)
			written = code[at] >> 6 == 3 ? rm : -2;
		break;
	case 0x31: /* xor */
	case 0x33:
		written = op == 0x33 ? reg : code[at] >> 6 == 3 ? rm : -2;
		break;
	case 0x89: /* mov */
		written = code[at] >> 6 == 3 ? rm : -2;
		break;
	case 0x8b:
	case 0x8d: /* lea */
		written = reg;
		break;
	default:
		return;
	}
	if (at + n + immediate > len)
		return;
	insn->len = at + n + immediate;
	/* A store may hit the stack, where arguments may be. */
	insn->harmless = written != -2 && !is_watched(written);
}

static struct x86 decode(const uint8_t *code, size_t len)
{
	struct x86 insn = {.cost = NT_INSN_SLOW};
	bool word = false;
	uint8_t rex = 0;
	size_t at = 0;

	if (is_known_nop(code, len, &insn.len)) {
		insn.cost = NT_INSN_CHEAP;
		insn.harmless = true;
		return insn;
	}
	for (; at < len && at < LONGEST; at++) {
		uint8_t prefix = code[at];

		/* Segment overrides and lock: the kernel refuses these. */
		if (prefix == 0x26 || prefix == 0x2e || prefix == 0x36 || prefix == 0x3e ||
		    prefix == 0xf0) {
			insn.cost = NT_INSN_REFUSED;
			return insn;
		}
		if (prefix == 0x66)
			word = true;
		else if (prefix != 0x67 && prefix != 0x64 && prefix != 0x65 && prefix != 0xf2 &&
			 prefix != 0xf3)
			break;
	}
	if (at < len && (code[at] & 0xf0) == 0x40)
		rex = code[at++];
	if (at >= len)
		return insn;
	switch (code[at]) {
	case 0x50 ... 0x57: /* push reg */
		insn.cost = word ? NT_INSN_SLOW : NT_INSN_CHEAP;
		return insn;
	case 0x70 ... 0x7f: /* jcc */
	case 0xe8: /* call */
	case 0xe9: /* jmp */
	case 0xeb:
		insn.cost = word ? NT_INSN_REFUSED : NT_INSN_CHEAP;
		return insn;
	case 0x90:
		insn.cost = NT_INSN_CHEAP;
		return insn;
	case 0x0f:
		if (at + 1 < len && (code[at + 1] & 0xf0) == 0x80) /* jcc, 32 bits */
			insn.cost = word ? NT_INSN_REFUSED : NT_INSN_CHEAP;
		return insn;
	case 0xf4: /* hlt, port input and output, interrupt flag: privileged */
	case 0xfa:
	case 0xfb:
	case 0x6c ... 0x6f:
	case 0xe4 ... 0xe7:
	case 0xec ... 0xef:
	case 0xcc:
	case 0xcd:
		insn.cost = NT_INSN_REFUSED;
		return insn;
	default:
		decode_slow(code, len, at, rex, word, &insn);
		return insn;
	}
}

/*
 * The return address is at (%rsp) until %rsp moves, and the kernel reads it there: return probes
 * may be placed wherever entry probes may.
 */
void nt_insn_plan_x86_64(const uint8_t *code, size_t len, struct nt_insn_plan *ret_plan)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct nt_insn_plan plan = {0};
	struct x86 insn;

	if (len >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		plan.entry = sizeof(endbr64);
	insn = decode(code + plan.entry, len - plan.entry);
	plan.entry_insn = insn.cost;
	if (insn.cost == NT_INSN_SLOW && insn.len && insn.harmless) {
		struct x86 second =
			decode(code + plan.entry + insn.len, len - plan.entry - insn.len);

		if (second.cost == NT_INSN_CHEAP) {
			plan.entry += (uint32_t)insn.len;
			plan.entry_insn = NT_INSN_CHEAP;
		}
	}
	plan.ret = plan.entry;
	plan.return_insn = plan.entry_insn;
	*ret_plan = plan;
}

#define BTI_C   0xd503245fU /* both leave the arguments unchanged */
#define PACIASP 0xd503233fU

static enum nt_insn cost_arm64(uint32_t insn)
{
	if ((insn & 0x7c000000) == 0x14000000 || /* b, bl */
	    (insn & 0xff000010) == 0x54000000 || /* b.cond */
	    (insn & 0x7e000000) == 0x34000000 || /* cbz, cbnz */
	    (insn & 0x7e000000) == 0x36000000 || /* tbz, tbnz */
	    (insn & 0x1f000000) == 0x10000000 || /* adr, adrp */
	    (insn & 0xbf000000) == 0x18000000 || /* ldr, PC-relative */
	    insn == 0xd503201f || /* nop */
	    (insn & 0xffc07fff) == 0xa9807bfd) /* stp x29, x30, [sp, #-n]! (6.14) */
		return NT_INSN_CHEAP;
	if ((insn & 0xff000000) == 0xd4000000 || /* svc, brk, … */
	    ((insn & 0xffc00000) == 0xd5000000 && (insn & 0xfffff01f) != 0xd503201f) ||
	    (insn & 0x3f000000) == 0x08000000) /* exclusives */
		return NT_INSN_REFUSED;
	return NT_INSN_SLOW;
}

void nt_insn_plan_arm64(const uint8_t *code, size_t len, struct nt_insn_plan *ret_plan)
{
	struct nt_insn_plan plan = {.entry_insn = NT_INSN_SLOW, .return_insn = NT_INSN_SLOW};
	uint32_t insn[2] = {0};

	memcpy(insn, code, len < sizeof(insn) ? len : sizeof(insn));
	if (len >= sizeof(insn[0]))
		plan.entry_insn = plan.return_insn = cost_arm64(insn[0]);
	if (len < sizeof(insn)) {
		*ret_plan = plan;
		return;
	}
	if (insn[0] == BTI_C || insn[0] == PACIASP) {
		plan.entry = sizeof(insn[0]);
		plan.entry_insn = cost_arm64(insn[1]);
	}
	/* A signed return address cannot be replaced: authentication would fail. */
	if (insn[0] == BTI_C && insn[1] != PACIASP) {
		plan.ret = plan.entry;
		plan.return_insn = plan.entry_insn;
	}
	*ret_plan = plan;
}
