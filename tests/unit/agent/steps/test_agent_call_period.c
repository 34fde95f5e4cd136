/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/call_period.h"

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
	uint32_t gap[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_call_period_find(gap, fill(gap, round, 1, 100), 10, &first), 0);
	assert_int_equal(first, UNTOUCHED);
}

static void the_long_distance_begins_the_round(void **state)
{
	static const uint32_t round[] = {5000, 5000, 30000, 5000};
	uint32_t gap[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_call_period_find(gap, fill(gap, round, 4, 8), 0, &first), 4);
	assert_int_equal(first, 2);
}

static void four_rounds_must_be_seen(void **state)
{
	static const uint32_t round[] = {30000, 1000, 1000};
	uint32_t gap[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_call_period_find(gap, fill(gap, round, 3, 3), 0, &first), 0);
	assert_int_equal(nt_call_period_find(gap, fill(gap, round, 3, 4), 0, &first), 3);
}

static void a_hint_needs_less_of_a_difference(void **state)
{
	static const uint32_t round[] = {12000, 6000, 6000, 6000};
	uint32_t gap[NT_CALL_PERIOD_GAPS], first = UNTOUCHED, count = fill(gap, round, 4, 10);

	(void)state;
	assert_int_equal(nt_call_period_find(gap, count, 0, &first), 0);
	assert_int_equal(nt_call_period_find(gap, count, 4, &first), 4);
	assert_int_equal(nt_call_period_find(gap, count, 5, &first), 0);
}

static void long_distances_at_random_places_are_no_rounds(void **state)
{
	uint32_t gap[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;
	uint64_t seed = 3;

	(void)state;
	for (uint32_t i = 0; i < NT_CALL_PERIOD_GAPS; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		gap[i] = (seed >> 33) % 4 ? 5000 : 40000;
	}
	assert_int_equal(nt_call_period_find(gap, NT_CALL_PERIOD_GAPS, 0, &first), 0);
}

static void one_pause_does_not_hide_the_rounds(void **state)
{
	static const uint32_t round[] = {30000, 4000, 4000, 4000};
	uint32_t gap[NT_CALL_PERIOD_GAPS], first = UNTOUCHED, count = fill(gap, round, 4, 12);

	(void)state;
	gap[21] = 60000000;
	assert_int_equal(nt_call_period_find(gap, count, 0, &first), 4);
	assert_int_equal(first, 0);
}

static void no_distances_and_zero_distances_are_no_rounds(void **state)
{
	uint32_t gap[NT_CALL_PERIOD_GAPS] = {0}, first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_call_period_find(gap, 0, 4, &first), 0);
	assert_int_equal(nt_call_period_find(gap, NT_CALL_PERIOD_GAPS, 4, &first), 0);
}

static void of_unequal_parts_the_whole_is_the_round(void **state)
{
	static const uint32_t round[] = {30000, 1000, 15000, 1000};
	uint32_t gap[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_call_period_find(gap, fill(gap, round, 4, 12), 0, &first), 4);
	assert_int_equal(first, 0);
}

static void idle_times_need_less_of_a_difference_and_more_rounds(void **state)
{
	static const uint32_t round[] = {12000, 6000, 6000, 6000};
	uint32_t idle[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_call_period_find_idle(idle, fill(idle, round, 4, 7), 0, &first), 0);
	assert_int_equal(nt_call_period_find_idle(idle, fill(idle, round, 4, 8), 0, &first), 4);
	assert_int_equal(first, 0);
}

static void counts_tell_their_rounds_soon(void **state)
{
	static const uint32_t round[] = {30, 31, 90, 30};
	uint32_t value[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_call_period_count(value, fill(value, round, 4, 2), true, &first), 0);
	assert_int_equal(nt_call_period_count(value, fill(value, round, 4, 3), true, &first), 4);
	assert_int_equal(first, 2);
}

static void the_longest_round_of_counts_is_told(void **state)
{
	uint32_t round[NT_CALL_PERIOD_LONGEST], value[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	for (uint32_t i = 0; i < NT_CALL_PERIOD_LONGEST; i++)
		round[i] = i == 7 ? 300 : 10;
	assert_int_equal(nt_call_period_count(value,
					      fill(value, round, NT_CALL_PERIOD_LONGEST,
						   NT_CALL_PERIOD_GAPS / NT_CALL_PERIOD_LONGEST),
					      true, &first),
			 NT_CALL_PERIOD_LONGEST);
	assert_int_equal(first, 7);
}

static void equal_counts_are_alike_and_none_tell_nothing(void **state)
{
	static const uint32_t equal[] = {500, 501, 499}, none[] = {0};
	uint32_t value[NT_CALL_PERIOD_GAPS], first = UNTOUCHED, count = fill(value, equal, 3, 80);

	(void)state;
	value[17] = 9000;
	assert_int_equal(nt_call_period_count(value, count, true, &first), 1);
	assert_int_equal(nt_call_period_count(value, fill(value, none, 1, 200), true, &first), 0);
	assert_int_equal(nt_call_period_count(value, 0, true, &first), 0);
	assert_int_equal(first, UNTOUCHED);
}

static void a_little_more_now_and_then_is_not_a_round_of_counts(void **state)
{
	static const uint32_t round[] = {500, 500, 500, 500, 500, 500, 500, 500, 500, 600};
	uint32_t value[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	assert_int_equal(nt_call_period_count(value, fill(value, round, 10, 25), true, &first), 1);
	assert_int_equal(first, UNTOUCHED);
}

/* Of 24 steps the last is followed by three forward passes, each a third of a step. */
static void an_evaluation_now_and_then_is_not_a_round_of_counts(void **state)
{
	uint32_t round[24], value[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;

	(void)state;
	for (uint32_t i = 0; i < 24; i++)
		round[i] = i == 5 ? 600 : 300;
	assert_int_equal(nt_call_period_count(value, fill(value, round, 24, 10), true, &first), 1);
	assert_int_equal(first, UNTOUCHED);
	/* Of what comes many a second one is longer by what ends the step. */
	assert_int_equal(nt_call_period_count(value, fill(value, round, 24, 10), false, &first),
			 24);
}

static void counts_at_random_tell_nothing(void **state)
{
	uint32_t value[NT_CALL_PERIOD_GAPS], first = UNTOUCHED;
	uint64_t seed = 5;

	(void)state;
	for (uint32_t i = 0; i < NT_CALL_PERIOD_GAPS; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		value[i] = (uint32_t)(seed >> 54);
	}
	assert_int_equal(nt_call_period_count(value, NT_CALL_PERIOD_GAPS, true, &first), 0);
	assert_int_equal(first, UNTOUCHED);
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
		cmocka_unit_test(of_unequal_parts_the_whole_is_the_round),
		cmocka_unit_test(idle_times_need_less_of_a_difference_and_more_rounds),
		cmocka_unit_test(counts_tell_their_rounds_soon),
		cmocka_unit_test(the_longest_round_of_counts_is_told),
		cmocka_unit_test(equal_counts_are_alike_and_none_tell_nothing),
		cmocka_unit_test(a_little_more_now_and_then_is_not_a_round_of_counts),
		cmocka_unit_test(an_evaluation_now_and_then_is_not_a_round_of_counts),
		cmocka_unit_test(counts_at_random_tell_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
