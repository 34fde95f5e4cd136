/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shares of the tables of threads and helpers (bpf/host_share.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/system/system_impl.h"

enum {
	OWNERS = 8,
	OWN = NT_HOST_OWN_THREADS,
	OPEN = NT_HOST_OPEN_THREADS,
	MANY = 2 * NT_HOST_THREADS,
	IN_FLIGHT = -1, /* another CPU has given back at 0, and puts it right at once */
};

static uint32_t count[NT_HOST_PROCESSES], of_owner[NT_HOST_PROCESSES], of_all;

static int reset(void **state)
{
	(void)state;
	for (int i = 0; i < NT_HOST_PROCESSES; i++)
		count[i] = of_owner[i] = 0;
	of_all = 0;
	return 0;
}

/* How many of so many places the rank is given. */
static uint32_t take(uint32_t rank, uint32_t owner, uint32_t places)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < places; i++)
		taken += (uint32_t)nt_host_take(&count[rank], OWN, &of_owner[owner], &of_all, OPEN);
	return taken;
}

static void give(uint32_t rank, uint32_t owner, uint32_t places)
{
	for (uint32_t i = 0; i < places; i++)
		nt_host_give(&count[rank], OWN, &of_owner[owner], &of_all);
}

static void one_owner_takes_half_of_the_open_places(void **state)
{
	(void)state;
	assert_int_equal(take(0, 0, MANY), OWN + OPEN / 2);
	assert_int_equal(take(1, 0, MANY), OWN); /* another rank of it */
	assert_int_equal(take(2, 1, MANY), OWN + OPEN / 4);
}

static void whatever_others_take_each_rank_has_its_own(void **state)
{
	uint32_t sum = 0;

	(void)state;
	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++) {
		const uint32_t taken = take(i, i, NT_HOST_THREADS);

		assert_true(taken >= OWN);
		sum += taken;
	}
	assert_in_range(sum, NT_HOST_THREADS / 2, NT_HOST_THREADS);
	assert_true(of_all <= OPEN);
}

static void what_is_given_back_is_free_again(void **state)
{
	uint32_t first;

	(void)state;
	first = take(0, 0, MANY);
	give(0, 0, MANY); /* more than it has */
	assert_int_equal(count[0] + of_owner[0] + of_all, 0);
	assert_int_equal(take(1, 1, MANY), first);
	for (uint32_t i = 2; i < OWNERS; i++)
		(void)take(i, i, MANY);
	give(1, 1, 100);
	assert_true(take(OWNERS, OWNERS, OWN + 50) == OWN + 50);
}

/* Meanwhile the count is below 0, and must not be read as a large one. */
static void two_that_give_back_at_once_leave_no_count_below_0(void **state)
{
	(void)state;
	count[0] = (uint32_t)IN_FLIGHT;
	assert_int_equal(nt_host_taken(&count[0]), 0);
	give(0, 0, 1);
	assert_int_equal(count[0], (uint32_t)IN_FLIGHT);
	assert_int_equal(of_owner[0] + of_all, 0);
	assert_int_equal(take(0, 0, 1), 1);
	count[0] -= (uint32_t)IN_FLIGHT;
	assert_int_equal(count[0], 1);
	assert_int_equal(of_owner[0] + of_all, 0); /* it is one of its own */
	give(0, 0, 1);
	assert_int_equal(count[0], 0);
}

/* An open place was given back before it was counted as taken. */
static void open_places_below_0_are_free(void **state)
{
	(void)state;
	(void)take(0, 0, OWN);
	of_owner[0] = of_all = (uint32_t)IN_FLIGHT;
	assert_int_equal(take(0, 0, 1), 1);
	assert_int_equal(count[0], OWN + 1);
	assert_int_equal(of_owner[0], 0);
	assert_int_equal(of_all, 0);
}

/* ---- what has no place ------------------------------------------------------------------------ */

static void what_is_left_out_is_counted_once_however_often_it_is_listed(void **state)
{
	__u64 over_cap = 3; /* of them the kernel side has counted forks */

	(void)state;
	nt_host_left_out(&over_cap, 10);
	assert_int_equal(over_cap, 10);
	nt_host_left_out(&over_cap, 10);
	nt_host_left_out(&over_cap, 4);
	assert_int_equal(over_cap, 10);
	nt_host_left_out(&over_cap, 11);
	assert_int_equal(over_cap, 11);
}

static void a_forked_process_is_known_by_its_rank_and_its_start(void **state)
{
	const struct nt_host_member helper = {.slot = 3, .is_helper = 1, .start_ns = 12345678901},
				    rank = {.slot = 3};

	(void)state;
	assert_false(nt_system_members_is_stale(&helper, 3, 12340000000)); /* in ticks */
	assert_false(nt_system_members_is_stale(&helper, 3, 0));
	assert_true(nt_system_members_is_stale(&helper, 3, 12350000000));
	assert_true(nt_system_members_is_stale(&helper, 4, 12340000000));
	assert_false(nt_system_members_is_stale(&rank, 4, 12350000000)); /* it left no member */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_owner_takes_half_of_the_open_places, reset),
		cmocka_unit_test_setup(whatever_others_take_each_rank_has_its_own, reset),
		cmocka_unit_test_setup(what_is_given_back_is_free_again, reset),
		cmocka_unit_test_setup(two_that_give_back_at_once_leave_no_count_below_0, reset),
		cmocka_unit_test_setup(open_places_below_0_are_free, reset),
		cmocka_unit_test(what_is_left_out_is_counted_once_however_often_it_is_listed),
		cmocka_unit_test(a_forked_process_is_known_by_its_rank_and_its_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
