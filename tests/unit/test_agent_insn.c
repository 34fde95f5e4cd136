/* SPDX-License-Identifier: GPL-3.0-or-later */
/* First instructions as real libraries have them, and what a probe there costs: docs/probes.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/insn.h"

#define CODE(text) (const uint8_t *)(text), sizeof(text) - 1

static void check_x86(const uint8_t *code, size_t len, uint32_t entry, enum nt_insn entry_insn,
		      enum nt_insn return_insn, int line)
{
	struct nt_insn_plan plan;

	nt_insn_plan_x86_64(code, len, &plan);
	if (plan.entry != entry || plan.entry_insn != entry_insn || plan.return_insn != return_insn)
		fail_msg("line %d: entry +%u %d, return %d", line, plan.entry, plan.entry_insn,
			 plan.return_insn);
}

#define CHECK(text, entry, entry_insn, return_insn)                                                \
	check_x86(CODE(text), entry, NT_INSN_##entry_insn, NT_INSN_##return_insn, __LINE__)

static void what_the_kernel_emulates_is_cheap(void **state)
{
	(void)state;
	CHECK("\x55\x48\x89\xe5", 0, CHEAP, CHEAP); /* push %rbp */
	CHECK("\x41\x57\x41\x56", 0, CHEAP, CHEAP); /* push %r15 */
	CHECK("\xe9\x00\x00\x00\x00", 0, CHEAP, CHEAP); /* jmp */
	CHECK("\xeb\x10", 0, CHEAP, CHEAP);
	CHECK("\x74\x10", 0, CHEAP, CHEAP); /* je */
	CHECK("\x0f\x84\x00\x00\x00\x00", 0, CHEAP, CHEAP);
	CHECK("\xe8\x00\x00\x00\x00", 0, CHEAP, CHEAP); /* call */
	CHECK("\x90\xc3", 0, CHEAP, CHEAP); /* nop */
	CHECK("\x66\x90\xc3", 0, CHEAP, CHEAP);
	CHECK("\x0f\x1f\x44\x00\x00", 0, CHEAP, CHEAP); /* nop of five bytes */
	CHECK("\x0f\x1f\x84\x00\x00\x00\x00\x00", 0, CHEAP, CHEAP);
}

static void what_is_stepped_out_of_line_is_slow(void **state)
{
	(void)state;
	CHECK("\x48\x83\xec\x18\xc3", 0, SLOW, SLOW); /* sub $0x18,%rsp */
	CHECK("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08\x48\x39\xc6", 0, SLOW, SLOW);
	CHECK("\x0f\x10\x07\x90", 0, SLOW, SLOW); /* movups (%rdi),%xmm0 */
	CHECK("\x0f\xaf\xc7\x55", 0, SLOW, SLOW); /* imul: not looked into */
	CHECK("\x68\x01\x00\x00\x00\x55", 0, SLOW, SLOW); /* push $1 */
	CHECK("\xf3\x0f\x1e\xfa\x48\x83\xec\x18", 4, SLOW, SLOW); /* endbr64; sub */
	CHECK("\xc3", 0, SLOW, SLOW);
	CHECK("", 0, SLOW, SLOW);
}

static void endbr64_is_passed_over_by_entry_probes(void **state)
{
	(void)state;
	CHECK("\xf3\x0f\x1e\xfa\x55", 4, CHEAP, SLOW);
	CHECK("\xf3\x0f\x1e\xfa\x0f\x1f\x44\x00\x00", 4, CHEAP, SLOW);
	CHECK("\xf3\x0f\x1e\xfa", 4, SLOW, SLOW); /* nothing known behind it */
}

static void a_harmless_first_instruction_is_passed_over_by_entry_probes(void **state)
{
	(void)state;
	/* cmpl $0x321cba00,0x11(%rip); je: all of libcuda */
	CHECK("\x81\x3d\x11\x00\x00\x00\x00\xba\x1c\x32\x74\x01", 10, CHEAP, SLOW);
	CHECK("\x83\x3d\x11\x00\x00\x00\x00\x74\x01", 7, CHEAP, SLOW); /* cmpl $0,… */
	CHECK("\x80\x3d\x11\x00\x00\x00\x00\x0f\x85\x01\x00\x00\x00", 7, CHEAP, SLOW);
	CHECK("\x31\xc0\x55", 2, CHEAP, SLOW); /* xor %eax,%eax; push */
	CHECK("\x48\x85\xff\x74\x10", 3, CHEAP, SLOW); /* test %rdi,%rdi; je */
	CHECK("\x48\x8b\x05\x11\x00\x00\x00\x53", 7, CHEAP, SLOW); /* mov …(%rip),%rax; push */
	CHECK("\x48\x8d\x44\x24\x08\x53", 5, CHEAP, SLOW); /* lea 8(%rsp),%rax; push */
	CHECK("\xb8\x01\x00\x00\x00\x55", 5, CHEAP, SLOW); /* mov $1,%eax; push */
	CHECK("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08\x55", 10, CHEAP, SLOW); /* movabs */
	CHECK("\x49\x89\xfa\x55", 3, CHEAP, SLOW); /* mov %rdi,%r10 */
	CHECK("\xf3\x0f\x1e\xfa\x31\xc0\x55", 6, CHEAP, SLOW); /* endbr64 first */
}

static void an_instruction_that_changes_an_argument_is_not_passed_over(void **state)
{
	(void)state;
	CHECK("\x48\x89\xfe\x55", 0, SLOW, SLOW); /* mov %rdi,%rsi */
	CHECK("\x31\xd2\x55", 0, SLOW, SLOW); /* xor %edx,%edx */
	CHECK("\x33\x0d\x00\x00\x00\x00\x55", 0, SLOW, SLOW); /* xor …(%rip),%ecx */
	CHECK("\x45\x31\xc0\x55", 0, SLOW, SLOW); /* xor %r8d,%r8d */
	CHECK("\x41\xb9\x01\x00\x00\x00\x55", 0, SLOW, SLOW); /* mov $1,%r9d */
	CHECK("\x48\x8d\x64\x24\xf8\x55", 0, SLOW, SLOW); /* lea -8(%rsp),%rsp */
	CHECK("\x48\x89\xe4\x55", 0, SLOW, SLOW); /* mov %rsp,%rsp */
	CHECK("\x83\xc7\x01\x55", 0, SLOW, SLOW); /* add $1,%edi */
	CHECK("\x48\x89\x44\x24\x08\x55", 0, SLOW, SLOW); /* a store, maybe to an argument */
	CHECK("\x83\x07\x01\x55", 0, SLOW, SLOW); /* addl $1,(%rdi) */
}

static void what_the_kernel_does_not_take_is_refused(void **state)
{
	(void)state;
	CHECK("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 0, REFUSED, REFUSED); /* cs nop */
	CHECK("\xf0\x48\x0f\xb1\x0f", 0, REFUSED, REFUSED); /* lock cmpxchg */
	CHECK("\x3e\xff\xe0", 0, REFUSED, REFUSED); /* notrack jmp */
	CHECK("\xf4", 0, REFUSED, REFUSED); /* hlt */
	CHECK("\xcc", 0, REFUSED, REFUSED); /* a breakpoint of somebody else */
	CHECK("\x66\xe8\x00\x00", 0, REFUSED, REFUSED); /* call of 16 bits */
}

static void check_cut_short(const uint8_t *code, size_t whole)
{
	struct nt_insn_plan plan;

	for (size_t len = 0; len <= whole; len++) {
		uint8_t *exact = test_malloc(len ? len : 1);

		memcpy(exact, code, len);
		nt_insn_plan_x86_64(exact, len, &plan);
		assert_true(plan.entry <= len);
		nt_insn_plan_arm64(exact, len, &plan);
		assert_true(plan.entry <= len);
		test_free(exact);
	}
}

static void code_that_is_cut_short_is_never_read_past_its_end(void **state)
{
	(void)state;
	check_cut_short(CODE("\xf3\x0f\x1e\xfa\x81\x3d\x11\x00\x00\x00\x00\xba\x1c\x32\x74\x01"));
	check_cut_short(CODE("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08\x55"));
	check_cut_short(CODE("\x66\xb8\x01\x02\x0f\x84\x00\x00\x00\x00"));
	check_cut_short(CODE("\x48\x8b\x84\x24\x00\x01\x00\x00\x53"));
}

static void check_arm64(uint32_t first, uint32_t second, uint32_t entry, enum nt_insn entry_insn,
			enum nt_insn return_insn)
{
	const uint32_t code[] = {first, second};
	struct nt_insn_plan plan;

	nt_insn_plan_arm64((const uint8_t *)code, sizeof(code), &plan);
	assert_int_equal(plan.entry, entry);
	assert_int_equal(plan.entry_insn, entry_insn);
	assert_int_equal(plan.return_insn, return_insn);
}

static void arm64_has_its_own_cheap_ones(void **state)
{
	(void)state;
	check_arm64(0xa9be7bfd, 0, 0, NT_INSN_CHEAP, NT_INSN_CHEAP); /* stp x29,x30,[sp,#-32]! */
	check_arm64(0x14000010, 0, 0, NT_INSN_CHEAP, NT_INSN_CHEAP); /* b */
	check_arm64(0xb4000040, 0, 0, NT_INSN_CHEAP, NT_INSN_CHEAP); /* cbz */
	check_arm64(0x90000010, 0, 0, NT_INSN_CHEAP, NT_INSN_CHEAP); /* adrp */
	check_arm64(0xd503201f, 0, 0, NT_INSN_CHEAP, NT_INSN_CHEAP); /* nop */
	check_arm64(0xd10083ff, 0, 0, NT_INSN_SLOW, NT_INSN_SLOW); /* sub sp,sp,#32 */
	check_arm64(0xd503245f, 0xa9be7bfd, 4, NT_INSN_CHEAP, NT_INSN_SLOW); /* bti c; stp */
	check_arm64(0xd503233f, 0xd10083ff, 4, NT_INSN_SLOW, NT_INSN_SLOW); /* paciasp; sub */
	check_arm64(0xd4200000, 0, 0, NT_INSN_REFUSED, NT_INSN_REFUSED); /* brk */
	check_arm64(0x085f7c00, 0, 0, NT_INSN_REFUSED, NT_INSN_REFUSED); /* ldxrb */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_emulates_is_cheap),
		cmocka_unit_test(what_is_stepped_out_of_line_is_slow),
		cmocka_unit_test(endbr64_is_passed_over_by_entry_probes),
		cmocka_unit_test(a_harmless_first_instruction_is_passed_over_by_entry_probes),
		cmocka_unit_test(an_instruction_that_changes_an_argument_is_not_passed_over),
		cmocka_unit_test(what_the_kernel_does_not_take_is_refused),
		cmocka_unit_test(code_that_is_cut_short_is_never_read_past_its_end),
		cmocka_unit_test(arm64_has_its_own_cheap_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
