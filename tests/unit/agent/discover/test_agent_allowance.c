/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/discover/allowance.h"
#include "common/system/clock.h"

enum {
	OWNER = 77,
	OTHER = 78,
	START = 5,
};

#define NOW_NS  (1000 * NT_SECOND)
#define READ_NS (50 * 1000ULL)

static struct nt_allowance *allowance;

static int begin(void **state)
{
	(void)state;
	return nt_allowance_new(&allowance);
}

static int end(void **state)
{
	(void)state;
	nt_allowance_free(allowance);
	return 0;
}

static bool has(uint32_t pid, uint64_t owner, uint64_t now_ns)
{
	return nt_allowance_has(allowance, NT_ALLOWANCE_CALLS, pid, START, owner, now_ns);
}

static void spend(uint32_t pid, uint64_t owner, uint64_t spent_ns, uint64_t now_ns)
{
	nt_allowance_spend(allowance, NT_ALLOWANCE_CALLS, pid, START, owner, spent_ns, now_ns);
}

/* Reads for so long as it may, without a pause. Returns how long that was. */
static uint64_t read_greedily(uint32_t pid, uint64_t owner, uint64_t *now_ns, uint64_t for_ns)
{
	const uint64_t end_ns = *now_ns + for_ns;
	uint64_t spent_ns = 0;

	for (; *now_ns < end_ns; *now_ns += READ_NS) {
		if (!has(pid, owner, *now_ns))
			continue;
		spend(pid, owner, READ_NS, *now_ns);
		spent_ns += READ_NS;
	}
	return spent_ns;
}

static void a_process_has_a_hundredth_of_the_time_beyond_what_it_has_in_advance(void **state)
{
	uint64_t now_ns = NOW_NS;

	(void)state;
	assert_in_range(read_greedily(1, OWNER, &now_ns, NT_SECOND), NT_ALLOWANCE_PROCESS_NS,
			NT_ALLOWANCE_PROCESS_NS + 11 * NT_MILLISECOND);
	assert_false(has(1, OWNER, now_ns));
	assert_in_range(read_greedily(1, OWNER, &now_ns, 10 * NT_SECOND), 99 * NT_MILLISECOND,
			101 * NT_MILLISECOND);
	/* Another process of the owner, and another one of the same number. */
	assert_true(has(2, OWNER, now_ns));
	assert_true(nt_allowance_has(allowance, NT_ALLOWANCE_CALLS, 1, START + 1, OWNER, now_ns));
	/* In time all is paid. */
	now_ns += 100 * NT_SECOND;
	assert_in_range(read_greedily(1, OWNER, &now_ns, NT_SECOND), NT_ALLOWANCE_PROCESS_NS,
			NT_ALLOWANCE_PROCESS_NS + 11 * NT_MILLISECOND);
}

static void many_processes_of_an_owner_have_no_more_than_the_owner(void **state)
{
	uint64_t spent_ns = 0;

	(void)state;
	for (uint32_t pid = 1; pid <= 4 * NT_ALLOWANCE_PROCESSES; pid++) {
		if (!has(pid, OWNER, NOW_NS))
			continue;
		spend(pid, OWNER, READ_NS, NOW_NS);
		spent_ns += READ_NS;
	}
	for (uint32_t pid = 1; pid <= 4 * NT_ALLOWANCE_PROCESSES; pid++) {
		for (int i = 0; i < 10 && has(pid, OWNER, NOW_NS); i++) {
			spend(pid, OWNER, READ_NS, NOW_NS);
			spent_ns += READ_NS;
		}
	}
	assert_int_equal(spent_ns, NT_ALLOWANCE_OWNER_NS);
	assert_true(nt_allowance_over_cap(allowance) > 0);
	assert_false(has(9999, OWNER, NOW_NS));
	assert_true(has(9999, OTHER, NOW_NS));
	assert_true(has(9999, OWNER, NOW_NS + NT_MILLISECOND));
}

static void two_hundred_ranks_that_start_together_are_all_read(void **state)
{
	(void)state;
	for (uint32_t pid = 1; pid <= 200; pid++) {
		for (int i = 0; i < 20; i++) {
			assert_true(has(pid, OWNER, NOW_NS));
			spend(pid, OWNER, READ_NS, NOW_NS);
		}
	}
}

static void one_long_read_is_paid_within_bounds(void **state)
{
	(void)state;
	spend(1, OWNER, 3600 * NT_SECOND, NOW_NS);
	assert_false(has(1, OWNER, NOW_NS));
	assert_true(has(1, OWNER, NOW_NS + 21 * NT_SECOND));
}

static void what_is_read_for_windows_is_an_account_of_its_own(void **state)
{
	(void)state;
	nt_allowance_spend(allowance, NT_ALLOWANCE_WINDOWS, 1, START, OWNER, NT_ALLOWANCE_OWNER_NS,
			   NOW_NS);
	assert_false(nt_allowance_has(allowance, NT_ALLOWANCE_WINDOWS, 1, START, OWNER, NOW_NS));
	assert_true(nt_allowance_has(allowance, NT_ALLOWANCE_WINDOWS, 1, START, OTHER, NOW_NS));
	assert_true(has(1, OWNER, NOW_NS));
	assert_true(nt_allowance_has(allowance, NT_ALLOWANCE_WINDOWS, 1, START, OWNER,
				     NOW_NS + NT_MILLISECOND));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(a_process_has_a_hundredth_of_the_time_beyond_what_it_has_in_advance),
		WITH(many_processes_of_an_owner_have_no_more_than_the_owner),
		WITH(two_hundred_ranks_that_start_together_are_all_read),
		WITH(one_long_read_is_paid_within_bounds),
		WITH(what_is_read_for_windows_is_an_account_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
