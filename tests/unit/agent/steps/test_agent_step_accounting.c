/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/step_accounting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct nt_accounting *fresh(void)
{
	struct nt_accounting *work = calloc(1, sizeof(*work));

	assert_non_null(work);
	return work;
}

static void own_work_of_a_blocking_rank_is_the_step_without_communication(void **state)
{
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	nt_accounting_boundary(work, 1000, 0, 7);
	nt_accounting_comm(work, 1000, 1100);
	nt_accounting_sync(work, 1300, 1700); /* the device, awaited */
	nt_accounting_comm(work, 1800, 1850);
	nt_accounting_boundary(work, 2000, 20, 8);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.number, 7);
	assert_int_equal(step.comm_ns, 150);
	assert_int_equal(step.own_ns, 850);
	assert_int_equal(step.own_blocked_ns, 400);
	assert_int_equal(step.blocked_ns, 400);
	assert_int_equal(step.host_ns, 450);
	assert_int_equal(step.launches, 20);
	assert_true(nt_accounting_is_covered(&step));
	assert_false(nt_accounting_next(work, &step));
	free(work);
}

static void the_step_before_the_first_boundary_is_not_told(void **state)
{
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	nt_accounting_comm(work, 100, 200);
	nt_accounting_boundary(work, 1000, 5, 1);
	assert_false(nt_accounting_next(work, &step));
	nt_accounting_boundary(work, 1500, 6, 2);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.own_ns, 500);
	assert_int_equal(step.launches, 1);
	free(work);
}

static void overlapping_calls_of_several_threads_count_once(void **state)
{
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	work->overlapping = true;
	nt_accounting_boundary(work, 1000, 0, 1);
	nt_accounting_comm(work, 1200, 1300);
	nt_accounting_comm(work, 1250, 1400);
	nt_accounting_comm(work, 1100, 1500); /* entered first, returned last */
	nt_accounting_boundary(work, 2000, 0, 2);
	assert_false(nt_accounting_next(work, &step)); /* a late one may still come */
	nt_accounting_comm(work, 1900, 2100);
	nt_accounting_boundary(work, 3000, 0, 3);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.comm_ns, 500);
	assert_int_equal(step.own_ns, 500);
	nt_accounting_settle(work, 3000 + 100000001);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.comm_ns, 100);
	free(work);
}

static void what_is_reported_after_its_step_was_measured_is_counted_as_late(void **state)
{
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	nt_accounting_boundary(work, 1000, 0, 1);
	nt_accounting_boundary(work, 2000, 0, 2);
	nt_accounting_comm(work, 1900, 2100);
	nt_accounting_boundary(work, 3000, 0, 3);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.comm_ns, 0);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.comm_ns, 100);
	assert_int_equal(work->late_ns, 100);
	free(work);
}

static void more_spans_than_fit_are_measured_early_and_exactly(void **state)
{
	enum { CALLS = 10 * NT_ACCOUNTING_SPANS };
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	nt_accounting_boundary(work, 1000, 0, 1);
	for (uint64_t i = 0; i < CALLS; i++) {
		nt_accounting_comm(work, 1000 + 100 * i, 1000 + 100 * i + 30);
		nt_accounting_sync(work, 1000 + 100 * i + 50, 1000 + 100 * i + 60);
	}
	nt_accounting_boundary(work, 1000 + 100 * CALLS, 0, 2);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.comm_ns, 30 * CALLS);
	assert_int_equal(step.blocked_ns, 10 * CALLS);
	assert_int_equal(step.own_ns, 70 * CALLS);
	assert_int_equal(work->late_ns, 0);
	free(work);
}

static void an_asynchronous_rank_owns_only_what_is_proven(void **state)
{
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	work->asynchronous = true;
	nt_accounting_boundary(work, 1000, 0, 1);
	nt_accounting_sync(work, 1000, 1100); /* waits for others */
	nt_accounting_sync(work, 1500, 1800); /* awaits its own */
	nt_accounting_own(work, 1100, 1800, 18, 1);
	nt_accounting_own(work, 1800, 1850, 0, 0);
	nt_accounting_boundary(work, 2000, 20, 2);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.own_ns, 750);
	assert_int_equal(step.own_blocked_ns, 300);
	assert_int_equal(step.blocked_ns, 400);
	assert_int_equal(step.host_ns, 600);
	assert_int_equal(step.covered_launches, 18);
	assert_int_equal(step.local_syncs, 1);
	assert_true(nt_accounting_is_covered(&step));
	free(work);
}

static void a_step_with_most_launches_outside_own_spans_does_not_hold(void **state)
{
	struct nt_accounting_step step = {
		.asynchronous = true, .launches = 100, .covered_launches = 49};

	(void)state;
	assert_false(nt_accounting_is_covered(&step));
	step.covered_launches = 50;
	assert_true(nt_accounting_is_covered(&step));
	step.asynchronous = false;
	step.covered_launches = 0;
	assert_true(nt_accounting_is_covered(&step));
}

static void blocking_calls_within_own_spans_are_not_own(void **state)
{
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	work->asynchronous = true;
	nt_accounting_boundary(work, 1000, 0, 1);
	nt_accounting_comm(work, 1200, 1300); /* MPI beside NCCL */
	nt_accounting_own(work, 1000, 1800, 1, 1);
	nt_accounting_boundary(work, 2000, 1, 2);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.own_ns, 700);
	free(work);
}

static void steps_that_nobody_fetches_are_counted(void **state)
{
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	for (uint64_t i = 1; i <= NT_ACCOUNTING_READY + 3; i++)
		nt_accounting_boundary(work, 1000 * i, 0, i);
	assert_int_equal(work->overrun, 2);
	for (int i = 0; i < NT_ACCOUNTING_READY; i++)
		assert_true(nt_accounting_next(work, &step));
	assert_false(nt_accounting_next(work, &step));
	free(work);
}

static void a_boundary_that_goes_back_in_time_is_none(void **state)
{
	struct nt_accounting *work = fresh();
	struct nt_accounting_step step;

	(void)state;
	nt_accounting_boundary(work, 1000, 0, 1);
	nt_accounting_boundary(work, 900, 0, 2);
	nt_accounting_boundary(work, 1000, 0, 2);
	assert_false(nt_accounting_next(work, &step));
	nt_accounting_reset(work);
	nt_accounting_boundary(work, 2000, 0, 3);
	nt_accounting_boundary(work, 2100, 0, 4);
	assert_true(nt_accounting_next(work, &step));
	assert_int_equal(step.own_ns, 100);
	assert_int_equal(step.number, 3);
	free(work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_work_of_a_blocking_rank_is_the_step_without_communication),
		cmocka_unit_test(the_step_before_the_first_boundary_is_not_told),
		cmocka_unit_test(overlapping_calls_of_several_threads_count_once),
		cmocka_unit_test(what_is_reported_after_its_step_was_measured_is_counted_as_late),
		cmocka_unit_test(more_spans_than_fit_are_measured_early_and_exactly),
		cmocka_unit_test(an_asynchronous_rank_owns_only_what_is_proven),
		cmocka_unit_test(a_step_with_most_launches_outside_own_spans_does_not_hold),
		cmocka_unit_test(blocking_calls_within_own_spans_are_not_own),
		cmocka_unit_test(steps_that_nobody_fetches_are_counted),
		cmocka_unit_test(a_boundary_that_goes_back_in_time_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
