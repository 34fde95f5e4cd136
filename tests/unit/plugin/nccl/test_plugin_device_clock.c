/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The device's clock as boot time, from reports that are late by more or less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plugin/nccl/device_clock.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define EPOCH  (UINT64_C(1700000000) * SECOND)

static void the_earliest_report_gives_the_distance(void **state)
{
	struct nt_device_clock clock = {0};

	(void)state;
	assert_true(nt_device_clock_seen(&clock, EPOCH, 100 * SECOND + 3 * MS));
	assert_int_equal(nt_device_clock_boot(&clock, EPOCH), 100 * SECOND + 3 * MS);
	assert_true(nt_device_clock_seen(&clock, EPOCH + 10 * MS, 100 * SECOND + 11 * MS));
	assert_true(nt_device_clock_seen(&clock, EPOCH + 20 * MS, 100 * SECOND + 25 * MS));
	assert_int_equal(nt_device_clock_boot(&clock, EPOCH + 20 * MS), 100 * SECOND + 21 * MS);
}

static void a_device_may_be_behind_boot_time(void **state)
{
	struct nt_device_clock clock = {0};

	(void)state;
	assert_true(nt_device_clock_seen(&clock, 5 * SECOND, 100 * SECOND));
	assert_int_equal(nt_device_clock_boot(&clock, 6 * SECOND), 101 * SECOND);
}

static void a_report_that_is_a_second_late_is_of_something_else(void **state)
{
	struct nt_device_clock clock = {0};

	(void)state;
	assert_true(nt_device_clock_seen(&clock, EPOCH, 100 * SECOND));
	assert_true(nt_device_clock_seen(&clock, EPOCH + MS, 101 * SECOND + MS - 1));
	assert_false(nt_device_clock_seen(&clock, EPOCH + MS, 101 * SECOND + MS));
}

static void clocks_of_another_unit_are_noticed(void **state)
{
	struct nt_device_clock clock = {0};

	(void)state;
	/* Ticks of 10 ns, by 2 s at the latest. */
	assert_true(nt_device_clock_seen(&clock, EPOCH, 100 * SECOND));
	assert_false(nt_device_clock_seen(&clock, EPOCH + 2 * SECOND / 10, 102 * SECOND));
	/* One that is slewed by a thousandth is none. */
	nt_device_clock_reset(&clock);
	assert_true(nt_device_clock_seen(&clock, EPOCH, 100 * SECOND));
	for (uint64_t i = 1; i < 60; i++)
		assert_true(nt_device_clock_seen(&clock, EPOCH + i * (SECOND + MS),
						 (100 + i) * SECOND));
	/* Ten times too fast. */
	nt_device_clock_reset(&clock);
	assert_true(nt_device_clock_seen(&clock, EPOCH, 100 * SECOND));
	assert_false(nt_device_clock_seen(&clock, EPOCH + 20 * SECOND, 102 * SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_earliest_report_gives_the_distance),
		cmocka_unit_test(a_device_may_be_behind_boot_time),
		cmocka_unit_test(a_report_that_is_a_second_late_is_of_something_else),
		cmocka_unit_test(clocks_of_another_unit_are_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
