/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Own work by the device's clock, step by step. */
#include "agent/steps/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/system/clock.h"

#define MS NT_MILLISECOND

static struct nt_gpu *fresh(void)
{
	struct nt_gpu *gpu = NULL;

	assert_int_equal(nt_gpu_new(&gpu), 0);
	return gpu;
}

static struct nt_accounting_step step_of(uint64_t start_ns, uint64_t end_ns)
{
	return (struct nt_accounting_step){
		.start_ns = start_ns, .end_ns = end_ns, .launches = 10, .asynchronous = true};
}

static bool add(struct nt_gpu *gpu, uint64_t stream, uint64_t entry_ns, uint64_t start_ns,
		uint64_t end_ns)
{
	const struct nt_gpu_interval interval = {
		.kernels = 10,
		.entry_ns = entry_ns,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.stream = stream,
	};

	return nt_gpu_add(gpu, &interval, end_ns);
}

/* A device that is followed: its first step is behind it, the next begins at 1 s. */
static struct nt_gpu *followed(void)
{
	struct nt_gpu *gpu = fresh();
	struct nt_accounting_step step = step_of(500 * MS, 1000 * MS);

	nt_gpu_step(gpu, &step);
	add(gpu, 1, 1000 * MS, 1000 * MS, 1000 * MS);
	assert_true(nt_gpu_next(gpu, 1000 * MS, &step));
	assert_false(step.has_gpu); /* what was told before it is not known */
	return gpu;
}

static void own_work_is_the_union_over_streams_of_what_was_enqueued_in_the_step(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	add(gpu, 1, 1010 * MS, 1020 * MS, 1050 * MS);
	add(gpu, 2, 1010 * MS, 1040 * MS, 1060 * MS); /* 10 ms of it beside the other */
	nt_gpu_step(gpu, &step);
	/* The host has gone on, and the device has not. */
	add(gpu, 1, 1020 * MS, 1090 * MS, 1140 * MS);
	assert_false(nt_gpu_next(gpu, 1150 * MS, &step));
	add(gpu, 1, 1105 * MS, 1150 * MS, 1160 * MS);
	assert_false(nt_gpu_next(gpu, 1160 * MS, &step)); /* stream 2 may have more */
	add(gpu, 2, 1106 * MS, 1160 * MS, 1161 * MS);
	assert_true(nt_gpu_next(gpu, 1161 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_ns, 90 * MS);
	assert_int_equal(step.gpu_lag_ns, (0 + 10 + 30 + 70) * MS / 4);
	assert_int_equal(step.start_ns, 1000 * MS);
	assert_false(nt_gpu_next(gpu, UINT64_MAX, &step));

	/* And what ran before the step's end belongs to the next. */
	step = step_of(1100 * MS, 1200 * MS);
	nt_gpu_step(gpu, &step);
	assert_true(nt_gpu_next(gpu, UINT64_MAX, &step));
	assert_int_equal(step.gpu_ns, 11 * MS);
	assert_false(step.has_gpu); /* nothing told that this was all */
}

/* The host enqueues steps in 10 ms each, then waits for its device, where each takes 100 ms. */
static void a_step_takes_what_it_took_on_the_device(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step;

	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		const uint64_t start_ns = (1000 + 10 * i) * MS, begun_ns = (1000 + 100 * i) * MS;

		step = step_of(start_ns, start_ns + 10 * MS);
		add(gpu, 1, start_ns + MS, begun_ns + 20 * MS, begun_ns + 80 * MS);
		add(gpu, 2, start_ns + MS, begun_ns + 40 * MS, begun_ns + 90 * MS);
		nt_gpu_step(gpu, &step);
	}
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(nt_gpu_next(gpu, 3000 * MS, &step));
		assert_int_equal(step.has_gpu, true);
		/* Of the first it is not known when the device began. */
		assert_int_equal(step.gpu_step_ns, i ? 100 * MS : 0);
	}
	/* Nothing says that the fifth was all, so that the sixth has no begin either. */
	assert_true(nt_gpu_next(gpu, UINT64_MAX, &step));
	assert_false(step.has_gpu);
	assert_int_equal(step.gpu_step_ns, 0);
	step = step_of(1050 * MS, 1060 * MS);
	add(gpu, 1, 1051 * MS, 1500 * MS, 1590 * MS);
	nt_gpu_step(gpu, &step);
	add(gpu, 1, 1061 * MS, 1600 * MS, 1610 * MS);
	assert_true(nt_gpu_next(gpu, 3000 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_step_ns, 0);
}

static void a_stream_that_rests_is_waited_for_and_no_longer(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	add(gpu, 1, 1010 * MS, 1020 * MS, 1050 * MS);
	add(gpu, 2, 1020 * MS, 1050 * MS, 1060 * MS);
	nt_gpu_step(gpu, &step);
	add(gpu, 1, 1110 * MS, 1120 * MS, 1150 * MS);
	assert_false(nt_gpu_next(gpu, 1649 * MS, &step));
	assert_true(nt_gpu_next(gpu, 1650 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_ns, 40 * MS);
}

static void intervals_in_any_order_are_the_same_union(void **state)
{
	(void)state;
	for (int by = 1; by < 7; by += 2) {
		nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
		struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

		/* Seven stretches of 10 ms, each 5 ms into the next but one, from 1,000 on. */
		for (uint64_t i = 0, n = 0; i < 7; i++, n = (n + (uint64_t)by) % 7)
			add(gpu, 1 + n % 3, 1000 * MS, (1000 + 15 * n) * MS, (1020 + 15 * n) * MS);
		nt_gpu_step(gpu, &step);
		for (uint64_t i = 1; i <= 3; i++)
			add(gpu, i, 1100 * MS, 1200 * MS, 1210 * MS);
		assert_true(nt_gpu_next(gpu, 1210 * MS, &step));
		assert_int_equal(step.gpu_ns, (6 * 15 + 20) * MS);
		assert_int_equal(nt_gpu_stats(gpu)->overlap_ns, 0);
	}
}

static void more_stretches_than_there_is_room_for_are_added_up_and_none_is_lost(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 2000 * MS);

	(void)state;
	for (uint64_t i = 0; i < 10 * NT_GPU_SPANS; i++)
		add(gpu, 1, 1000 * MS, (1000 + i) * MS, (1000 + i) * MS + 500000);
	/* What comes after what was added up: only what lies behind that is sure not to be in it. */
	add(gpu, 2, 1000 * MS, 1000 * MS, (1000 + 10 * NT_GPU_SPANS) * MS);
	nt_gpu_step(gpu, &step);
	add(gpu, 1, 2000 * MS, 2000 * MS, 2001 * MS);
	add(gpu, 2, 2000 * MS, 2000 * MS, 2001 * MS);
	assert_true(nt_gpu_next(gpu, 2001 * MS, &step));
	assert_true(step.has_gpu);
	assert_true(step.gpu_ns >= 10 * NT_GPU_SPANS * MS / 2);
	assert_true(step.gpu_ns < 10 * NT_GPU_SPANS * MS);
	assert_true(nt_gpu_stats(gpu)->overlap_ns > 0);
}

static void lost_intervals_leave_the_steps_that_wait_without_device_time(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	add(gpu, 1, 1010 * MS, 1020 * MS, 1090 * MS);
	nt_gpu_step(gpu, &step);
	nt_gpu_lose(gpu); /* in the step that ended, or in the one that goes on */
	for (int i = 0; i < 3; i++) {
		uint64_t at_ms = 1100 + 100 * (uint64_t)i;

		add(gpu, 1, (at_ms + 10) * MS, (at_ms + 20) * MS, (at_ms + 90) * MS);
		assert_true(nt_gpu_next(gpu, (at_ms + 90) * MS, &step));
		assert_int_equal(step.has_gpu, i == 2);
		step = step_of(at_ms * MS, (at_ms + 100) * MS);
		nt_gpu_step(gpu, &step);
	}
}

static void a_step_of_which_too_few_launches_were_told_does_not_hold(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();

	(void)state;
	for (uint64_t launches = 20; launches <= 21; launches++) {
		uint64_t at_ms = 1000 + 100 * (launches - 20);
		struct nt_accounting_step step = step_of(at_ms * MS, (at_ms + 100) * MS);

		step.launches = launches;
		if (launches == 20)
			add(gpu, 1, at_ms * MS, at_ms * MS, (at_ms + 50) * MS); /* 10 kernels */
		nt_gpu_step(gpu, &step);
		add(gpu, 1, (at_ms + 100) * MS, (at_ms + 100) * MS, (at_ms + 150) * MS);
		assert_true(nt_gpu_next(gpu, (at_ms + 150) * MS, &step));
		assert_int_equal(step.has_gpu, launches == 20);
	}
}

static void an_interval_whose_step_is_told_is_counted_and_the_next_does_not_hold(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	add(gpu, 1, 1010 * MS, 1020 * MS, 1090 * MS);
	nt_gpu_step(gpu, &step);
	add(gpu, 1, 1110 * MS, 1120 * MS, 1190 * MS);
	assert_true(nt_gpu_next(gpu, 1190 * MS, &step));
	assert_true(step.has_gpu);
	assert_false(add(gpu, 3, 1050 * MS, 1060 * MS, 1195 * MS));
	assert_int_equal(nt_gpu_stats(gpu)->late, 1);
	step = step_of(1100 * MS, 1200 * MS);
	nt_gpu_step(gpu, &step);
	add(gpu, 1, 1210 * MS, 1220 * MS, 1290 * MS);
	assert_true(nt_gpu_next(gpu, 1800 * MS, &step));
	assert_false(step.has_gpu);
}

static void a_plugin_that_falls_silent_holds_nothing_up(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	nt_gpu_step(gpu, &step);
	assert_true(nt_gpu_waits(gpu));
	assert_false(nt_gpu_next(gpu, 3099 * MS, &step));
	assert_true(nt_gpu_next(gpu, 3100 * MS, &step));
	assert_false(step.has_gpu);
	assert_false(nt_gpu_waits(gpu));
	assert_int_equal(nt_gpu_stats(gpu)->steps_unknown, 1);
}

static void a_device_that_awaits_a_slow_rank_is_waited_for(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 7000 * MS);

	(void)state;
	add(gpu, 1, 1000 * MS, 1000 * MS, 5000 * MS);
	nt_gpu_step(gpu, &step);
	/* Nothing but a collective runs on it, for longer than a plugin that is well is ever silent. */
	assert_false(nt_gpu_next(gpu, 10000 * MS, &step));
	add(gpu, 1, 7010 * MS, 11000 * MS, 11100 * MS);
	assert_true(nt_gpu_next(gpu, 11100 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_ns, 4000 * MS);
}

static void a_host_that_runs_far_ahead_is_followed_for_ten_seconds(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	nt_gpu_step(gpu, &step);
	for (uint64_t ms = 1100; ms < 11200; ms += 100) {
		add(gpu, 1, 1000 * MS, ms * MS, (ms + 100) * MS);
		assert_false(nt_gpu_next(gpu, (ms + 100) * MS, &step));
	}
	assert_true(nt_gpu_next(gpu, 11300 * MS, &step));
	assert_false(step.has_gpu);
}

static void over_the_cap_of_steps_the_oldest_is_told_as_it_is(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step;
	uint64_t told = 0;

	(void)state;
	for (uint64_t i = 0; i < 2 * NT_GPU_STEPS; i++) {
		step = step_of((1000 + i) * MS, (1001 + i) * MS);
		nt_gpu_step(gpu, &step);
		for (; nt_gpu_next(gpu, (1001 + i) * MS, &step); told++) {
			assert_false(step.has_gpu);
			assert_int_equal(step.start_ns, (1000 + told) * MS);
		}
	}
	assert_int_equal(told, NT_GPU_STEPS + 1);
	assert_int_equal(nt_gpu_stats(gpu)->steps_over_cap, told);
	assert_int_equal(nt_gpu_stats(gpu)->steps_unknown, told);
}

static void streams_over_the_cap_are_counted_and_their_kernels_too(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	for (uint64_t i = 0; i <= NT_GPU_STREAMS; i++)
		add(gpu, 1 + i, 1010 * MS, (1010 + 2 * i) * MS, (1011 + 2 * i) * MS);
	assert_int_equal(nt_gpu_stats(gpu)->streams_over_cap, 1);
	nt_gpu_step(gpu, &step);
	add(gpu, 3, 1110 * MS, 1120 * MS, 1130 * MS);
	assert_true(nt_gpu_next(gpu, 1700 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_ns, (NT_GPU_STREAMS + 1) * MS);
}

static void after_a_reset_the_first_step_is_not_known(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = followed();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	nt_gpu_step(gpu, &step);
	nt_gpu_reset(gpu);
	assert_false(nt_gpu_next(gpu, UINT64_MAX, &step));
	add(gpu, 1, 1110 * MS, 1120 * MS, 1130 * MS); /* of a step that nobody knows yet */
	step = step_of(1100 * MS, 1200 * MS);
	nt_gpu_step(gpu, &step);
	add(gpu, 1, 1210 * MS, 1220 * MS, 1230 * MS);
	assert_true(nt_gpu_next(gpu, 1230 * MS, &step));
	assert_false(step.has_gpu);
	step = step_of(1200 * MS, 1300 * MS);
	nt_gpu_step(gpu, &step);
	add(gpu, 1, 1310 * MS, 1320 * MS, 1330 * MS);
	assert_true(nt_gpu_next(gpu, 1330 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_ns, 10 * MS);
}

/* The rest of the step in which the measurement began comes when that step is delivered. */
static void late_kernels_of_a_step_outside_break_no_other(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = fresh();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	nt_gpu_open(gpu, 1050 * MS, false);
	nt_gpu_step(gpu, &step);
	assert_true(nt_gpu_next(gpu, 1100 * MS, &step));
	assert_false(step.has_gpu);
	step = step_of(1100 * MS, 1200 * MS);
	nt_gpu_step(gpu, &step);
	/* The device is 300 ms behind. */
	add(gpu, 1, 1060 * MS, 1360 * MS, 1390 * MS);
	add(gpu, 1, 1110 * MS, 1410 * MS, 1460 * MS);
	add(gpu, 1, 1210 * MS, 1510 * MS, 1520 * MS);
	assert_true(nt_gpu_next(gpu, 1520 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_ns, 50 * MS);
	assert_int_equal(nt_gpu_stats(gpu)->late, 0);
}

/* Nothing of a step that was not measured from its begin on will ever come. */
static void a_step_outside_of_the_measurement_is_not_waited_for(void **state)
{
	nt_auto(nt_gpu) struct nt_gpu *gpu = fresh();
	struct nt_accounting_step step = step_of(1000 * MS, 1100 * MS);

	(void)state;
	nt_gpu_open(gpu, 1050 * MS, false);
	add(gpu, 1, 1060 * MS, 1060 * MS, 1070 * MS);
	nt_gpu_step(gpu, &step);
	assert_true(nt_gpu_next(gpu, 1100 * MS, &step));
	assert_false(step.has_gpu);
	step = step_of(1100 * MS, 1200 * MS);
	add(gpu, 1, 1110 * MS, 1110 * MS, 1150 * MS);
	nt_gpu_step(gpu, &step);
	assert_false(nt_gpu_next(gpu, 1200 * MS, &step));
	add(gpu, 1, 1210 * MS, 1210 * MS, 1250 * MS);
	assert_true(nt_gpu_next(gpu, 1250 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_ns, 40 * MS);

	/* The next has ended, and its last kernels may be missing. */
	step = step_of(1200 * MS, 1300 * MS);
	nt_gpu_step(gpu, &step);
	assert_false(nt_gpu_next(gpu, 1300 * MS, &step));
	nt_gpu_close(gpu);
	assert_true(nt_gpu_next(gpu, 1300 * MS, &step));
	assert_false(step.has_gpu);
	for (uint64_t begin = 1300; begin < 1600; begin += 100) {
		step = step_of(begin * MS, (begin + 100) * MS);
		nt_gpu_step(gpu, &step);
		assert_true(nt_gpu_next(gpu, (begin + 100) * MS, &step));
		assert_false(step.has_gpu);
	}
	assert_int_equal(nt_gpu_stats(gpu)->steps_unknown, 0);
	assert_false(nt_gpu_waits(gpu));

	nt_gpu_open(gpu, 1610 * MS, false);
	step = step_of(1600 * MS, 1700 * MS);
	nt_gpu_step(gpu, &step);
	assert_true(nt_gpu_next(gpu, 1700 * MS, &step));
	assert_false(step.has_gpu);
	add(gpu, 1, 1710 * MS, 1710 * MS, 1760 * MS);
	step = step_of(1700 * MS, 1800 * MS);
	nt_gpu_step(gpu, &step);
	add(gpu, 1, 1810 * MS, 1810 * MS, 1820 * MS);
	assert_true(nt_gpu_next(gpu, 1820 * MS, &step));
	assert_true(step.has_gpu);
	assert_int_equal(step.gpu_ns, 50 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			own_work_is_the_union_over_streams_of_what_was_enqueued_in_the_step),
		cmocka_unit_test(a_step_takes_what_it_took_on_the_device),
		cmocka_unit_test(a_stream_that_rests_is_waited_for_and_no_longer),
		cmocka_unit_test(intervals_in_any_order_are_the_same_union),
		cmocka_unit_test(
			more_stretches_than_there_is_room_for_are_added_up_and_none_is_lost),
		cmocka_unit_test(lost_intervals_leave_the_steps_that_wait_without_device_time),
		cmocka_unit_test(a_step_of_which_too_few_launches_were_told_does_not_hold),
		cmocka_unit_test(
			an_interval_whose_step_is_told_is_counted_and_the_next_does_not_hold),
		cmocka_unit_test(a_plugin_that_falls_silent_holds_nothing_up),
		cmocka_unit_test(a_device_that_awaits_a_slow_rank_is_waited_for),
		cmocka_unit_test(a_host_that_runs_far_ahead_is_followed_for_ten_seconds),
		cmocka_unit_test(over_the_cap_of_steps_the_oldest_is_told_as_it_is),
		cmocka_unit_test(streams_over_the_cap_are_counted_and_their_kernels_too),
		cmocka_unit_test(after_a_reset_the_first_step_is_not_known),
		cmocka_unit_test(a_step_outside_of_the_measurement_is_not_waited_for),
		cmocka_unit_test(late_kernels_of_a_step_outside_break_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
