/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/stream_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	COMPUTE = 0x100,
	REDUCE = 0x200,
	OTHER = 0x300,
	COMM = 0x800, /* communicators */
	READY = 0x1000, /* events */
	REDUCED = 0x2000,
};

/* One rank between two boundaries, 0 and `end`. */
struct rank {
	struct nt_stream_order *order;
	struct nt_accounting *work;
};

static void start(struct rank *r)
{
	r->work = calloc(1, sizeof(*r->work));
	assert_non_null(r->work);
	r->work->asynchronous = true;
	assert_int_equal(nt_stream_order_new(&r->order), 0);
	nt_accounting_boundary(r->work, 1, 0, 1);
}

static struct nt_accounting_step finish(struct rank *r, uint64_t end_ns, uint64_t launches)
{
	struct nt_accounting_step step = {0};

	nt_accounting_boundary(r->work, end_ns, launches, 2);
	assert_true(nt_accounting_next(r->work, &step));
	nt_stream_order_free(r->order);
	free(r->work);
	return step;
}

static void enqueue(struct rank *r, uint64_t stream, uint64_t ns, uint64_t launches)
{
	nt_stream_order_enqueue(r->order, r->work, stream, stream, ns, launches);
}

static void await(struct rank *r, enum nt_stream_order_sync what, uint64_t handle,
		  uint64_t entry_ns, uint64_t ret_ns, uint64_t launches)
{
	nt_accounting_sync(r->work, entry_ns, ret_ns);
	nt_stream_order_sync(r->order, r->work, what, handle, ret_ns, launches);
}

/* As the step before left it: its communication awaited at 1000, after 10 launches. */
static void begin_clear(struct rank *r)
{
	start(r);
	enqueue(r, COMPUTE, 500, 10);
	await(r, NT_STREAM_ORDER_STREAM, COMPUTE, 600, 1000, 10);
	assert_true(nt_stream_order_is_clear(r->order));
}

static void a_local_check_before_the_reduction_is_own_work(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 2000, 4000, 110);
	enqueue(&r, REDUCE, 4100, 110);
	nt_stream_order_record(r.order, REDUCED, REDUCE);
	nt_stream_order_wait(r.order, COMPUTE, REDUCED);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 4200, 9000, 111); /* waits for others */
	step = finish(&r, 9000, 111);
	assert_int_equal(step.own_ns, 3100);
	assert_int_equal(step.own_blocked_ns, 2000);
	assert_int_equal(step.covered_launches, 100);
	assert_int_equal(step.local_syncs, 1);
	assert_true(nt_accounting_is_covered(&step));
}

/* The program asks whether the reduction has ended, and does not wait for it, as it has. */
static void a_later_call_of_the_communicator_tells_that_the_one_before_has_ended(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	nt_stream_order_enqueue(r.order, r.work, COMM, REDUCE, 1000, 10);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 1100, 1200, 10);
	assert_false(nt_stream_order_is_clear(r.order));
	nt_stream_order_enqueue(r.order, r.work, COMM, COMPUTE, 1300, 10);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 1400, 2000, 10);
	assert_true(nt_stream_order_is_clear(r.order));
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 2100, 4000, 110);
	step = finish(&r, 5000, 110);
	assert_int_equal(step.own_ns, 2200); /* beside the reduction, and after it */
	assert_int_equal(step.covered_launches, 100);
}

/* Also what the stream of that earlier call was behind. */
static void the_order_of_a_communicator_carries_that_of_its_streams(void **state)
{
	struct rank r;

	(void)state;
	begin_clear(&r);
	nt_stream_order_enqueue(r.order, r.work, COMM + 1, REDUCE, 1000, 10);
	nt_stream_order_enqueue(r.order, r.work, COMM, REDUCE, 1010, 10);
	nt_stream_order_enqueue(r.order, r.work, COMM + 2, OTHER, 1020, 10);
	nt_stream_order_enqueue(r.order, r.work, COMM, COMPUTE, 1030, 10);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 1400, 2000, 10);
	assert_false(nt_stream_order_is_clear(r.order)); /* nothing was said of OTHER */
	await(&r, NT_STREAM_ORDER_STREAM, OTHER, 2100, 2200, 10);
	assert_true(nt_stream_order_is_clear(r.order));
	(void)finish(&r, 5000, 10);
}

static void without_a_check_own_work_is_not_observable(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	enqueue(&r, REDUCE, 1500, 110); /* 100 launches still run */
	await(&r, NT_STREAM_ORDER_DEVICE, 0, 1600, 9000, 111);
	step = finish(&r, 9000, 111);
	assert_int_equal(step.own_ns, 0);
	assert_int_equal(step.local_syncs, 0);
	assert_false(nt_accounting_is_covered(&step));
}

static void a_check_of_a_stream_behind_communication_is_waiting(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	enqueue(&r, COMPUTE, 1100, 20); /* tensor parallel, in the middle of the pass */
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 2000, 4000, 110);
	enqueue(&r, REDUCE, 4100, 110);
	await(&r, NT_STREAM_ORDER_DEVICE, 0, 4200, 9000, 110);
	step = finish(&r, 9000, 110);
	/* What lies between the check and the reduction is clear again, and without launches. */
	assert_int_equal(step.own_ns, 100);
	assert_int_equal(step.covered_launches, 0);
	assert_false(nt_accounting_is_covered(&step));
}

static void a_check_beside_a_reduction_that_runs_elsewhere_is_own_work(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	/* The first bucket is reduced while the next is computed. */
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 2000, 3000, 60);
	nt_stream_order_record(r.order, READY, COMPUTE);
	nt_stream_order_wait(r.order, REDUCE, READY);
	enqueue(&r, REDUCE, 3100, 60);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 3500, 5000, 110);
	nt_stream_order_record(r.order, READY, COMPUTE);
	nt_stream_order_wait(r.order, REDUCE, READY);
	enqueue(&r, REDUCE, 5100, 110);
	nt_stream_order_record(r.order, REDUCED, REDUCE);
	nt_stream_order_wait(r.order, COMPUTE, REDUCED);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 5200, 9000, 112);
	step = finish(&r, 9000, 112);
	assert_int_equal(step.own_ns, 4000); /* from 1000 to 5000 */
	assert_int_equal(step.covered_launches, 100);
	assert_int_equal(step.local_syncs, 2);
}

static void an_event_carries_what_its_stream_waited_for_when_it_was_recorded(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	nt_stream_order_record(r.order, READY, COMPUTE);
	enqueue(&r, COMPUTE, 1100, 10);
	/* Recorded before the communication: the wait is for local work. */
	await(&r, NT_STREAM_ORDER_EVENT, READY, 1200, 2000, 10);
	nt_stream_order_record(r.order, READY, COMPUTE);
	await(&r, NT_STREAM_ORDER_EVENT, READY, 2100, 5000, 10);
	assert_true(nt_stream_order_is_clear(r.order));
	step = finish(&r, 5000, 10);
	assert_int_equal(step.own_ns, 1000); /* 1000 to 2000 */
}

static void an_unknown_event_may_stand_for_anything_and_proves_nothing(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	enqueue(&r, REDUCE, 1100, 10);
	await(&r, NT_STREAM_ORDER_EVENT, 0xdead, 1200, 2000, 10);
	assert_false(nt_stream_order_is_clear(r.order));
	nt_stream_order_wait(r.order, COMPUTE, 0xbeef);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 2100, 3000, 10);
	assert_false(nt_stream_order_is_clear(r.order));
	step = finish(&r, 5000, 10);
	assert_int_equal(step.own_ns, 100); /* up to the reduction */
	assert_int_equal(step.local_syncs, 0);
}

static void a_blocking_copy_proves_nothing_while_communication_is_pending(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	await(&r, NT_STREAM_ORDER_UNCLEAR, 0, 1100, 2000, 60); /* nothing is pending: local */
	enqueue(&r, REDUCE, 2100, 60);
	await(&r, NT_STREAM_ORDER_UNCLEAR, 0, 2200, 4000, 60);
	assert_false(nt_stream_order_is_clear(r.order));
	step = finish(&r, 5000, 60);
	assert_int_equal(step.own_ns, 1100);
	assert_int_equal(step.local_syncs, 1);
}

static void nothing_is_own_before_the_first_clear_moment(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	start(&r);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 100, 900, 50);
	enqueue(&r, REDUCE, 1000, 50);
	step = finish(&r, 2000, 50);
	assert_int_equal(step.own_ns, 0);
	assert_int_equal(step.local_syncs, 0);
}

static void communication_on_two_streams_is_clear_when_both_are_awaited(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	enqueue(&r, REDUCE, 1100, 10);
	enqueue(&r, OTHER, 1200, 10);
	await(&r, NT_STREAM_ORDER_STREAM, REDUCE, 1300, 2000, 10);
	assert_false(nt_stream_order_is_clear(r.order));
	await(&r, NT_STREAM_ORDER_STREAM, OTHER, 2100, 3000, 10);
	assert_true(nt_stream_order_is_clear(r.order));
	enqueue(&r, REDUCE, 3500, 10);
	step = finish(&r, 4000, 10);
	assert_int_equal(step.own_ns, 100 + 500);
}

static void a_launch_or_two_after_the_check_are_overlooked(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 2000, 4000, 110);
	enqueue(&r, REDUCE, 4100, 112);
	step = finish(&r, 5000, 112);
	assert_int_equal(step.own_ns, 3100);
	begin_clear(&r);
	await(&r, NT_STREAM_ORDER_STREAM, COMPUTE, 2000, 4000, 110);
	enqueue(&r, REDUCE, 4100, 113);
	step = finish(&r, 5000, 113);
	assert_int_equal(step.own_ns, 3000); /* what the check covered stays proven */
}

static void streams_over_the_cap_are_counted_and_prove_nothing(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	begin_clear(&r);
	for (uint64_t i = 0; i < NT_STREAM_ORDER_STREAMS; i++)
		nt_stream_order_record(r.order, READY, 0x10000 + i);
	assert_true(nt_stream_order_overflows(r.order) > 0);
	enqueue(&r, COMPUTE, 1100, 10);
	await(&r, NT_STREAM_ORDER_STREAM, 0x10000 + NT_STREAM_ORDER_STREAMS - 1, 1200, 2000, 10);
	assert_false(nt_stream_order_is_clear(r.order));
	step = finish(&r, 3000, 10);
	assert_int_equal(step.own_ns, 100);
}

static void lanes_over_the_cap_need_a_wait_for_the_device(void **state)
{
	struct nt_accounting_step step;
	struct rank r;

	(void)state;
	start(&r);
	for (uint64_t i = 0; i <= NT_STREAM_ORDER_LANES; i++)
		enqueue(&r, 0x5000 + i, 100 + i, 0);
	assert_int_equal(nt_stream_order_overflows(r.order), 1);
	for (uint64_t i = 0; i <= NT_STREAM_ORDER_LANES; i++)
		await(&r, NT_STREAM_ORDER_STREAM, 0x5000 + i, 200 + i, 201 + i, 0);
	assert_false(nt_stream_order_is_clear(r.order));
	await(&r, NT_STREAM_ORDER_DEVICE, 0, 300, 400, 0);
	assert_true(nt_stream_order_is_clear(r.order));
	step = finish(&r, 1000, 0);
	assert_int_equal(step.own_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_local_check_before_the_reduction_is_own_work),
		cmocka_unit_test(
			a_later_call_of_the_communicator_tells_that_the_one_before_has_ended),
		cmocka_unit_test(the_order_of_a_communicator_carries_that_of_its_streams),
		cmocka_unit_test(without_a_check_own_work_is_not_observable),
		cmocka_unit_test(a_check_of_a_stream_behind_communication_is_waiting),
		cmocka_unit_test(a_check_beside_a_reduction_that_runs_elsewhere_is_own_work),
		cmocka_unit_test(an_event_carries_what_its_stream_waited_for_when_it_was_recorded),
		cmocka_unit_test(an_unknown_event_may_stand_for_anything_and_proves_nothing),
		cmocka_unit_test(a_blocking_copy_proves_nothing_while_communication_is_pending),
		cmocka_unit_test(nothing_is_own_before_the_first_clear_moment),
		cmocka_unit_test(communication_on_two_streams_is_clear_when_both_are_awaited),
		cmocka_unit_test(a_launch_or_two_after_the_check_are_overlooked),
		cmocka_unit_test(streams_over_the_cap_are_counted_and_prove_nothing),
		cmocka_unit_test(lanes_over_the_cap_need_a_wait_for_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
