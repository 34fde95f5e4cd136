/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a table shows of its columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/live/table.h"

static const struct nt_column columns[] = {
	{"WHO", false, true},
	{.title = "POD", .shrinks = true, .rare = true},
	{.title = "CAUSE", .shrinks = true},
	{.title = "AGE", .right = true},
};

/* What a table of these rows, of four cells each, prints. */
static char *printed(const char *const (*row)[4], size_t rows)
{
	nt_auto(nt_table) struct nt_table *table = NULL;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(nt_table_new(columns, 4, &table), 0);
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < 4; j++)
			assert_int_equal(nt_table_add(table, NT_STYLE_PLAIN, "%s", row[i][j]), 0);
	nt_table_print(table, out);
	(void)fclose(out);
	return text;
}

static void a_rare_column_that_no_row_fills_is_left_out(void **state)
{
	static const char *const rows[][4] = {{"rank 1", "-", "-", "5s"},
					      {"rank 22", "-", "-", "1m"}};
	nt_autofree char *text = printed(rows, 2);

	(void)state;
	assert_string_equal(text, "WHO      CAUSE  AGE\n"
				  "rank 1   -       5s\n"
				  "rank 22  -       1m\n");
}

static void a_rare_column_is_there_for_all_once_a_row_fills_it(void **state)
{
	static const char *const rows[][4] = {{"rank 1", "-", "-", "5s"},
					      {"rank 22", "train-22", "-", "1m"}};
	nt_autofree char *text = printed(rows, 2);

	(void)state;
	assert_string_equal(text, "WHO      POD       CAUSE  AGE\n"
				  "rank 1   -         -       5s\n"
				  "rank 22  train-22  -       1m\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rare_column_that_no_row_fills_is_left_out),
		cmocka_unit_test(a_rare_column_is_there_for_all_once_a_row_fills_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
