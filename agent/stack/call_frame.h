/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Call-frame information of .eh_frame (DWARF, as the x86-64 psABI has it): where a function keeps its
 * caller's registers at one instruction. The bytes are untrusted. Expressions are not evaluated: what
 * depends on one is unknown.
 */
#ifndef NT_AGENT_STACK_CALL_FRAME_H
#define NT_AGENT_STACK_CALL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_CALL_FRAME_RSP = 7,
	NT_CALL_FRAME_RETURN = 16,
	NT_CALL_FRAME_REGISTERS = 17, /* by DWARF's numbers; of others nothing is known */
	NT_CALL_FRAME_BYTES = 16 << 10, /* of one entry; a longer one is refused */
};

enum nt_call_frame_kind {
	NT_CALL_FRAME_SAME, /* it has the caller's value still */
	NT_CALL_FRAME_UNKNOWN,
	NT_CALL_FRAME_AT_OFFSET, /* saved at the canonical frame address + offset */
	NT_CALL_FRAME_IS_OFFSET, /* it is that address + offset */
};

struct nt_call_frame_rule {
	enum nt_call_frame_kind kind;
	int64_t offset;
};

/* The canonical frame address is a register + offset. */
struct nt_call_frame {
	uint32_t cfa_register; /* NT_CALL_FRAME_REGISTERS: not known */
	int64_t cfa_offset;
	struct nt_call_frame_rule rule[NT_CALL_FRAME_REGISTERS];
};

/* Entries with their lengths and, at 4, what identifies them. */
struct nt_call_frame_entry {
	const uint8_t *common, *function; /* CIE, FDE */
	size_t common_len, function_len;
	uint64_t function_address; /* of the FDE: its addresses are relative */
};

/* -ENOENT: the entry does not cover pc; -EBADMSG: malformed, or of an unknown form. */
NT_MUST_CHECK int nt_call_frame_find(const struct nt_call_frame_entry *entry, uint64_t pc,
				     struct nt_call_frame *ret_frame);

#endif
