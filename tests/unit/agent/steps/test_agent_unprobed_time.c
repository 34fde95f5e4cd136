/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/steps/unprobed_time.h"

#define MPI_CODE 0x7f0000000000ULL
#define PROGRAM  0x400000ULL

struct thread {
	struct nt_unprobed_time time;
	struct nt_mpi_code code;
	struct nt_unprobed_finding finding;
	uint64_t now_ns, starts;
	uint32_t asked, found;
};

static void begin(struct thread *thread)
{
	*thread = (struct thread){.now_ns = 100 * NT_SECOND};
	nt_mpi_code_add(&thread->code, MPI_CODE, MPI_CODE + 0x100000);
}

/* A walk a second. ip 0: inside a probed call. code: NULL if it cannot be read. */
static void walk(struct thread *thread, uint64_t ip, uint64_t starts,
		 const struct nt_mpi_code *code)
{
	struct nt_unprobed_time *time = &thread->time;

	thread->now_ns += NT_SECOND;
	thread->starts += starts;
	if (!ip) {
		nt_unprobed_time_inside(time, thread->starts, thread->now_ns);
		return;
	}
	if (!nt_unprobed_time_outside(time, ip, thread->starts, thread->now_ns))
		return;
	thread->asked++;
	thread->found += nt_unprobed_time_judge(time, code, thread->now_ns, &thread->finding);
}

/* Walks over so many seconds: this part of each hundred finds it in MPI's code. */
static void spend(struct thread *thread, int seconds, uint32_t percent, uint64_t starts)
{
	uint32_t sum = 0;

	for (int i = 0; i < seconds; i++) {
		uint64_t place = PROGRAM;

		sum += percent;
		if (sum >= 100) {
			sum -= 100;
			place = MPI_CODE;
		}
		walk(thread, place + 16 * (uint64_t)(i % 1000 + 1), starts, &thread->code);
	}
}

static void a_rank_that_waits_outside_of_probed_calls_is_found_after_two_looks(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	spend(&thread, NT_UNPROBED_LOOKS * NT_UNPROBED_WALKS - 1, 40, 1);
	assert_int_equal(thread.found, 0);
	spend(&thread, 1, 40, 1);
	assert_int_equal(thread.found, 1);
	assert_in_range(thread.finding.percent, 36, 43);
	spend(&thread, 3600, 40, 1);
	assert_int_equal(thread.found, 1);
	assert_int_equal(thread.asked, NT_UNPROBED_LOOKS);
}

static void long_steps_are_not_found_and_seldom_looked_at(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	spend(&thread, 4 * 3600, 0, 1);
	assert_int_equal(thread.found, 0);
	/* 0.5, 1, 2, 4, 8 minutes of rest, then 16 for each look: of 240 minutes. */
	assert_in_range(thread.asked, 15, 20);
}

static void a_fifth_of_the_time_is_much_and_less_is_not(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	spend(&thread, 3600, 16, 1);
	assert_int_equal(thread.found, 0);
	begin(&thread);
	spend(&thread, 2 * NT_UNPROBED_WALKS, 24, 1);
	assert_int_equal(thread.found, 1);
}

static void a_phase_within_one_look_is_not_found(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	for (int i = 0; i < 20; i++) {
		spend(&thread, NT_UNPROBED_WALKS, 100, 0);
		spend(&thread, 1200, 0, 0);
	}
	assert_int_equal(thread.found, 0);
}

static void waits_in_probed_calls_are_not_unprobed(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	for (int i = 0; i < 3600; i++)
		walk(&thread, i % 6 ? 0 : MPI_CODE + 16 * (uint64_t)(i + 1), 5, &thread.code);
	assert_int_equal(thread.found, 0);
	assert_int_equal(thread.asked, 0);
}

static void a_rank_with_many_starts_is_not_asked_for(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	spend(&thread, 3600, 100, NT_UNPROBED_STARTS + 1);
	assert_int_equal(thread.asked, 0);
	spend(&thread, 3600, 100, NT_UNPROBED_STARTS - 1);
	assert_int_equal(thread.found, 1);
}

static void an_instruction_that_stays_the_same_says_nothing(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	for (int i = 0; i < 3600; i++)
		walk(&thread, MPI_CODE + 64, 0, &thread.code);
	assert_int_equal(thread.found, 0);
}

static void calls_that_are_not_observed_begin_the_look_anew(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	for (int i = 0; i < 100; i++) {
		spend(&thread, 2 * NT_UNPROBED_WALKS - 1, 100, 0);
		nt_unprobed_time_interrupt(&thread.time, 0);
	}
	assert_int_equal(thread.found, 0);
}

static void mappings_that_cannot_be_read_are_no_finding(void **state)
{
	struct thread thread;

	(void)state;
	begin(&thread);
	for (int i = 0; i < 3600; i++)
		walk(&thread, MPI_CODE + 16 * (uint64_t)(i + 1), 0, NULL);
	assert_true(thread.asked > 0);
	assert_int_equal(thread.found, 0);
}

static void an_answer_that_does_not_come_is_not_awaited_for_ever(void **state)
{
	struct thread thread;
	uint32_t asked = 0;

	(void)state;
	begin(&thread);
	for (int i = 0; i < 600; i++) {
		thread.now_ns += NT_SECOND;
		asked += nt_unprobed_time_outside(&thread.time, MPI_CODE + 16 * (uint64_t)(i + 1),
						  0, thread.now_ns);
	}
	assert_in_range(asked, 2, 5);
	/* A late answer belongs to no look. */
	nt_unprobed_time_interrupt(&thread.time, 0);
	assert_false(
		nt_unprobed_time_judge(&thread.time, &thread.code, thread.now_ns, &thread.finding));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_rank_that_waits_outside_of_probed_calls_is_found_after_two_looks),
		cmocka_unit_test(long_steps_are_not_found_and_seldom_looked_at),
		cmocka_unit_test(a_fifth_of_the_time_is_much_and_less_is_not),
		cmocka_unit_test(a_phase_within_one_look_is_not_found),
		cmocka_unit_test(waits_in_probed_calls_are_not_unprobed),
		cmocka_unit_test(a_rank_with_many_starts_is_not_asked_for),
		cmocka_unit_test(an_instruction_that_stays_the_same_says_nothing),
		cmocka_unit_test(calls_that_are_not_observed_begin_the_look_anew),
		cmocka_unit_test(mappings_that_cannot_be_read_are_no_finding),
		cmocka_unit_test(an_answer_that_does_not_come_is_not_awaited_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
