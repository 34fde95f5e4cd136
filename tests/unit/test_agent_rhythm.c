/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rhythm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define UNTOUCHED 99

static uint32_t fill(uint32_t *gap, const uint32_t *round, uint32_t len, uint32_t rounds)
{
	for (uint32_t i = 0; i < len * rounds; i++)
		gap[i] = round[i % len];
	return len * rounds;
}

static void equal_distances_have_no_rounds(void **state)
{
	static const uint32_t round[] = {20000};
	uint32_t gap[NT_RHYTHM_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_rhythm_find(gap, fill(gap, round, 1, 100), 10, &first), 0);
	assert_int_equal(first, UNTOUCHED);
}

static void the_long_distance_begins_the_round(void **state)
{
	static const uint32_t round[] = {5000, 5000, 30000, 5000};
	uint32_t gap[NT_RHYTHM_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_rhythm_find(gap, fill(gap, round, 4, 8), 0, &first), 4);
	assert_int_equal(first, 2);
}

static void four_rounds_must_be_seen(void **state)
{
	static const uint32_t round[] = {30000, 1000, 1000};
	uint32_t gap[NT_RHYTHM_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_rhythm_find(gap, fill(gap, round, 3, 3), 0, &first), 0);
	assert_int_equal(nt_rhythm_find(gap, fill(gap, round, 3, 4), 0, &first), 3);
}

static void a_hint_needs_less_of_a_difference(void **state)
{
	static const uint32_t round[] = {12000, 6000, 6000, 6000};
	uint32_t gap[NT_RHYTHM_GAPS], first = UNTOUCHED, count = fill(gap, round, 4, 10);

	(void)state;
	assert_int_equal(nt_rhythm_find(gap, count, 0, &first), 0);
	assert_int_equal(nt_rhythm_find(gap, count, 4, &first), 4);
	assert_int_equal(nt_rhythm_find(gap, count, 5, &first), 0);
}

static void long_distances_at_random_places_are_no_rounds(void **state)
{
	uint32_t gap[NT_RHYTHM_GAPS], first = UNTOUCHED;
	uint64_t seed = 3;

	(void)state;
	for (uint32_t i = 0; i < NT_RHYTHM_GAPS; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		gap[i] = (seed >> 33) % 4 ? 5000 : 40000;
	}
	assert_int_equal(nt_rhythm_find(gap, NT_RHYTHM_GAPS, 0, &first), 0);
}

static void one_pause_does_not_hide_the_rounds(void **state)
{
	static const uint32_t round[] = {30000, 4000, 4000, 4000};
	uint32_t gap[NT_RHYTHM_GAPS], first = UNTOUCHED, count = fill(gap, round, 4, 12);

	(void)state;
	gap[21] = 60000000;
	assert_int_equal(nt_rhythm_find(gap, count, 0, &first), 4);
	assert_int_equal(first, 0);
}

static void no_distances_and_zero_distances_are_no_rounds(void **state)
{
	uint32_t gap[NT_RHYTHM_GAPS] = {0}, first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_rhythm_find(gap, 0, 4, &first), 0);
	assert_int_equal(nt_rhythm_find(gap, NT_RHYTHM_GAPS, 4, &first), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_distances_have_no_rounds),
		cmocka_unit_test(the_long_distance_begins_the_round),
		cmocka_unit_test(four_rounds_must_be_seen),
		cmocka_unit_test(a_hint_needs_less_of_a_difference),
		cmocka_unit_test(long_distances_at_random_places_are_no_rounds),
		cmocka_unit_test(one_pause_does_not_hide_the_rounds),
		cmocka_unit_test(no_distances_and_zero_distances_are_no_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
