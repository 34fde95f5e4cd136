/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Every opcode behind every kind of prefix, as tests/golden/insn/map.txt has it: a letter for what a
 * breakpoint on it costs (c cheap, s slow, R refused; S: slow, and passed over for a cheap one behind
 * it), and for a row of sixteen the sum over all operands and all lengths to which the code may be cut.
 * Where the decoder changes on purpose, NT_GOLDEN_UPDATE=1 writes the file anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/elf/insn.h"
#include "common/base/hash.h"

enum {
	CODE = 20, /* bytes that are laid out */
};

static const char *const golden = "tests/golden/insn/map.txt";

static const struct prefix {
	uint8_t byte[5];
	size_t n;
} prefixes[] = {
	{{0}, 0},
	{{0x48}, 1},
	{{0x41}, 1},
	{{0x4c}, 1},
	{{0x4d}, 1},
	{{0x66}, 1},
	{{0x66, 0x48}, 2},
	{{0xf3}, 1},
	{{0xf2, 0x67}, 2},
	{{0x64}, 1},
	{{0x65}, 1},
	{{0x26}, 1},
	{{0x2e}, 1},
	{{0x36, 0x44}, 2},
	{{0x3e}, 1},
	{{0xf0}, 1},
	{{0x0f}, 1},
	{{0x66, 0x0f}, 2},
	{{0xf3, 0x0f}, 2},
	{{0xf3, 0x0f, 0x1e, 0xfa}, 4},
	{{0xf3, 0x0f, 0x1e, 0xfa, 0x48}, 5},
};

static void add(uint64_t *sum, const struct nt_insn_plan *plan)
{
	const uint32_t word[] = {plan->entry, plan->ret, plan->entry_insn, plan->return_insn};

	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		*sum = nt_hash_u64(*sum, word[i]);
}

/* Only as many bytes as there are may be read: what lies behind them is a sanitizer's to guard. */
static struct nt_insn_plan plan_of(void (*plan)(const uint8_t *, size_t, struct nt_insn_plan *),
				   const uint8_t *code, size_t len)
{
	struct nt_insn_plan made;
	uint8_t *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, code, len);
	plan(copy, len, &made);
	free(copy);
	return made;
}

static char letter_of(const struct nt_insn_plan *plan, size_t start)
{
	if (plan->entry_insn == NT_INSN_REFUSED)
		return 'R';
	if (plan->entry_insn == NT_INSN_CHEAP)
		return plan->entry > start ? 'S' : 'c';
	return 's';
}

/* The code's bytes are operands, and pushes behind it: whatever its length, a cheap one follows. */
static void classify_opcode(const struct prefix *prefix, uint8_t opcode, char *ret_letter,
			    uint64_t *sum)
{
	const size_t start = prefix->n >= 4 ? 4 : 0;
	uint8_t code[CODE];
	struct nt_insn_plan plan;

	memset(code, 0x55, sizeof(code));
	memcpy(code, prefix->byte, prefix->n);
	code[prefix->n] = opcode;
	for (unsigned int modrm = 0; modrm < 256; modrm++) {
		code[prefix->n + 1] = (uint8_t)modrm;
		for (unsigned int sib = 0; sib < 3; sib++) {
			code[prefix->n + 2] = (uint8_t)(0x55 - sib * 0x18);
			plan = plan_of(nt_insn_plan_x86_64, code, sizeof(code));
			add(sum, &plan);
		}
		if (modrm == 0xc0)
			*ret_letter = letter_of(&plan, start);
	}
	for (unsigned int mod = 0; mod < 256; mod += 0x40 - 1)
		for (size_t len = 0; len < sizeof(code); len++) {
			code[prefix->n + 1] = (uint8_t)mod;
			plan = plan_of(nt_insn_plan_x86_64, code, len);
			add(sum, &plan);
		}
}

/* Each class of instructions, each of its bits changed once. */
static void classify_arm64(char line[80])
{
	static const uint32_t words[] = {
		0xd503245f, 0xd503233f, 0xd503201f, 0x14000000, 0x94000000, 0x54000000,
		0x34000000, 0x36000000, 0x10000000, 0x90000000, 0x18000000, 0x58000000,
		0xa9807bfd, 0xa9bf7bfd, 0xd4000001, 0xd4200000, 0xd5033fdf, 0xd53bd040,
		0x08007c00, 0xc85f7c00, 0xd10083ff, 0xaa0103e0, 0xf9400000, 0x00000000,
	};
	const size_t n = sizeof(words) / sizeof(words[0]);
	uint64_t sum = NT_HASH_SEED;

	for (size_t i = 0; i < n; i++) {
		for (unsigned int bit = 0; bit <= 32; bit++) {
			const uint32_t word = words[i] ^ (bit < 32 ? 1U << bit : 0);

			for (size_t j = 0; j < n; j++) {
				const uint32_t pair[] = {word, words[j]};
				struct nt_insn_plan plan;
				uint8_t code[sizeof(pair)];

				memcpy(code, pair, sizeof(pair));
				plan = plan_of(nt_insn_plan_arm64, code,
					       j ? sizeof(code) : bit % 9);
				add(&sum, &plan);
			}
		}
	}
	(void)snprintf(line, 80, "arm64 %016llx\n", (unsigned long long)sum);
}

static void check(FILE *file, const char *got)
{
	char want[80];

	if (getenv("NT_GOLDEN_UPDATE")) {
		assert_true(fputs(got, file) >= 0);
		return;
	}
	assert_non_null(fgets(want, sizeof(want), file));
	assert_string_equal(got, want);
}

static void each_opcode_costs_what_is_written_down(void **state)
{
	FILE *file = fopen(golden, getenv("NT_GOLDEN_UPDATE") ? "w" : "r");
	char line[80];

	(void)state;
	assert_non_null(file);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t at = 0;

		line[0] = '\0';
		for (size_t j = 0; j < prefixes[i].n; j++)
			at += (size_t)snprintf(line + at, sizeof(line) - at, "%02x ",
					       prefixes[i].byte[j]);
		(void)snprintf(line + at, sizeof(line) - at, "...\n");
		check(file, line);
		for (unsigned int row = 0; row < 16; row++) {
			uint64_t sum = NT_HASH_SEED;
			char letters[17] = "";

			for (unsigned int j = 0; j < 16; j++)
				classify_opcode(&prefixes[i], (uint8_t)(16 * row + j), &letters[j],
						&sum);
			(void)snprintf(line, sizeof(line), "  %x0 %s %016llx\n", row, letters,
				       (unsigned long long)sum);
			check(file, line);
		}
	}
	classify_arm64(line);
	check(file, line);
	assert_int_equal(fclose(file), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_opcode_costs_what_is_written_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
