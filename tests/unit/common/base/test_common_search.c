/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
	MOST = 33,
};

static unsigned int asked;

static bool counted(bool holds)
{
	asked++;
	return holds;
}

static void the_first_of_any_range_is_found_at_any_place(void **state)
{
	(void)state;
	for (size_t to = 0; to <= MOST; to++)
		for (size_t from = 0; from <= to; from++)
			for (size_t at = 0; at <= MOST + 1; at++) {
				const size_t first = at < from ? from : at > to ? to : at;

				assert_int_equal(nt_search_first(from, to, i, i >= at), first);
			}
}

static void of_equal_values_the_first_is_found_or_what_follows_the_last(void **state)
{
	static const int value[] = {1, 3, 3, 3, 7};
	const size_t n = sizeof(value) / sizeof(value[0]);

	(void)state;
	assert_int_equal(nt_search_first(0, n, i, value[i] >= 3), 1);
	assert_int_equal(nt_search_first(0, n, i, value[i] > 3), 4);
	assert_int_equal(nt_search_first(0, n, i, value[i] >= 0), 0);
	assert_int_equal(nt_search_first(0, n, i, value[i] > 7), n);
}

static void a_range_is_halved_and_nothing_outside_it_is_looked_at(void **state)
{
	const uint32_t to = 1U << 20;

	(void)state;
	for (uint32_t at = 0; at <= to; at += to / 64) {
		asked = 0;
		assert_int_equal(nt_search_first(0, to, i, counted(i >= at)), at);
		assert_in_range(asked, 20, 21);
	}
	asked = 0;
	assert_int_equal(nt_search_first(to, to, i, counted(true)), to);
	assert_int_equal(asked, 0);
}

static void the_sum_of_two_large_indices_does_not_overflow(void **state)
{
	const uint32_t most = UINT32_MAX;

	(void)state;
	assert_int_equal(sizeof(nt_search_first(0, most, i, true)), sizeof(most));
	assert_int_equal(nt_search_first(0, most, i, i >= UINT32_MAX - 1), UINT32_MAX - 1);
	assert_int_equal(nt_search_first(UINT32_MAX - 3, most, i, false), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_any_range_is_found_at_any_place),
		cmocka_unit_test(of_equal_values_the_first_is_found_or_what_follows_the_last),
		cmocka_unit_test(a_range_is_halved_and_nothing_outside_it_is_looked_at),
		cmocka_unit_test(the_sum_of_two_large_indices_does_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
