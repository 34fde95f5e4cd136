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

static enum nt_device_clock_result see(struct nt_device_clock *clock, uint64_t device,
				       uint64_t boot)
{
	return nt_device_clock_seen(clock, device, boot);
}

static void the_earliest_report_gives_the_distance(void **state)
{
	struct nt_device_clock clock = {0};

	(void)state;
	assert_int_equal(see(&clock, EPOCH, 100 * SECOND + 3 * MS), NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(nt_device_clock_boot(&clock, EPOCH), 100 * SECOND + 3 * MS);
	assert_int_equal(see(&clock, EPOCH + 10 * MS, 100 * SECOND + 11 * MS),
			 NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(see(&clock, EPOCH + 20 * MS, 100 * SECOND + 25 * MS),
			 NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(nt_device_clock_boot(&clock, EPOCH + 20 * MS), 100 * SECOND + 21 * MS);
}

static void a_device_may_be_behind_boot_time(void **state)
{
	struct nt_device_clock clock = {0};

	(void)state;
	assert_int_equal(see(&clock, 5 * SECOND, 100 * SECOND), NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(nt_device_clock_boot(&clock, 6 * SECOND), 101 * SECOND);
}

static void a_report_that_is_a_second_late_is_said_to_be(void **state)
{
	struct nt_device_clock clock = {0};

	(void)state;
	assert_int_equal(see(&clock, EPOCH, 100 * SECOND), NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(see(&clock, EPOCH + MS, 101 * SECOND + MS - 1), NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(see(&clock, EPOCH + MS, 101 * SECOND + MS), NT_DEVICE_CLOCK_LATE);
}

/* As on a host that was suspended: no reason to give up. */
static void a_host_that_stands_still_is_forgiven(void **state)
{
	struct nt_device_clock clock = {0};
	uint64_t at = 100 * SECOND;

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(see(&clock, EPOCH + at, at), NT_DEVICE_CLOCK_GOOD);
		at += SECOND;
		assert_int_equal(see(&clock, EPOCH + at, at), NT_DEVICE_CLOCK_GOOD);
		assert_int_equal(see(&clock, EPOCH + at + MS, at + 5 * SECOND),
				 NT_DEVICE_CLOCK_LATE);
		at += 6 * SECOND;
	}
	/* And one that stood still before its first report. */
	nt_device_clock_reset(&clock);
	assert_int_equal(see(&clock, EPOCH, 105 * SECOND), NT_DEVICE_CLOCK_GOOD);
	for (uint64_t i = 6; i < 60; i++)
		assert_int_equal(see(&clock, EPOCH + i * SECOND, (100 + i) * SECOND),
				 NT_DEVICE_CLOCK_GOOD);
}

/* `in` nanoseconds of boot time are `out` of the device: how long until that is noticed? */
static uint64_t noticed_after_ns(uint64_t in, uint64_t out)
{
	struct nt_device_clock clock = {0};

	for (uint64_t i = 0; i < 600; i++)
		if (see(&clock, EPOCH + i * 100 * MS / in * out, 100 * SECOND + i * 100 * MS) ==
		    NT_DEVICE_CLOCK_OTHER)
			return i * 100 * MS;
	return 0;
}

static void clocks_of_another_unit_are_noticed(void **state)
{
	(void)state;
	assert_int_equal(noticed_after_ns(10, 1), 4 * SECOND); /* ticks of 100 MHz */
	assert_int_equal(noticed_after_ns(1, 10), 4 * SECOND);
	assert_int_equal(noticed_after_ns(4, 5), 4 * SECOND);
	/* One that is slewed is none. */
	assert_int_equal(noticed_after_ns(1000, 1001), 0);
	assert_int_equal(noticed_after_ns(1000, 999), 0);
}

/* A device that is wrong may report anything; distances are modulo 2^64. */
static void any_number_may_be_reported(void **state)
{
	struct nt_device_clock clock = {0};
	uint64_t far = 1;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		far *= UINT64_C(6364136223846793005);
		(void)see(&clock, far, SECOND + i);
	}
	nt_device_clock_reset(&clock);
	assert_int_equal(see(&clock, UINT64_C(3) << 62, SECOND), NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(see(&clock, 0, SECOND + 1), NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(see(&clock, UINT64_C(1) << 62, SECOND + 2), NT_DEVICE_CLOCK_GOOD);
	assert_int_equal(nt_device_clock_boot(&clock, UINT64_C(1) << 62), SECOND + 2);
	assert_int_equal(see(&clock, 0, SECOND + 3), NT_DEVICE_CLOCK_LATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_earliest_report_gives_the_distance),
		cmocka_unit_test(a_device_may_be_behind_boot_time),
		cmocka_unit_test(a_report_that_is_a_second_late_is_said_to_be),
		cmocka_unit_test(a_host_that_stands_still_is_forgiven),
		cmocka_unit_test(clocks_of_another_unit_are_noticed),
		cmocka_unit_test(any_number_may_be_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
