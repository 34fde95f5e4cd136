/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums of context switches that are observed in slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/system/slice_estimate.h"

#define MS 1000000ULL

static struct nt_slice_estimate estimate;
static struct nt_switch_sums sums; /* as the kernel side has them */
static uint64_t clock_ns; /* runs while switches are observed */
static struct nt_host_taker bank[NT_HOST_TAKERS]; /* as the kernel side has it */

static int make(void **state)
{
	(void)state;
	estimate = (struct nt_slice_estimate){0};
	sums = (struct nt_switch_sums){0};
	clock_ns = 7 * MS;
	memset(bank, 0, sizeof(bank));
	return 0;
}

static uint64_t read_first(uint64_t gap_ns)
{
	struct nt_switch_sums all = sums;

	nt_slice_estimate_add(&estimate, gap_ns, &all);
	return all.of[0];
}

static void take(void)
{
	nt_slice_estimate_take(&estimate, bank);
	memset(bank, 0, sizeof(bank));
}

static void begin(uint64_t gap_ns)
{
	take();
	nt_slice_estimate_begin(&estimate, &sums, gap_ns, clock_ns);
}

static void end(void)
{
	take();
	nt_slice_estimate_end(&estimate, &sums, clock_ns);
}

static void slice(uint64_t gap_ns, uint64_t grows, uint64_t slice_ns)
{
	begin(gap_ns);
	sums.of[0] += grows;
	clock_ns += slice_ns;
	end();
}

/* The reading of a window: the sum of all, and of one process. */
static uint64_t read_taken(uint64_t gap_ns, uint32_t tgid, uint64_t *ret_all)
{
	struct nt_taken taken;
	uint64_t ns = 0;

	take();
	nt_slice_estimate_read(&estimate, gap_ns, &taken);
	*ret_all = taken.ns;
	for (int i = 0; i < NT_HOST_TAKERS; i++)
		if (taken.taker[i].tgid == tgid)
			ns += taken.taker[i].ns;
	return ns;
}

static void charge(int place, uint32_t tgid, uint64_t ns)
{
	bank[place].tgid = tgid;
	bank[place].ns += ns;
	memcpy(bank[place].comm, "taker", sizeof("taker"));
}

static void before_the_first_slice_has_ended_nothing_is_added(void **state)
{
	(void)state;
	sums.of[0] = 7;
	begin(1000 * MS);
	assert_int_equal(read_first(500 * MS), 7);
}

static void between_slices_the_last_rate_goes_on(void **state)
{
	(void)state;
	sums.of[0] = 1000;
	slice(0, 30, 100 * MS);
	assert_int_equal(read_first(0), 1030);
	assert_int_equal(read_first(50 * MS), 1045);
	/* The next slice begins where the estimate stood. */
	begin(50 * MS);
	assert_int_equal(read_first(0), 1045);
	sums.of[0] += 80;
	clock_ns += 100 * MS;
	assert_int_equal(read_first(0), 1125);
	end();
	assert_int_equal(read_first(200 * MS), 1285);
}

static void sums_of_a_thread_that_has_ended_do_not_run_back(void **state)
{
	(void)state;
	sums.of[0] = 1000;
	begin(0);
	sums.of[0] = 0;
	clock_ns += 100 * MS;
	end();
	assert_int_equal(read_first(1000 * MS), 0);
}

/* It is observed for the rest of the slice alone, and its rate is that of the rest. */
static void a_thread_that_is_first_read_within_a_slice_has_the_rate_of_the_rest(void **state)
{
	(void)state;
	clock_ns += 800 * MS; /* of a slice of a second */
	sums.of[0] = 1000;
	nt_slice_estimate_reset(&estimate);
	begin(0);
	sums.of[0] += 60;
	clock_ns += 200 * MS;
	end();
	assert_int_equal(read_first(1000 * MS), 1060 + 300);
}

/* What is left of the slice is too short for a rate: there is none yet, or the one before goes on. */
static void a_slice_that_is_too_short_gives_no_rate(void **state)
{
	(void)state;
	slice(0, 40, NT_SLICE_LEAST_NS - 1);
	assert_int_equal(estimate.slice_ns, 0);
	assert_int_equal(read_first(1000 * MS), 40);
	slice(0, 30, 100 * MS);
	slice(0, 500, NT_SLICE_LEAST_NS - 1);
	assert_int_equal(read_first(100 * MS), 570 + 30);
}

static void who_took_the_cpu_goes_on_between_slices(void **state)
{
	uint64_t all;

	(void)state;
	begin(0);
	charge(0, 11, 30);
	charge(1, 12, 10);
	assert_int_equal(read_taken(0, 11, &all), 30); /* a window ends within the slice */
	assert_int_equal(all, 40);
	charge(0, 11, 20);
	clock_ns += 100 * MS;
	end();
	/* The slice: 50 and 10 in 100 ms. A window has what was seen, and its own part of the gap. */
	assert_int_equal(read_taken(200 * MS, 11, &all), 20 + 100);
	assert_int_equal(all, 20 + 100 + 20);
	assert_int_equal(read_taken(200 * MS, 11, &all), 0);
	assert_int_equal(read_taken(300 * MS, 12, &all), 10);
	assert_int_equal(all, 60);
	/* The rest of the gap is not lost with the next slice, and is not counted twice. */
	begin(500 * MS);
	charge(3, 11, 7);
	assert_int_equal(read_taken(0, 11, &all), 100 + 7);
	assert_int_equal(all, 120 + 7);
	clock_ns += 100 * MS;
	end();
	assert_int_equal(read_taken(100 * MS, 11, &all), 7);
	assert_int_equal(read_taken(200 * MS, 12, &all), 0);
}

static void without_slices_who_took_the_cpu_is_what_was_seen(void **state)
{
	uint64_t all;

	(void)state;
	for (int second = 0; second < 3; second++) {
		charge(0, 11, 30);
		clock_ns += 1000 * MS;
		begin(0);
	}
	nt_slice_estimate_reset(&estimate); /* another thread: of the process nothing is lost */
	assert_int_equal(read_taken(0, 11, &all), 90);
	assert_int_equal(all, 90);
	assert_int_equal(read_taken(0, 11, &all), 0);
}

/* Without room those with most stay, and the sum is that of all. */
static void of_many_that_took_the_cpu_those_with_most_are_kept(void **state)
{
	uint64_t all;

	(void)state;
	for (uint32_t i = 0; i < NT_HOST_TAKERS; i++)
		charge((int)i, 100 + i, 50 + i);
	take();
	charge(0, 200, 49); /* less than any */
	charge(1, 201, 60); /* more than the least */
	charge(2, 103, 5);
	take();
	assert_int_equal(read_taken(0, 201, &all), 60);
	assert_int_equal(all, 8 * 50 + 28 + 49 + 60 + 5);
	for (uint32_t i = 0; i < NT_HOST_TAKERS; i++)
		charge((int)i, 100 + i, 50 + i);
	take();
	charge(0, 200, 49);
	charge(1, 103, 5);
	assert_int_equal(read_taken(0, 200, &all), 0);
	assert_int_equal(all, 8 * 50 + 28 + 49 + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(before_the_first_slice_has_ended_nothing_is_added, make),
		cmocka_unit_test_setup(between_slices_the_last_rate_goes_on, make),
		cmocka_unit_test_setup(sums_of_a_thread_that_has_ended_do_not_run_back, make),
		cmocka_unit_test_setup(
			a_thread_that_is_first_read_within_a_slice_has_the_rate_of_the_rest, make),
		cmocka_unit_test_setup(a_slice_that_is_too_short_gives_no_rate, make),
		cmocka_unit_test_setup(who_took_the_cpu_goes_on_between_slices, make),
		cmocka_unit_test_setup(without_slices_who_took_the_cpu_is_what_was_seen, make),
		cmocka_unit_test_setup(of_many_that_took_the_cpu_those_with_most_are_kept, make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
