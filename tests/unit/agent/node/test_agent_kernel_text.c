/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/kernel_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *const names[] = {"scan ", "scan_direct ", "kill ", "none "};

static uint64_t find(const char *text, size_t len, uint64_t value[4])
{
	return nt_kernel_text_find(text, len, names, 4, value);
}

static void names_are_found_whole_and_once(void **state)
{
	static const char text[] = "scan_direct_throttle 9\nscan_direct 5\nscan 4\n scan 3\n"
				   "kill 18446744073709551615\nscan 2";
	uint64_t value[4] = {0, 0, 0, 77};

	(void)state;
	assert_int_equal(find(text, sizeof(text) - 1, value), 7);
	assert_int_equal(value[0], 4);
	assert_int_equal(value[1], 5);
	assert_true(value[2] == UINT64_MAX);
	assert_int_equal(value[3], 77);
}

static void what_is_no_number_is_not_found(void **state)
{
	static const char text[] = "scan \nscan_direct -1\nkill 18446744073709551616\nnone 1x\n";
	uint64_t value[4];

	(void)state;
	assert_int_equal(find(text, sizeof(text) - 1, value), 0);
	assert_int_equal(find("", 0, value), 0);
	/* The first line with a name counts, also where it is malformed. */
	assert_int_equal(find("kill x\nkill 1\n", 14, value), 0);
}

static void lines_are_cut_with_and_without_a_line_feed(void **state)
{
	const char *text = "a\n\nbc", *line;
	size_t len = 5, line_len;

	(void)state;
	assert_true(nt_kernel_text_cut_line(&text, &len, &line, &line_len));
	assert_int_equal(line_len, 1);
	assert_true(nt_kernel_text_cut_line(&text, &len, &line, &line_len));
	assert_int_equal(line_len, 0);
	assert_true(nt_kernel_text_cut_line(&text, &len, &line, &line_len));
	assert_int_equal(line_len, 2);
	assert_false(nt_kernel_text_cut_line(&text, &len, &line, &line_len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_whole_and_once),
		cmocka_unit_test(what_is_no_number_is_not_found),
		cmocka_unit_test(lines_are_cut_with_and_without_a_line_feed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
