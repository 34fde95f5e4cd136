/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums of context switches that are observed in slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/system/slice_estimate.h"

static struct nt_slice_estimate estimate;
static struct nt_switch_sums sums; /* as the kernel side has them */

static int make(void **state)
{
	(void)state;
	estimate = (struct nt_slice_estimate){0};
	sums = (struct nt_switch_sums){0};
	return 0;
}

static uint64_t read_first(uint64_t gap_ns)
{
	struct nt_switch_sums all = sums;

	nt_slice_estimate_add(&estimate, gap_ns, &all);
	return all.of[0];
}

static void slice(uint64_t gap_ns, uint64_t grows, uint64_t slice_ns)
{
	nt_slice_estimate_begin(&estimate, &sums, gap_ns);
	sums.of[0] += grows;
	nt_slice_estimate_end(&estimate, &sums, slice_ns);
}

static void before_the_first_slice_has_ended_nothing_is_added(void **state)
{
	(void)state;
	sums.of[0] = 7;
	nt_slice_estimate_begin(&estimate, &sums, 1000);
	assert_int_equal(read_first(500), 7);
}

static void between_slices_the_last_rate_goes_on(void **state)
{
	(void)state;
	sums.of[0] = 1000;
	slice(0, 30, 100);
	assert_int_equal(read_first(0), 1030);
	assert_int_equal(read_first(50), 1045);
	/* The next slice begins where the estimate stood. */
	nt_slice_estimate_begin(&estimate, &sums, 50);
	assert_int_equal(read_first(0), 1045);
	sums.of[0] += 80;
	assert_int_equal(read_first(0), 1125);
	nt_slice_estimate_end(&estimate, &sums, 100);
	assert_int_equal(read_first(200), 1285);
}

static void sums_of_a_thread_that_has_ended_do_not_run_back(void **state)
{
	(void)state;
	sums.of[0] = 1000;
	nt_slice_estimate_begin(&estimate, &sums, 0);
	sums.of[0] = 0;
	nt_slice_estimate_end(&estimate, &sums, 100);
	assert_int_equal(read_first(1000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(before_the_first_slice_has_ended_nothing_is_added, make),
		cmocka_unit_test_setup(between_slices_the_last_rate_goes_on, make),
		cmocka_unit_test_setup(sums_of_a_thread_that_has_ended_do_not_run_back, make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
