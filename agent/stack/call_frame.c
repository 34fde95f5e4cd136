/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/call_frame.h"

#include <errno.h>
#include <string.h>

enum {
	ID_BYTES = 8, /* length and identity, before the content */
	AUGMENTATION_MAX = 8,
	DEPTH = 8, /* of remembered states */
	LEB_SHIFT_MAX = 63,
	ENCODING_RELATIVE = 0x1b, /* DW_EH_PE_pcrel | DW_EH_PE_sdata4: what compilers write */
	ENCODING_ABSOLUTE8 = 0x00,
	ENCODING_OMIT = 0xff,
};

/* Opcodes: DWARF 5, 6.4.2, and GNU's. The upper two bits of the first three have an operand. */
enum {
	CFA_ADVANCE = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_OPERAND = 0x3f,
	CFA_NOP = 0x00,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RECALL = 0x0b,
	CFA_DEF = 0x0c,
	CFA_DEF_REGISTER = 0x0d,
	CFA_DEF_OFFSET = 0x0e,
	CFA_DEF_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_SF = 0x12,
	CFA_DEF_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e,
};

struct cfa_cursor {
	const uint8_t *data;
	size_t len, at;
	bool is_bad; /* read beyond the end, or malformed */
};

static uint64_t take_bytes(struct cfa_cursor *cursor, size_t bytes)
{
	uint64_t value = 0;

	if (cursor->len - cursor->at < bytes) {
		cursor->at = cursor->len;
		cursor->is_bad = true;
		return 0;
	}
	memcpy(&value, cursor->data + cursor->at, bytes);
	cursor->at += bytes;
	return value;
}

static void skip(struct cfa_cursor *cursor, uint64_t bytes)
{
	if (cursor->len - cursor->at < bytes) {
		cursor->is_bad = true;
		bytes = cursor->len - cursor->at;
	}
	cursor->at += bytes;
}

static uint64_t take_leb(struct cfa_cursor *cursor, bool is_signed)
{
	uint64_t value = 0, byte = 0x80;
	unsigned int shift = 0;

	while (byte & 0x80 && !cursor->is_bad) {
		byte = take_bytes(cursor, 1);
		if (shift <= LEB_SHIFT_MAX)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	}
	if (is_signed && byte & 0x40 && shift <= LEB_SHIFT_MAX)
		value |= UINT64_MAX << shift;
	return value;
}

static uint64_t take_uleb(struct cfa_cursor *cursor)
{
	return take_leb(cursor, false);
}

static int64_t take_sleb(struct cfa_cursor *cursor)
{
	return (int64_t)take_leb(cursor, true);
}

/* ---- the common entry ------------------------------------------------------------------------ */

struct common {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding; /* of addresses in the function's entry */
	bool has_augmentation;
	size_t begin; /* of the instructions */
};

static void skip_pointer(struct cfa_cursor *cursor, uint8_t encoding)
{
	static const uint8_t bytes[] = {8, 0, 2, 4, 8}; /* by the lower bits; 1: a LEB128 number */

	if (encoding == ENCODING_OMIT)
		return;
	if ((encoding & 7) == 1)
		(void)take_uleb(cursor);
	else if ((encoding & 7) < sizeof(bytes))
		skip(cursor, bytes[encoding & 7]);
	else
		cursor->is_bad = true;
}

static void take_augmentation(struct cfa_cursor *cursor, const char *text, struct common *common)
{
	const uint64_t bytes = take_uleb(cursor);
	const size_t begin = cursor->at;

	for (text++; *text && !cursor->is_bad; text++) {
		if (*text == 'R')
			common->encoding = (uint8_t)take_bytes(cursor, 1);
		else if (*text == 'L')
			skip(cursor, 1);
		else if (*text == 'P')
			skip_pointer(cursor, (uint8_t)take_bytes(cursor, 1));
		else if (*text != 'S' && *text != 'B')
			break; /* the length skips what is not known */
	}
	cursor->at = begin;
	skip(cursor, bytes);
}

static int parse_common(const uint8_t *data, size_t len, struct common *ret_common)
{
	struct cfa_cursor cursor = {
		.data = data, .len = len, .at = ID_BYTES, .is_bad = len < ID_BYTES};
	struct common common = {.encoding = ENCODING_ABSOLUTE8};
	char text[AUGMENTATION_MAX] = "";
	uint64_t version, reg;
	size_t n = 0;

	if (cursor.is_bad)
		return -EBADMSG;
	version = take_bytes(&cursor, 1);
	do {
		text[n] = (char)take_bytes(&cursor, 1);
	} while (text[n] && ++n < sizeof(text));
	if (n == sizeof(text) || (version != 1 && version != 3) || (text[0] && text[0] != 'z'))
		return -EBADMSG;
	common.code_factor = take_uleb(&cursor);
	common.data_factor = take_sleb(&cursor);
	reg = version == 1 ? take_bytes(&cursor, 1) : take_uleb(&cursor);
	if (text[0]) {
		common.has_augmentation = true;
		take_augmentation(&cursor, text, &common);
	}
	if (cursor.is_bad || reg != NT_CALL_FRAME_RETURN)
		return -EBADMSG;
	common.begin = cursor.at;
	*ret_common = common;
	return 0;
}

/* ---- instructions ---------------------------------------------------------------------------- */

struct cfa_machine {
	const struct common *common;
	struct nt_call_frame now, initial;
	struct nt_call_frame saved[DEPTH];
	size_t saves;
	uint64_t location;
};

static void set_rule(struct cfa_machine *m, uint64_t reg, enum nt_call_frame_kind kind,
		     int64_t offset)
{
	if (reg < NT_CALL_FRAME_REGISTERS)
		m->now.rule[reg] = (struct nt_call_frame_rule){.kind = kind, .offset = offset};
}

static void restore_rule(struct cfa_machine *m, uint64_t reg)
{
	if (reg < NT_CALL_FRAME_REGISTERS)
		m->now.rule[reg] = m->initial.rule[reg];
}

static void set_cfa(struct cfa_machine *m, uint64_t reg, int64_t offset)
{
	m->now.cfa_register =
		reg < NT_CALL_FRAME_REGISTERS ? (uint32_t)reg : NT_CALL_FRAME_REGISTERS;
	m->now.cfa_offset = offset;
}

/* Offsets are of untrusted size: products wrap. */
static int64_t scaled(const struct cfa_machine *m, uint64_t value)
{
	return (int64_t)(value * (uint64_t)m->common->data_factor);
}

static void advance(struct cfa_machine *m, uint64_t units)
{
	m->location += units * m->common->code_factor;
}

static void run_state(struct cfa_machine *m, uint64_t op, struct cfa_cursor *c)
{
	if (op == CFA_REMEMBER) {
		c->is_bad |= m->saves == DEPTH;
		if (m->saves < DEPTH)
			m->saved[m->saves++] = m->now;
		return;
	}
	c->is_bad |= !m->saves;
	if (m->saves)
		m->now = m->saved[--m->saves];
}

static void run_cfa(struct cfa_machine *m, uint64_t op, struct cfa_cursor *c)
{
	uint64_t reg;

	switch (op) {
	case CFA_DEF:
		reg = take_uleb(c);
		set_cfa(m, reg, (int64_t)take_uleb(c));
		break;
	case CFA_DEF_SF:
		reg = take_uleb(c);
		set_cfa(m, reg, scaled(m, (uint64_t)take_sleb(c)));
		break;
	case CFA_DEF_REGISTER:
		set_cfa(m, take_uleb(c), m->now.cfa_offset);
		break;
	case CFA_DEF_OFFSET:
		m->now.cfa_offset = (int64_t)take_uleb(c);
		break;
	case CFA_DEF_OFFSET_SF:
		m->now.cfa_offset = scaled(m, (uint64_t)take_sleb(c));
		break;
	default: /* CFA_DEF_EXPRESSION */
		skip(c, take_uleb(c));
		set_cfa(m, NT_CALL_FRAME_REGISTERS, 0);
		break;
	}
}

static void run_rule(struct cfa_machine *m, uint64_t op, struct cfa_cursor *c)
{
	const uint64_t reg = take_uleb(c);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set_rule(m, reg, NT_CALL_FRAME_AT_OFFSET, scaled(m, take_uleb(c)));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		set_rule(m, reg, NT_CALL_FRAME_AT_OFFSET, scaled(m, (uint64_t)take_sleb(c)));
		break;
	case CFA_VAL_OFFSET:
		set_rule(m, reg, NT_CALL_FRAME_IS_OFFSET, scaled(m, take_uleb(c)));
		break;
	case CFA_VAL_OFFSET_SF:
		set_rule(m, reg, NT_CALL_FRAME_IS_OFFSET, scaled(m, (uint64_t)take_sleb(c)));
		break;
	case CFA_RESTORE_EXTENDED:
		restore_rule(m, reg);
		break;
	case CFA_SAME_VALUE:
		set_rule(m, reg, NT_CALL_FRAME_SAME, 0);
		break;
	case CFA_UNDEFINED:
		set_rule(m, reg, NT_CALL_FRAME_UNKNOWN, 0);
		break;
	case CFA_REGISTER:
		(void)take_uleb(c);
		set_rule(m, reg, NT_CALL_FRAME_UNKNOWN, 0);
		break;
	default: /* CFA_EXPRESSION, CFA_VAL_EXPRESSION */
		skip(c, take_uleb(c));
		set_rule(m, reg, NT_CALL_FRAME_UNKNOWN, 0);
		break;
	}
}

static void run_extended(struct cfa_machine *m, uint64_t op, struct cfa_cursor *c)
{
	switch (op) {
	case CFA_NOP:
		break;
	case CFA_ADVANCE1:
		advance(m, take_bytes(c, 1));
		break;
	case CFA_ADVANCE2:
		advance(m, take_bytes(c, 2));
		break;
	case CFA_ADVANCE4:
		advance(m, take_bytes(c, 4));
		break;
	case CFA_REMEMBER:
	case CFA_RECALL:
		run_state(m, op, c);
		break;
	case CFA_DEF:
	case CFA_DEF_SF:
	case CFA_DEF_REGISTER:
	case CFA_DEF_OFFSET:
	case CFA_DEF_OFFSET_SF:
	case CFA_DEF_EXPRESSION:
		run_cfa(m, op, c);
		break;
	case CFA_GNU_ARGS_SIZE:
		(void)take_uleb(c);
		break;
	default:
		if (op < CFA_OFFSET_EXTENDED || op > CFA_VAL_EXPRESSION)
			c->is_bad = true;
		else
			run_rule(m, op, c);
		break;
	}
}

/* Until the location is beyond pc. */
static void run(struct cfa_machine *m, struct cfa_cursor *c, uint64_t pc)
{
	while (c->at < c->len && !c->is_bad && m->location <= pc) {
		const uint64_t op = take_bytes(c, 1);
		const uint64_t operand = op & CFA_OPERAND;
		struct nt_call_frame before = m->now;

		switch (op & ~(uint64_t)CFA_OPERAND) {
		case CFA_ADVANCE:
			advance(m, operand);
			break;
		case CFA_OFFSET:
			set_rule(m, operand, NT_CALL_FRAME_AT_OFFSET, scaled(m, take_uleb(c)));
			break;
		case CFA_RESTORE:
			restore_rule(m, operand);
			break;
		default:
			run_extended(m, op, c);
			break;
		}
		if (m->location > pc)
			m->now = before;
	}
}

int nt_call_frame_find(const struct nt_call_frame_entry *entry, uint64_t pc,
		       struct nt_call_frame *ret_frame)
{
	struct cfa_cursor c = {.data = entry->function, .len = entry->function_len, .at = ID_BYTES};
	struct cfa_cursor initial = {.data = entry->common, .len = entry->common_len};
	struct common common;
	struct cfa_machine m = {.common = &common};
	uint64_t begin, bytes;
	int r = parse_common(entry->common, entry->common_len, &common);

	if (r < 0)
		return r;
	if (entry->function_len < ID_BYTES || common.encoding != ENCODING_RELATIVE)
		return -EBADMSG;
	begin = entry->function_address + ID_BYTES + (uint64_t)(int64_t)(int32_t)take_bytes(&c, 4);
	bytes = take_bytes(&c, 4);
	if (c.is_bad)
		return -EBADMSG;
	if (pc < begin || pc - begin >= bytes)
		return -ENOENT;
	if (common.has_augmentation)
		skip(&c, take_uleb(&c));
	set_cfa(&m, NT_CALL_FRAME_REGISTERS, 0);
	initial.at = common.begin;
	run(&m, &initial, UINT64_MAX);
	m.initial = m.now;
	m.location = begin;
	run(&m, &c, pc);
	if (c.is_bad || initial.is_bad)
		return -EBADMSG;
	*ret_frame = m.now;
	return 0;
}
