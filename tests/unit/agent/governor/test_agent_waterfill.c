/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who is granted how much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/governor/waterfill.h"

static bool is_near(double a, double b)
{
	return a - b < 1e-6 && b - a < 1e-6;
}

static double granted_to(const struct nt_claim *claim, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (claim[i].data == name)
			return claim[i].granted;
	fail_msg("no claim of %s", name);
	return 0;
}

static void all_is_granted_that_there_is_room_for(void **state)
{
	static char a[] = "a", b[] = "b";
	struct nt_claim claim[] = {{.owner = 1, .wanted = 3, .data = a},
				   {.owner = 2, .wanted = 4, .data = b}};

	(void)state;
	assert_int_equal(nt_waterfill(claim, 2, 7), 0);
	assert_true(is_near(granted_to(claim, 2, a), 3));
	assert_true(is_near(granted_to(claim, 2, b), 4));
	assert_int_equal(nt_waterfill(claim, 0, 7), 0);
}

static void an_owner_of_many_does_not_get_more_for_it(void **state)
{
	static char few[] = "few";
	struct nt_claim claim[101];
	double sum = 0;

	(void)state;
	for (size_t i = 0; i < 100; i++)
		claim[i] = (struct nt_claim){.owner = 7, .wanted = 10};
	claim[100] = (struct nt_claim){.owner = 1, .wanted = 40, .data = few};
	assert_int_equal(nt_waterfill(claim, 101, 100), 0);
	assert_true(is_near(granted_to(claim, 101, few), 40));
	for (size_t i = 0; i < 101; i++) {
		sum += claim[i].granted;
		if (claim[i].owner == 7)
			assert_true(is_near(claim[i].granted, 0.6));
	}
	assert_true(is_near(sum, 100));
}

static void of_one_owner_the_small_ones_keep_all(void **state)
{
	static char small[] = "small", large[] = "large", larger[] = "larger";
	struct nt_claim claim[] = {{.owner = 1, .wanted = 50, .data = larger},
				   {.owner = 1, .wanted = 1, .data = small},
				   {.owner = 1, .wanted = 20, .data = large}};

	(void)state;
	assert_int_equal(nt_waterfill(claim, 3, 11), 0);
	assert_true(is_near(granted_to(claim, 3, small), 1));
	assert_true(is_near(granted_to(claim, 3, large), 5));
	assert_true(is_near(granted_to(claim, 3, larger), 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_granted_that_there_is_room_for),
		cmocka_unit_test(an_owner_of_many_does_not_get_more_for_it),
		cmocka_unit_test(of_one_owner_the_small_ones_keep_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
