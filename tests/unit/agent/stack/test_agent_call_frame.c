/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Call-frame information as compilers write it, and what none wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "agent/stack/call_frame.h"

enum {
	FUNCTION_AT = 0x2000, /* of the entry */
	CODE_AT = 0x1000,
	CODE_BYTES = 0x40,
	RBX = 3,
	RBP = 6,
};

/* "zR", code factor 1, data factor -8, return address 16; CFA = rsp + 8, return address at CFA - 8. */
static const uint8_t common[] = {0x14, 0,    0,  0, 0,    0,    0, 0, 1,    'z', 'R', 0,
				 1,    0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0};

static uint8_t function[64];
static struct nt_call_frame frame;

static int find(const uint8_t *code, size_t len, uint64_t pc)
{
	const int32_t begin = CODE_AT - (FUNCTION_AT + 8);
	const uint32_t bytes = CODE_BYTES;
	struct nt_call_frame_entry entry = {
		.common = common,
		.common_len = sizeof(common),
		.function = function,
		.function_len = 17 + len,
		.function_address = FUNCTION_AT,
	};

	memset(function, 0, sizeof(function));
	memcpy(function + 8, &begin, 4);
	memcpy(function + 12, &bytes, 4);
	function[16] = 0; /* no augmentation */
	if (len)
		memcpy(function + 17, code, len);
	return nt_call_frame_find(&entry, pc, &frame);
}

/* push %rbp (1 byte); mov %rsp, %rbp (3); push %rbx (1). */
static const uint8_t prologue[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x41, 0x83, 3};

static void rules_apply_from_their_instruction_on(void **state)
{
	(void)state;
	assert_int_equal(find(prologue, sizeof(prologue), CODE_AT), 0);
	assert_int_equal(frame.cfa_register, NT_CALL_FRAME_RSP);
	assert_int_equal(frame.cfa_offset, 8);
	assert_int_equal(frame.rule[NT_CALL_FRAME_RETURN].kind, NT_CALL_FRAME_AT_OFFSET);
	assert_int_equal(frame.rule[NT_CALL_FRAME_RETURN].offset, -8);
	assert_int_equal(frame.rule[RBP].kind, NT_CALL_FRAME_SAME);

	assert_int_equal(find(prologue, sizeof(prologue), CODE_AT + 1), 0);
	assert_int_equal(frame.cfa_register, NT_CALL_FRAME_RSP);
	assert_int_equal(frame.cfa_offset, 16);
	assert_int_equal(frame.rule[RBP].offset, -16);

	assert_int_equal(find(prologue, sizeof(prologue), CODE_AT + 5), 0);
	assert_int_equal(frame.cfa_register, RBP);
	assert_int_equal(frame.cfa_offset, 16);
	assert_int_equal(frame.rule[RBX].kind, NT_CALL_FRAME_AT_OFFSET);
	assert_int_equal(frame.rule[RBX].offset, -24);
}

static void remembered_rules_come_back(void **state)
{
	static const uint8_t code[] = {0x0a, 0x0e, 32, 0x41, 0x0b, 0x41, 0xc0 | 16};

	(void)state;
	assert_int_equal(find(code, sizeof(code), CODE_AT), 0);
	assert_int_equal(frame.cfa_offset, 32);
	assert_int_equal(find(code, sizeof(code), CODE_AT + 1), 0);
	assert_int_equal(frame.cfa_offset, 8);
	assert_int_equal(find(code, sizeof(code), CODE_AT + 9), 0);
	assert_int_equal(frame.rule[NT_CALL_FRAME_RETURN].offset, -8);
}

static void what_depends_on_an_expression_is_unknown(void **state)
{
	static const uint8_t code[] = {0x0f, 3, 0x77, 0x08, 0x06, 0x10, 3, 1, 0x50, 0x07, 16};

	(void)state;
	assert_int_equal(find(code, sizeof(code), CODE_AT), 0);
	assert_int_equal(frame.cfa_register, NT_CALL_FRAME_REGISTERS);
	assert_int_equal(frame.rule[RBX].kind, NT_CALL_FRAME_UNKNOWN);
	assert_int_equal(frame.rule[NT_CALL_FRAME_RETURN].kind, NT_CALL_FRAME_UNKNOWN);
}

static void other_addresses_are_not_covered(void **state)
{
	(void)state;
	assert_int_equal(find(NULL, 0, CODE_AT - 1), -ENOENT);
	assert_int_equal(find(NULL, 0, CODE_AT + CODE_BYTES), -ENOENT);
	assert_int_equal(find(NULL, 0, CODE_AT + CODE_BYTES - 1), 0);
}

static void malformed_entries_are_refused(void **state)
{
	static const uint8_t recall[] = {0x0b}, unknown[] = {0x3f}, cut[] = {0x0c, 7};
	static const uint8_t deep[] = {0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a};
	struct nt_call_frame_entry entry = {.common = common,
					    .common_len = 7,
					    .function = function,
					    .function_len = 20,
					    .function_address = FUNCTION_AT};

	(void)state;
	assert_int_equal(find(recall, sizeof(recall), CODE_AT), -EBADMSG);
	assert_int_equal(find(unknown, sizeof(unknown), CODE_AT), -EBADMSG);
	assert_int_equal(find(cut, sizeof(cut), CODE_AT), -EBADMSG);
	assert_int_equal(find(deep, sizeof(deep) - 1, CODE_AT), 0);
	assert_int_equal(find(deep, sizeof(deep), CODE_AT), -EBADMSG);
	assert_int_equal(nt_call_frame_find(&entry, CODE_AT, &frame), -EBADMSG);
	entry.common_len = sizeof(common);
	entry.function_len = 10;
	assert_int_equal(nt_call_frame_find(&entry, CODE_AT, &frame), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_apply_from_their_instruction_on),
		cmocka_unit_test(remembered_rules_come_back),
		cmocka_unit_test(what_depends_on_an_expression_is_unknown),
		cmocka_unit_test(other_addresses_are_not_covered),
		cmocka_unit_test(malformed_entries_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
