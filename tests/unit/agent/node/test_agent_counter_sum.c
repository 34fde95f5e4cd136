/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/counter_sum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* NULL: the device is not in the reading. */
static void read_two(struct nt_counter_sum *sum, const uint64_t *a, const uint64_t *b)
{
	uint64_t value[NT_COUNTER_SUM_VALUES] = {0};

	nt_counter_sum_begin(sum);
	if (a) {
		value[0] = *a;
		(void)nt_counter_sum_add(sum, "a", 1, value, NULL);
	}
	if (b) {
		value[0] = *b;
		(void)nt_counter_sum_add(sum, "b", 1, value, NULL);
	}
	nt_counter_sum_end(sum);
}

#define OF(value) (&(const uint64_t){value})

static void the_first_reading_is_taken_whole_and_then_the_growth(void **state)
{
	static struct nt_counter_sum sum;

	(void)state;
	read_two(&sum, OF(100), OF(10));
	assert_int_equal(sum.total[0], 110);
	read_two(&sum, OF(105), OF(11));
	assert_int_equal(sum.total[0], 116);
}

static void devices_that_come_and_go_do_not_move_the_sum(void **state)
{
	static struct nt_counter_sum sum;

	(void)state;
	read_two(&sum, OF(100), NULL);
	read_two(&sum, OF(100), OF(5000)); /* comes */
	assert_int_equal(sum.total[0], 100);
	read_two(&sum, NULL, OF(5001)); /* goes */
	assert_int_equal(sum.total[0], 101);
	read_two(&sum, OF(200), OF(5001)); /* comes back */
	assert_int_equal(sum.total[0], 101);
	read_two(&sum, OF(201), OF(5001));
	assert_int_equal(sum.total[0], 102);
	read_two(&sum, NULL, NULL);
	assert_int_equal(sum.devices, 0);
	assert_int_equal(sum.total[0], 102);
}

static void a_reset_adds_nothing_and_a_wrap_is_counted_on(void **state)
{
	static struct nt_counter_sum sum, wrapping = {.wraps = 1};

	(void)state;
	read_two(&sum, OF(UINT32_MAX), NULL);
	read_two(&sum, OF(9), NULL);
	assert_int_equal(sum.total[0], UINT32_MAX);
	read_two(&wrapping, OF(UINT32_MAX), NULL);
	read_two(&wrapping, OF(9), NULL);
	assert_true(wrapping.total[0] == UINT32_MAX + UINT64_C(10));
	/* Too far for a wrap: a reset. */
	read_two(&wrapping, OF(1000), NULL);
	read_two(&wrapping, OF(3), NULL);
	assert_true(wrapping.total[0] == UINT32_MAX + UINT64_C(10) + 991);
	/* The sum of two counters, of which one wraps. */
	read_two(&wrapping, OF(3 + (UINT64_C(7) << 32)), NULL);
	read_two(&wrapping, OF(8 + (UINT64_C(6) << 32)), NULL);
	assert_true(wrapping.total[0] == UINT32_MAX + UINT64_C(10) + 991 + (UINT64_C(7) << 32) + 5);
}

static void sums_stay_at_the_largest_number(void **state)
{
	static struct nt_counter_sum sum;

	(void)state;
	read_two(&sum, OF(UINT64_MAX), OF(5));
	assert_true(sum.total[0] == UINT64_MAX);
	read_two(&sum, OF(UINT64_MAX), OF(50));
	assert_true(sum.total[0] == UINT64_MAX);
}

static void devices_over_the_cap_are_left_out_and_counted(void **state)
{
	static struct nt_counter_sum sum;
	const uint64_t value[NT_COUNTER_SUM_VALUES] = {1};
	char name[16];

	(void)state;
	nt_counter_sum_begin(&sum);
	for (int i = 0; i < NT_COUNTER_SUM_DEVICES + 3; i++) {
		const int len = snprintf(name, sizeof(name), "d%d", i);

		(void)nt_counter_sum_add(&sum, name, (size_t)len, value, NULL);
	}
	nt_counter_sum_end(&sum);
	assert_int_equal(sum.devices, NT_COUNTER_SUM_DEVICES);
	assert_int_equal(sum.total[0], NT_COUNTER_SUM_DEVICES);
	assert_int_equal(sum.over_cap, 3);
}

/* A name that is cut is one device, whichever of those it stands for is read. */
static void a_name_counts_once_in_a_reading(void **state)
{
	static struct nt_counter_sum sum;
	const uint64_t value[NT_COUNTER_SUM_VALUES] = {1};
	char name[2 * NT_COUNTER_SUM_NAME];

	(void)state;
	memset(name, 'x', sizeof(name));
	for (int i = 0; i < 2; i++) {
		nt_counter_sum_begin(&sum);
		(void)nt_counter_sum_add(&sum, name, sizeof(name), value, NULL);
		assert_false(nt_counter_sum_add(&sum, name, sizeof(name) - 1, value, NULL));
		nt_counter_sum_end(&sum);
	}
	assert_int_equal(sum.devices, 1);
	assert_int_equal(sum.total[0], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_reading_is_taken_whole_and_then_the_growth),
		cmocka_unit_test(devices_that_come_and_go_do_not_move_the_sum),
		cmocka_unit_test(a_reset_adds_nothing_and_a_wrap_is_counted_on),
		cmocka_unit_test(sums_stay_at_the_largest_number),
		cmocka_unit_test(devices_over_the_cap_are_left_out_and_counted),
		cmocka_unit_test(a_name_counts_once_in_a_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
