/* SPDX-License-Identifier: GPL-3.0-or-later */
/* First instructions as real libraries have them, and what a probe there costs: docs/probes.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/elf/insn.h"

#define CODE(text) (const uint8_t *)(text), sizeof(text) - 1

static void check_x86(const uint8_t *code, size_t len, uint32_t at, enum nt_insn insn, int line)
{
	struct nt_insn_plan plan;

	nt_insn_plan_x86_64(code, len, &plan);
	if (plan.entry != at || plan.entry_insn != insn)
		fail_msg("line %d: entry +%u %d", line, plan.entry, plan.entry_insn);
	/* The return address is still where it was. */
	if (plan.ret != at || plan.return_insn != insn)
		fail_msg("line %d: return +%u %d", line, plan.ret, plan.return_insn);
}

#define CHECK(text, at, insn) check_x86(CODE(text), at, NT_INSN_##insn, __LINE__)

static void what_the_kernel_emulates_is_cheap(void **state)
{
	(void)state;
	CHECK("\x55\x48\x89\xe5", 0, CHEAP); /* push %rbp */
	CHECK("\x41\x57\x41\x56", 0, CHEAP); /* push %r15 */
	CHECK("\xe9\x00\x00\x00\x00", 0, CHEAP); /* jmp */
	CHECK("\xeb\x10", 0, CHEAP);
	CHECK("\x74\x10", 0, CHEAP); /* je */
	CHECK("\x0f\x84\x00\x00\x00\x00", 0, CHEAP);
	CHECK("\xe8\x00\x00\x00\x00", 0, CHEAP); /* call */
	CHECK("\x90\xc3", 0, CHEAP); /* nop */
	CHECK("\x66\x90\xc3", 0, CHEAP);
	CHECK("\x0f\x1f\x44\x00\x00", 0, CHEAP); /* nop of five bytes */
	CHECK("\x0f\x1f\x84\x00\x00\x00\x00\x00", 0, CHEAP);
}

static void what_is_stepped_out_of_line_is_slow(void **state)
{
	(void)state;
	CHECK("\x48\x83\xec\x18\xc3", 0, SLOW); /* sub $0x18,%rsp */
	CHECK("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08\x48\x39\xc6", 0, SLOW);
	CHECK("\x0f\x10\x07\x90", 0, SLOW); /* movups (%rdi),%xmm0 */
	CHECK("\x0f\xaf\xc7\x55", 0, SLOW); /* imul: not looked into */
	CHECK("\x68\x01\x00\x00\x00\x55", 0, SLOW); /* push $1 */
	CHECK("\xf3\x0f\x1e\xfa\x48\x83\xec\x18", 4, SLOW); /* endbr64; sub */
	CHECK("\xc3", 0, SLOW);
	CHECK("", 0, SLOW);
}

static void endbr64_is_passed_over(void **state)
{
	(void)state;
	CHECK("\xf3\x0f\x1e\xfa\x55", 4, CHEAP);
	CHECK("\xf3\x0f\x1e\xfa\x0f\x1f\x44\x00\x00", 4, CHEAP);
	CHECK("\xf3\x0f\x1e\xfa", 4, SLOW); /* nothing known behind it */
}

static void a_harmless_first_instruction_is_passed_over(void **state)
{
	(void)state;
	/* cmpl $0x321cba00,0x11(%rip); je: all of libcuda */
	CHECK("\x81\x3d\x11\x00\x00\x00\x00\xba\x1c\x32\x74\x01", 10, CHEAP);
	CHECK("\x83\x3d\x11\x00\x00\x00\x00\x74\x01", 7, CHEAP); /* cmpl $0,… */
	CHECK("\x80\x3d\x11\x00\x00\x00\x00\x0f\x85\x01\x00\x00\x00", 7, CHEAP);
	CHECK("\x31\xc0\x55", 2, CHEAP); /* xor %eax,%eax; push */
	CHECK("\x48\x85\xff\x74\x10", 3, CHEAP); /* test %rdi,%rdi; je */
	CHECK("\x48\x8b\x05\x11\x00\x00\x00\x53", 7, CHEAP); /* mov …(%rip),%rax; push */
	CHECK("\x48\x8d\x44\x24\x08\x53", 5, CHEAP); /* lea 8(%rsp),%rax; push */
	CHECK("\xb8\x01\x00\x00\x00\x55", 5, CHEAP); /* mov $1,%eax; push */
	CHECK("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08\x55", 10, CHEAP); /* movabs */
	CHECK("\x49\x89\xfa\x55", 3, CHEAP); /* mov %rdi,%r10 */
	CHECK("\xf3\x0f\x1e\xfa\x31\xc0\x55", 6, CHEAP); /* endbr64 first */
}

static void an_instruction_that_changes_an_argument_is_not_passed_over(void **state)
{
	(void)state;
	CHECK("\x48\x89\xfe\x55", 0, SLOW); /* mov %rdi,%rsi */
	CHECK("\x31\xd2\x55", 0, SLOW); /* xor %edx,%edx */
	CHECK("\x33\x0d\x00\x00\x00\x00\x55", 0, SLOW); /* xor …(%rip),%ecx */
	CHECK("\x45\x31\xc0\x55", 0, SLOW); /* xor %r8d,%r8d */
	CHECK("\x41\xb9\x01\x00\x00\x00\x55", 0, SLOW); /* mov $1,%r9d */
	CHECK("\x48\x8d\x64\x24\xf8\x55", 0, SLOW); /* lea -8(%rsp),%rsp */
	CHECK("\x48\x89\xe4\x55", 0, SLOW); /* mov %rsp,%rsp */
	CHECK("\x83\xc7\x01\x55", 0, SLOW); /* add $1,%edi */
	CHECK("\x48\x89\x44\x24\x08\x55", 0, SLOW); /* a store, maybe to an argument */
	CHECK("\x83\x07\x01\x55", 0, SLOW); /* addl $1,(%rdi) */
}

static void what_the_kernel_does_not_take_is_refused(void **state)
{
	(void)state;
	CHECK("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 0, REFUSED); /* cs nop */
	CHECK("\xf0\x48\x0f\xb1\x0f", 0, REFUSED); /* lock cmpxchg */
	CHECK("\x3e\xff\xe0", 0, REFUSED); /* notrack jmp */
	CHECK("\xf4", 0, REFUSED); /* hlt */
	CHECK("\xcc", 0, REFUSED); /* a breakpoint of somebody else */
	CHECK("\x66\xe8\x00\x00", 0, REFUSED); /* call of 16 bits */
}

static void every_form_of_an_operand_has_its_length(void **state)
{
	(void)state;
	CHECK("\x83\x38\x01\x55", 3, CHEAP); /* cmpl $1,(%rax) */
	CHECK("\x83\x78\x08\x01\x55", 4, CHEAP); /* cmpl $1,8(%rax) */
	CHECK("\x83\xb8\x08\x00\x00\x00\x01\x55", 7, CHEAP); /* 8(%rax), long */
	CHECK("\x83\x3c\x24\x01\x55", 4, CHEAP); /* (%rsp) */
	CHECK("\x83\x7c\x24\x08\x01\x55", 5, CHEAP); /* 8(%rsp) */
	CHECK("\x83\xbc\x24\x08\x00\x00\x00\x01\x55", 8, CHEAP); /* 8(%rsp), long */
	CHECK("\x83\x3c\x25\x08\x00\x00\x00\x01\x55", 8, CHEAP); /* an address without a base */
	CHECK("\x83\x7c\x25\x08\x01\x55", 5, CHEAP); /* 8(%rbp) */
	CHECK("\x83\xbc\x25\x08\x00\x00\x00\x01\x55", 8, CHEAP);
	CHECK("\x83\x7d\x08\x01\x55", 4, CHEAP);
	CHECK("\x83\xf8\x01\x55", 3, CHEAP); /* cmp $1,%eax */
	CHECK("\x83\xfc\x01\x55", 3, CHEAP); /* cmp $1,%esp */
	CHECK("\x83\xfd\x01\x55", 3, CHEAP);
}

static void a_constant_is_as_long_as_its_instruction_says(void **state)
{
	(void)state;
	CHECK("\x80\x38\x01\x55", 3, CHEAP); /* cmpb */
	CHECK("\x66\x83\x38\x01\x55", 4, CHEAP);
	CHECK("\x66\x81\x38\x01\x02\x55", 5, CHEAP); /* cmpw $0x201,(%rax) */
	CHECK("\x81\x38\x01\x02\x03\x04\x55", 6, CHEAP); /* cmpl */
	CHECK("\x48\x81\x38\x01\x02\x03\x04\x55", 7, CHEAP); /* cmpq */
	CHECK("\x66\xb8\x01\x02\x55", 4, CHEAP); /* mov $0x201,%ax */
	CHECK("\x41\xba\x01\x02\x03\x04\x55", 6, CHEAP); /* mov …,%r10d */
	CHECK("\x64\x48\x8b\x04\x25\x28\x00\x00\x00\x55", 9, CHEAP); /* mov %fs:0x28,%rax */
	CHECK("\x65\x8b\x00\x55", 3, CHEAP);
	CHECK("\x67\x8b\x00\x55", 3, CHEAP);
	CHECK("\xf2\xe9\x00\x00\x00\x00", 0, CHEAP); /* bnd jmp */
	CHECK("\xf3\x90", 0, CHEAP); /* pause */
}

static void who_only_reads_is_harmless(void **state)
{
	(void)state;
	CHECK("\x38\x07\x55", 2, CHEAP); /* cmp %al,(%rdi) */
	CHECK("\x39\x07\x55", 2, CHEAP);
	CHECK("\x3a\x07\x55", 2, CHEAP);
	CHECK("\x3b\x3f\x55", 2, CHEAP);
	CHECK("\x84\xff\x55", 2, CHEAP); /* test %bh,%bh */
	CHECK("\x4c\x85\xc7\x55", 3, CHEAP); /* test %r8,%rdi */
	CHECK("\x49\x83\xf8\x01\x55", 4, CHEAP); /* cmp $1,%r8 */
	CHECK("\x4c\x83\xf8\x01\x55", 4, CHEAP);
	CHECK("\x33\xc7\x55", 2, CHEAP); /* xor %edi,%eax */
	CHECK("\x31\xf8\x55", 2, CHEAP); /* the same, other way round */
	CHECK("\x33\x07\x55", 2, CHEAP);
	CHECK("\x8b\xc7\x55", 2, CHEAP); /* mov %edi,%eax */
	CHECK("\x89\xf8\x55", 2, CHEAP);
	CHECK("\x4c\x89\xc0\x55", 3, CHEAP); /* mov %r8,%rax */
	CHECK("\x49\x8b\x00\x55", 3, CHEAP); /* mov (%r8),%rax */
	CHECK("\x4d\x8b\x1b\x55", 3, CHEAP); /* mov (%r11),%r11 */
	CHECK("\x83\xc0\x01\x55", 3, CHEAP); /* add $1,%eax */
}

static void every_register_of_an_argument_is_watched(void **state)
{
	(void)state;
	CHECK("\xb9\x01\x00\x00\x00\x55", 0, SLOW); /* mov $1,%ecx */
	CHECK("\xba\x01\x00\x00\x00\x55", 0, SLOW); /* edx */
	CHECK("\xbc\x01\x00\x00\x00\x55", 0, SLOW); /* esp */
	CHECK("\xbe\x01\x00\x00\x00\x55", 0, SLOW); /* esi */
	CHECK("\xbf\x01\x00\x00\x00\x55", 0, SLOW); /* edi */
	CHECK("\x41\xb8\x01\x00\x00\x00\x55", 0, SLOW); /* r8d */
	CHECK("\xbb\x01\x00\x00\x00\x55", 5, CHEAP); /* ebx */
	CHECK("\xbd\x01\x00\x00\x00\x55", 5, CHEAP); /* ebp */
	CHECK("\x44\x8b\x00\x55", 0, SLOW); /* mov (%rax),%r8d */
	CHECK("\x44\x8b\x08\x55", 0, SLOW); /* mov (%rax),%r9d */
	CHECK("\x8b\x38\x55", 0, SLOW); /* mov (%rax),%edi */
	CHECK("\x49\x89\xc0\x55", 0, SLOW); /* mov %rax,%r8 */
	CHECK("\x89\xc7\x55", 0, SLOW); /* mov %eax,%edi */
	CHECK("\x31\xc7\x55", 0, SLOW); /* xor %eax,%edi */
	CHECK("\x33\xf8\x55", 0, SLOW); /* the same, other way round */
	CHECK("\x31\x00\x55", 0, SLOW); /* into memory */
	CHECK("\x49\x83\xc0\x01\x55", 0, SLOW); /* add $1,%r8 */
	CHECK("\x81\xc7\x01\x00\x00\x00\x55", 0, SLOW);
	CHECK("\x80\x00\x01\x55", 0, SLOW); /* addb $1,(%rax) */
}

static void what_is_cheap_is_not_with_an_operand_size(void **state)
{
	(void)state;
	CHECK("\x66\x55", 0, SLOW); /* push %bp */
	CHECK("\x66\x74\x10", 0, REFUSED);
	CHECK("\x66\xe9\x00\x00", 0, REFUSED);
	CHECK("\x66\xeb\x00", 0, REFUSED);
	CHECK("\x66\x0f\x84\x00\x00", 0, REFUSED);
	CHECK("\x0f\xb6\x00", 0, SLOW); /* movzb */
	CHECK("\x0f", 0, SLOW);
}

static void each_of_the_nops_that_the_kernel_knows_is_cheap(void **state)
{
	(void)state;
	CHECK("\x90", 0, CHEAP);
	CHECK("\x66\x90", 0, CHEAP);
	CHECK("\x0f\x1f\x00", 0, CHEAP);
	CHECK("\x0f\x1f\x40\x00", 0, CHEAP);
	CHECK("\x66\x0f\x1f\x44\x00\x00", 0, CHEAP);
	CHECK("\x0f\x1f\x80\x00\x00\x00\x00", 0, CHEAP);
	CHECK("\x0f\x1f\x84\x00\x00\x00\x00", 0, SLOW); /* cut short */
	CHECK("\x0f\x1f\x04\x00", 0, SLOW);
}

static void every_prefix_and_privilege_that_the_kernel_refuses_is_refused(void **state)
{
	static const uint8_t first[] = {0x26, 0x2e, 0x36, 0x3e, 0xf0, 0xf4, 0xfa, 0xfb,
					0x6c, 0x6f, 0xe4, 0xe7, 0xec, 0xef, 0xcc, 0xcd};

	(void)state;
	for (size_t i = 0; i < sizeof(first); i++) {
		const uint8_t code[] = {first[i], 0x55, 0x55};

		check_x86(code, sizeof(code), 0, NT_INSN_REFUSED, (int)first[i]);
	}
}

/* No processor takes an instruction of more than fifteen bytes. */
static void more_prefixes_than_there_may_be_are_not_looked_behind(void **state)
{
	uint8_t code[20];

	(void)state;
	memset(code, 0x66, sizeof(code));
	code[14] = 0x90;
	check_x86(code, sizeof(code), 0, NT_INSN_CHEAP, __LINE__);
	code[14] = 0x66;
	code[16] = 0x90;
	check_x86(code, sizeof(code), 0, NT_INSN_SLOW, __LINE__);
}

/* In memory that ends where the code does, for the sanitizers to see. */
static void check_cut_short(const uint8_t *code, size_t whole)
{
	struct nt_insn_plan plan;

	for (size_t len = 0; len <= whole; len++) {
		uint8_t *exact = malloc(len ? len : 1);

		assert_non_null(exact);
		memcpy(exact, code, len);
		nt_insn_plan_x86_64(exact, len, &plan);
		assert_true(plan.entry <= len);
		nt_insn_plan_arm64(exact, len, &plan);
		assert_true(plan.entry <= len);
		free(exact);
	}
}

static void code_that_is_cut_short_is_never_read_past_its_end(void **state)
{
	(void)state;
	check_cut_short(CODE("\xf3\x0f\x1e\xfa\x81\x3d\x11\x00\x00\x00\x00\xba\x1c\x32\x74\x01"));
	check_cut_short(CODE("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08\x55"));
	check_cut_short(CODE("\xb8\x01\x02\x03\x04\x55"));
	check_cut_short(CODE("\x66\xb8\x01\x02\x0f\x84\x00\x00\x00\x00"));
	check_cut_short(CODE("\x48\x8b\x84\x24\x00\x01\x00\x00\x53"));
	check_cut_short(CODE("\x0f\x84\x00\x00\x00\x00"));
	check_cut_short(CODE("\x83\x38\x01\x55"));
	check_cut_short(CODE("\x83\x3c\x25\x08\x00\x00\x00\x01\x55"));
	check_cut_short(
		CODE("\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x55"));
	check_cut_short(CODE("\x5f\x24\x03\xd5\xfd\x7b\xbe\xa9"));
}

static void check_arm64(uint32_t first, uint32_t second, uint32_t entry, enum nt_insn entry_insn,
			uint32_t ret, enum nt_insn return_insn)
{
	const uint32_t code[] = {first, second};
	struct nt_insn_plan plan;

	nt_insn_plan_arm64((const uint8_t *)code, sizeof(code), &plan);
	assert_int_equal(plan.entry, entry);
	assert_int_equal(plan.entry_insn, entry_insn);
	assert_int_equal(plan.ret, ret);
	assert_int_equal(plan.return_insn, return_insn);
}

static void check_arm64_first(uint32_t insn, enum nt_insn cost)
{
	check_arm64(insn, 0, 0, cost, 0, cost);
}

static void arm64_has_its_own_cheap_ones(void **state)
{
	(void)state;
	check_arm64_first(0xa9be7bfd, NT_INSN_CHEAP); /* stp x29,x30,[sp,#-32]! */
	check_arm64_first(0x14000010, NT_INSN_CHEAP); /* b */
	check_arm64_first(0xb4000040, NT_INSN_CHEAP); /* cbz */
	check_arm64_first(0x90000010, NT_INSN_CHEAP); /* adrp */
	check_arm64_first(0xd503201f, NT_INSN_CHEAP); /* nop */
	check_arm64_first(0xd10083ff, NT_INSN_SLOW); /* sub sp,sp,#32 */
	check_arm64_first(0xd4200000, NT_INSN_REFUSED); /* brk */
	check_arm64_first(0x085f7c00, NT_INSN_REFUSED); /* ldxrb */
}

static void arm64_instructions_are_told_from_their_neighbours(void **state)
{
	(void)state;
	check_arm64_first(0x94000010, NT_INSN_CHEAP); /* bl */
	check_arm64_first(0x54000041, NT_INSN_CHEAP); /* b.ne */
	check_arm64_first(0x54000051, NT_INSN_SLOW); /* bc.ne */
	check_arm64_first(0x35000040, NT_INSN_CHEAP); /* cbnz */
	check_arm64_first(0x36080040, NT_INSN_CHEAP); /* tbz */
	check_arm64_first(0xb7080040, NT_INSN_CHEAP); /* tbnz */
	check_arm64_first(0x10000040, NT_INSN_CHEAP); /* adr */
	check_arm64_first(0x18000040, NT_INSN_CHEAP); /* ldr w0, close by */
	check_arm64_first(0x58000040, NT_INSN_CHEAP); /* ldr x0, close by */
	check_arm64_first(0x1c000040, NT_INSN_SLOW); /* ldr s0, close by */
	check_arm64_first(0xf9400000, NT_INSN_SLOW); /* ldr x0,[x0] */
	check_arm64_first(0xa9be53f3, NT_INSN_SLOW); /* stp of other registers */
	check_arm64_first(0xa9007bfd, NT_INSN_SLOW); /* stp without push */
	check_arm64_first(0xd4000001, NT_INSN_REFUSED); /* svc */
	check_arm64_first(0xd53bd040, NT_INSN_REFUSED); /* mrs */
	check_arm64_first(0xd5033bbf, NT_INSN_REFUSED); /* dmb */
	check_arm64_first(0xd503203f, NT_INSN_SLOW); /* yield: a hint */
	check_arm64_first(0xc85f7c00, NT_INSN_REFUSED); /* ldxr */
}

static void arm64_code_of_one_instruction_is_judged_by_it(void **state)
{
	static const uint8_t nop[] = {0x1f, 0x20, 0x03, 0xd5}, bti[] = {0x5f, 0x24, 0x03, 0xd5};
	struct nt_insn_plan plan;

	(void)state;
	nt_insn_plan_arm64(nop, 4, &plan);
	assert_int_equal(plan.entry_insn, NT_INSN_CHEAP);
	assert_int_equal(plan.return_insn, NT_INSN_CHEAP);
	nt_insn_plan_arm64(nop, 3, &plan);
	assert_int_equal(plan.entry_insn, NT_INSN_SLOW);
	nt_insn_plan_arm64(bti, 4, &plan);
	assert_int_equal(plan.entry, 0);
	assert_int_equal(plan.entry_insn, NT_INSN_SLOW);
}

static void on_arm64_a_return_probe_comes_before_the_return_address_is_signed(void **state)
{
	const uint32_t bti = 0xd503245f, paciasp = 0xd503233f, stp = 0xa9be7bfd;

	(void)state;
	check_arm64(bti, stp, 4, NT_INSN_CHEAP, 4, NT_INSN_CHEAP);
	check_arm64(paciasp, stp, 4, NT_INSN_CHEAP, 0, NT_INSN_SLOW);
	check_arm64(bti, paciasp, 4, NT_INSN_SLOW, 0, NT_INSN_SLOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_emulates_is_cheap),
		cmocka_unit_test(what_is_stepped_out_of_line_is_slow),
		cmocka_unit_test(endbr64_is_passed_over),
		cmocka_unit_test(a_harmless_first_instruction_is_passed_over),
		cmocka_unit_test(an_instruction_that_changes_an_argument_is_not_passed_over),
		cmocka_unit_test(what_the_kernel_does_not_take_is_refused),
		cmocka_unit_test(every_form_of_an_operand_has_its_length),
		cmocka_unit_test(a_constant_is_as_long_as_its_instruction_says),
		cmocka_unit_test(who_only_reads_is_harmless),
		cmocka_unit_test(every_register_of_an_argument_is_watched),
		cmocka_unit_test(what_is_cheap_is_not_with_an_operand_size),
		cmocka_unit_test(each_of_the_nops_that_the_kernel_knows_is_cheap),
		cmocka_unit_test(every_prefix_and_privilege_that_the_kernel_refuses_is_refused),
		cmocka_unit_test(more_prefixes_than_there_may_be_are_not_looked_behind),
		cmocka_unit_test(code_that_is_cut_short_is_never_read_past_its_end),
		cmocka_unit_test(arm64_has_its_own_cheap_ones),
		cmocka_unit_test(arm64_instructions_are_told_from_their_neighbours),
		cmocka_unit_test(arm64_code_of_one_instruction_is_judged_by_it),
		cmocka_unit_test(on_arm64_a_return_probe_comes_before_the_return_address_is_signed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
