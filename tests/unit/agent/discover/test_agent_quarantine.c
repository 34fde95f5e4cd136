/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/discover/quarantine.h"
#include "common/system/clock.h"

enum {
	OWNER = 77,
	OTHER = 78,
	START = 5,
};

#define NOW_NS (1000 * NT_SECOND)

static struct nt_quarantine *quarantine;

static int begin(void **state)
{
	(void)state;
	return nt_quarantine_new(&quarantine);
}

static int end(void **state)
{
	(void)state;
	nt_quarantine_free(quarantine);
	return 0;
}

static bool holds(uint32_t pid, uint64_t owner, uint64_t now_ns)
{
	return nt_quarantine_holds(quarantine, pid, START, owner, now_ns);
}

static bool strike(uint32_t pid, uint64_t owner, uint64_t now_ns)
{
	return nt_quarantine_strike(quarantine, pid, START, owner, now_ns);
}

static struct nt_quarantine_stats stats(uint64_t now_ns)
{
	struct nt_quarantine_stats s;

	nt_quarantine_stats(quarantine, now_ns, &s);
	return s;
}

static void a_process_that_stalls_is_left_alone_and_no_other(void **state)
{
	(void)state;
	assert_true(nt_quarantine_is_empty(quarantine));
	assert_false(strike(1, OWNER, NOW_NS));
	assert_false(nt_quarantine_is_empty(quarantine));
	assert_true(holds(1, OWNER, NOW_NS));
	assert_false(holds(2, OWNER, NOW_NS));
	/* The same number, another process. */
	assert_false(nt_quarantine_holds(quarantine, 1, START + 1, OWNER, NOW_NS));
	assert_true(holds(1, OWNER, NOW_NS + NT_QUARANTINE_PROCESS_NS - 1));
	assert_false(holds(1, OWNER, NOW_NS + NT_QUARANTINE_PROCESS_NS));
}

static void every_time_lasts_twice_as_long_up_to_a_limit(void **state)
{
	uint64_t now_ns = NOW_NS, length_ns = NT_QUARANTINE_PROCESS_NS;

	(void)state;
	for (int i = 0; i < 12; i++) {
		(void)strike(1, 0, now_ns);
		assert_true(holds(1, 0, now_ns + length_ns - 1));
		assert_false(holds(1, 0, now_ns + length_ns));
		now_ns += length_ns;
		length_ns *= 2;
		if (length_ns > NT_QUARANTINE_PROCESS_MAX_NS)
			length_ns = NT_QUARANTINE_PROCESS_MAX_NS;
	}
}

static void an_owner_is_held_after_three_strikes_of_any_processes(void **state)
{
	(void)state;
	assert_false(strike(1, OWNER, NOW_NS));
	assert_false(strike(2, OWNER, NOW_NS));
	assert_false(holds(9, OWNER, NOW_NS));
	assert_true(strike(3, OWNER, NOW_NS));
	assert_true(holds(9, OWNER, NOW_NS));
	assert_false(holds(9, OTHER, NOW_NS));
	assert_false(holds(9, 0, NOW_NS));
	assert_false(holds(9, OWNER, NOW_NS + NT_QUARANTINE_OWNER_NS));
	assert_int_equal(stats(NOW_NS).owners, 1);
	assert_int_equal(stats(NOW_NS).processes, 3);
	assert_int_equal(stats(NOW_NS).strikes, 3);
	assert_int_equal(stats(NOW_NS + NT_QUARANTINE_OWNER_NS).owners, 0);
}

/* What one owner can take from the loop in an hour is bounded, whatever it starts. */
static void a_held_owner_needs_one_strike_to_be_held_again_for_longer(void **state)
{
	uint64_t now_ns = NOW_NS;
	uint32_t pid = 1, strikes = 0;

	(void)state;
	while (now_ns < NOW_NS + NT_HOUR) {
		if (holds(pid, OWNER, now_ns)) {
			now_ns += NT_SECOND;
			continue;
		}
		(void)strike(pid++, OWNER, now_ns);
		strikes++;
	}
	/* 3 at once, then after 1, 2, 4, 8, 16 and 32 minutes more. */
	assert_int_equal(strikes, 8);
}

static void strikes_are_forgotten_after_an_hour_of_none(void **state)
{
	uint64_t now_ns = NOW_NS + NT_QUARANTINE_FORGET_NS;

	(void)state;
	assert_false(strike(1, OWNER, NOW_NS));
	assert_false(strike(2, OWNER, NOW_NS));
	assert_false(strike(3, OWNER, now_ns));
	assert_false(strike(4, OWNER, now_ns));
	assert_true(strike(5, OWNER, now_ns));
}

static void short_waits_add_up_to_a_strike_within_a_minute(void **state)
{
	const uint64_t wait_ns = NT_QUARANTINE_SPEND_NS / 4;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_false(nt_quarantine_spend(quarantine, 1, START, OWNER, wait_ns, NOW_NS));
	/* A minute later they do not count any more. */
	for (int i = 0; i < 3; i++)
		assert_false(nt_quarantine_spend(quarantine, 1, START, OWNER, wait_ns,
						 NOW_NS + NT_MINUTE));
	assert_false(holds(1, OWNER, NOW_NS + NT_MINUTE));
	assert_true(
		nt_quarantine_spend(quarantine, 1, START, OWNER, wait_ns, NOW_NS + NT_MINUTE + 1));
	assert_true(holds(1, OWNER, NOW_NS + NT_MINUTE + 1));
}

static void what_was_postponed_comes_back_once_when_its_time_is_over(void **state)
{
	uint64_t start_ns = 0, over_ns = NOW_NS + NT_QUARANTINE_PROCESS_NS;
	uint32_t pid = 0;

	(void)state;
	(void)strike(1, OWNER, NOW_NS);
	nt_quarantine_postpone(quarantine, 1, START, OWNER, NOW_NS);
	assert_false(nt_quarantine_due(quarantine, over_ns - 1, &pid, &start_ns));
	assert_true(nt_quarantine_due(quarantine, over_ns, &pid, &start_ns));
	assert_int_equal(pid, 1);
	assert_int_equal(start_ns, START);
	assert_false(nt_quarantine_due(quarantine, over_ns, &pid, &start_ns));
}

static void what_was_postponed_for_its_owner_waits_for_that(void **state)
{
	uint64_t start_ns, over_ns = NOW_NS + NT_QUARANTINE_OWNER_NS;
	uint32_t pid = 0;

	(void)state;
	for (uint32_t i = 1; i <= 3; i++)
		(void)strike(i, OWNER, NOW_NS);
	nt_quarantine_postpone(quarantine, 9, START, OWNER, NOW_NS);
	assert_false(nt_quarantine_due(quarantine, over_ns - 1, &pid, &start_ns));
	assert_true(nt_quarantine_due(quarantine, over_ns, &pid, &start_ns));
	assert_int_equal(pid, 9);
}

static void at_the_cap_the_one_that_is_free_first_makes_room_and_is_counted(void **state)
{
	(void)state;
	for (uint32_t pid = 1; pid <= NT_QUARANTINE_PROCESSES + 1; pid++)
		(void)strike(pid, 0, NOW_NS + pid);
	assert_int_equal(stats(NOW_NS).processes, NT_QUARANTINE_PROCESSES);
	assert_int_equal(stats(NOW_NS).over_cap, 1);
	assert_false(holds(1, 0, NOW_NS + 2));
	assert_true(holds(2, 0, NOW_NS + 2));
	assert_true(holds(NT_QUARANTINE_PROCESSES + 1, 0, NOW_NS + 2));
	for (uint64_t owner = 1; owner <= NT_QUARANTINE_OWNERS + 1; owner++)
		(void)strike(1, owner, NOW_NS);
	assert_int_equal(stats(NOW_NS).over_cap, 3); /* process 1 anew, and an owner */
}

static void after_an_hour_nothing_is_left(void **state)
{
	uint64_t start_ns, late_ns = NOW_NS + 3 * NT_QUARANTINE_FORGET_NS;
	uint32_t pid;

	(void)state;
	for (uint32_t i = 1; i <= 4; i++)
		(void)strike(i, OWNER, NOW_NS);
	assert_false(nt_quarantine_due(quarantine, late_ns, &pid, &start_ns));
	assert_true(nt_quarantine_is_empty(quarantine));
}

static void at_the_cap_an_owner_with_few_keeps_what_was_postponed(void **state)
{
	uint64_t start_ns;
	uint32_t pid;

	(void)state;
	nt_quarantine_postpone(quarantine, 1, START, OTHER, NOW_NS);
	for (uint32_t i = 2; i <= NT_QUARANTINE_PROCESSES; i++)
		(void)strike(i, OWNER, NOW_NS);
	assert_int_equal(stats(NOW_NS).over_cap, 0);
	for (uint32_t i = 1; i <= NT_QUARANTINE_PROCESSES; i++)
		nt_quarantine_postpone(quarantine, 100000 + i, START, OWNER, NOW_NS);
	assert_int_equal(stats(NOW_NS).over_cap, NT_QUARANTINE_PROCESSES);
	/* All but the first of these have taken the place of another one of them. */
	assert_int_equal(stats(NOW_NS).lost, NT_QUARANTINE_PROCESSES - 1);
	assert_true(nt_quarantine_due(quarantine, NOW_NS, &pid, &start_ns));
	assert_int_equal(pid, 1);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(a_process_that_stalls_is_left_alone_and_no_other),
		WITH(every_time_lasts_twice_as_long_up_to_a_limit),
		WITH(an_owner_is_held_after_three_strikes_of_any_processes),
		WITH(a_held_owner_needs_one_strike_to_be_held_again_for_longer),
		WITH(strikes_are_forgotten_after_an_hour_of_none),
		WITH(short_waits_add_up_to_a_strike_within_a_minute),
		WITH(what_was_postponed_comes_back_once_when_its_time_is_over),
		WITH(what_was_postponed_for_its_owner_waits_for_that),
		WITH(at_the_cap_the_one_that_is_free_first_makes_room_and_is_counted),
		WITH(at_the_cap_an_owner_with_few_keeps_what_was_postponed),
		WITH(after_an_hour_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
