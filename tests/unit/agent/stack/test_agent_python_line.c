/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Line tables as the compilers of CPython wrote them, and ones that none wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/stack/python_line.h"

static void lnotab_adds_until_the_offset_is_reached(void **state)
{
	/* Offset 0: line 10; from 4: 12; from 10: 11. */
	static const uint8_t table[] = {4, 2, 6, 0xff};

	(void)state;
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LNOTAB, table, sizeof(table), 10, 0), 10);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LNOTAB, table, sizeof(table), 10, 3), 10);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LNOTAB, table, sizeof(table), 10, 4), 12);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LNOTAB, table, sizeof(table), 10, 9), 12);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LNOTAB, table, sizeof(table), 10, 10), 11);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LNOTAB, table, sizeof(table), 10, 9999),
			 11);
}

static void a_range_has_its_own_delta_or_no_line(void **state)
{
	/* 6 bytes of line 10, 4 without a line, 2 of line 13. */
	static const uint8_t table[] = {6, 0, 4, 0x80, 2, 3};

	(void)state;
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_RANGES, table, sizeof(table), 10, 5), 10);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_RANGES, table, sizeof(table), 10, 6), 0);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_RANGES, table, sizeof(table), 10, 10), 13);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_RANGES, table, sizeof(table), 10, 12), 0);
}

static void locations_of_every_kind_are_decoded(void **state)
{
	static const uint8_t table[] = {
		0x80 | 0 << 3 | 0,  0x11, /* short: 2 bytes of the same line, 10 */
		0x80 | 11 << 3 | 1, 1,           2, /* 4 bytes, one line on: 11 */
		0x80 | 13 << 3 | 0, 0x05, /* 2 bytes, -2: 9 */
		0x80 | 14 << 3 | 0, 0x40 | 0x08, 0x02, 0, 1, 2, /* 2 bytes, +68: 77 */
		0x80 | 15 << 3 | 0, /* 2 bytes, no line */
		0x80 | 12 << 3 | 7, 1,           2, /* 16 bytes, two lines on: 79 */
	};
	static const uint32_t lines[] = {10, 11, 11, 9, 77, 0, 79, 79};

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(
			nt_python_line(NT_PYTHON_LINES_LOCATIONS, table, sizeof(table), 10, 2 * i),
			lines[i]);
	assert_int_equal(
		nt_python_line(NT_PYTHON_LINES_LOCATIONS, table, sizeof(table), 10, 12 + 16), 0);
}

static void before_the_first_instruction_it_is_the_functions_line(void **state)
{
	(void)state;
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LOCATIONS, NULL, 0, 42, -2), 42);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LNOTAB, NULL, 0, 42, -1), 42);
}

static void what_no_compiler_wrote_has_no_line(void **state)
{
	static const uint8_t negative[] = {0x80 | 13 << 3 | 0, 0x3f}; /* -31 */
	static const uint8_t endless[] = {0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};

	(void)state;
	assert_int_equal(
		nt_python_line(NT_PYTHON_LINES_LOCATIONS, negative, sizeof(negative), 10, 0), 0);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LOCATIONS, endless, sizeof(endless), 10, 0),
			 0);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_LOCATIONS, NULL, 0, 10, 0), 0);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_NONE, NULL, 0, 10, 0), 0);
	assert_int_equal(nt_python_line(NT_PYTHON_LINES_RANGES, negative, 1, 10, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lnotab_adds_until_the_offset_is_reached),
		cmocka_unit_test(a_range_has_its_own_delta_or_no_line),
		cmocka_unit_test(locations_of_every_kind_are_decoded),
		cmocka_unit_test(before_the_first_instruction_it_is_the_functions_line),
		cmocka_unit_test(what_no_compiler_wrote_has_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
