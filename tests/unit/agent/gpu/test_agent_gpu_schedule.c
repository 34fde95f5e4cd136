/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/gpu/gpu_schedule.h"

#define S  NT_SECOND
#define MS NT_MILLISECOND

enum {
	PID = 7,
};

static bool is_open(struct nt_gpu_schedule *schedule, uint64_t now_ns, uint64_t real_ns)
{
	return nt_gpu_schedule_is_open(schedule, true, now_ns, real_ns);
}

static struct nt_gpu_schedule usual(void)
{
	return (struct nt_gpu_schedule){.window_ns = 3 * S, .interval_ns = 30 * S};
}

static void windows_begin_at_the_same_time_on_all_nodes(void **state)
{
	struct nt_gpu_schedule schedule = usual();

	(void)state;
	assert_true(is_open(&schedule, 1000 * S, 3000 * S));
	assert_true(is_open(&schedule, 17 * S, 3003 * S - 1));
	assert_false(is_open(&schedule, 17 * S, 3003 * S));
	assert_false(is_open(&schedule, 17 * S, 3030 * S - 1));
	assert_true(is_open(&schedule, 17 * S, 3030 * S));
}

static void nothing_is_measured_without_a_window_and_all_without_an_interval(void **state)
{
	struct nt_gpu_schedule schedule = {.interval_ns = 30 * S};

	(void)state;
	nt_gpu_schedule_add(&schedule, 100 * S);
	assert_false(is_open(&schedule, 100 * S, 3000 * S));
	schedule = (struct nt_gpu_schedule){.window_ns = 3 * S};
	for (uint64_t s = 0; s < 40; s++)
		assert_true(is_open(&schedule, s * S, (3000 + s) * S));
}

static void a_new_rank_is_measured_until_its_past_is_known(void **state)
{
	struct nt_gpu_schedule schedule = usual();

	(void)state;
	nt_gpu_schedule_add(&schedule, 100 * S);
	assert_true(is_open(&schedule, 189 * S, 3010 * S));
	assert_false(is_open(&schedule, 190 * S, 3010 * S));
}

static void longer_steps_are_measured_at_once(void **state)
{
	struct nt_gpu_schedule schedule = usual();
	uint64_t now_ns = 100 * S;

	(void)state;
	for (int i = 0; i < 20; i++, now_ns += S)
		nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1000 * MS, now_ns);
	nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1040 * MS, now_ns);
	nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1040 * MS, now_ns);
	assert_false(is_open(&schedule, now_ns, 3010 * S));
	nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1100 * MS, now_ns);
	assert_false(is_open(&schedule, now_ns, 3010 * S)); /* once */
	nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1100 * MS, now_ns);
	assert_true(is_open(&schedule, now_ns, 3010 * S));
	assert_true(is_open(&schedule, now_ns + 59 * S, 3010 * S));
	/* What lasts becomes the normal. */
	for (int i = 0; i < 300; i++, now_ns += S)
		nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1100 * MS, now_ns);
	assert_false(is_open(&schedule, now_ns, 3010 * S));
}

/* A rank whose steps are often longer than before. */
static void slow_down(struct nt_gpu_schedule *schedule, uint64_t s)
{
	nt_gpu_schedule_steps(schedule, PID, 3, 10, (1000 + s * s % 5000) * MS, s * S);
}

/* A job that starts ranks without end is measured a ninth of the time, and in the windows. */
static void continuous_measurement_has_a_credit(void **state)
{
	struct nt_gpu_schedule schedule = usual();
	uint64_t open = 0;

	(void)state;
	for (uint64_t s = 1; s <= 300; s++) {
		nt_gpu_schedule_add(&schedule, s * S);
		assert_true(is_open(&schedule, s * S, 3010 * S));
	}
	for (uint64_t s = 301; s <= 301 + 36000; s++) {
		nt_gpu_schedule_add(&schedule, s * S);
		open += is_open(&schedule, s * S, 3010 * S);
	}
	assert_in_range(open, 36000 / 9 - 100, 36000 / 9 + 100);
	/* Windows go on. */
	schedule.fresh.is_spent = true;
	assert_true(is_open(&schedule, 40000 * S, 3000 * S));
	/* It is earned in the time without. */
	for (uint64_t s = 40001; s <= 42000; s++)
		(void)is_open(&schedule, s * S, 3010 * S);
	nt_gpu_schedule_add(&schedule, 42000 * S);
	for (uint64_t s = 42001; s < 42090; s++)
		assert_true(is_open(&schedule, s * S, 3010 * S));
}

static void new_ranks_do_not_use_up_the_credit_of_longer_steps(void **state)
{
	struct nt_gpu_schedule schedule = usual();
	uint64_t s = 1, open = 0;

	(void)state;
	for (; !schedule.fresh.is_spent; s++) {
		nt_gpu_schedule_add(&schedule, s * S);
		nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1000 * MS, s * S);
		(void)is_open(&schedule, s * S, 3010 * S);
	}
	assert_in_range(s, 300, 303);
	nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1100 * MS, s * S);
	assert_false(is_open(&schedule, s * S, 3010 * S));
	nt_gpu_schedule_steps(&schedule, PID, 3, 10, 1100 * MS, s * S);
	for (const uint64_t until = s + 60; s < until; s++)
		assert_true(is_open(&schedule, s * S, 3010 * S));
	/* It has one, too. Both together are measured two ninths of the time. */
	for (uint64_t i = 0; i < 1000; i++, s++) {
		slow_down(&schedule, s);
		(void)is_open(&schedule, s * S, 3010 * S);
	}
	for (uint64_t i = 0; i < 36000; i++, s++) {
		nt_gpu_schedule_add(&schedule, s * S);
		slow_down(&schedule, s);
		open += is_open(&schedule, s * S, 3010 * S);
	}
	assert_in_range(open, 36000 / 9, 2 * 36000 / 9 + 200);
}

static void without_a_measured_process_no_credit_is_spent(void **state)
{
	struct nt_gpu_schedule schedule = usual();

	(void)state;
	for (uint64_t s = 1; s <= 1000; s++) {
		nt_gpu_schedule_add(&schedule, s * S);
		assert_true(nt_gpu_schedule_is_open(&schedule, false, s * S, 3010 * S));
	}
	assert_int_equal(schedule.fresh.spent_ns, 0);
}

static void a_window_lasts_three_steps(void **state)
{
	struct nt_gpu_schedule schedule = usual();

	(void)state;
	nt_gpu_schedule_steps(&schedule, PID, 3, 1, 4 * S, 100 * S);
	assert_true(is_open(&schedule, 100 * S, 3012 * S - 1));
	assert_false(is_open(&schedule, 100 * S, 3012 * S));
	/* A rank without steps is forgotten. */
	assert_false(is_open(&schedule, 161 * S, 3005 * S));
	/* It lasts half of the interval at most. */
	nt_gpu_schedule_steps(&schedule, PID + 1, 3, 2, 20 * S, 200 * S);
	assert_true(is_open(&schedule, 200 * S, 3014 * S));
	assert_false(is_open(&schedule, 200 * S, 3015 * S));
}

static void more_ranks_than_the_table_holds_are_not_followed(void **state)
{
	struct nt_gpu_schedule schedule = usual();
	uint64_t now_ns = 100 * S;

	(void)state;
	/* Two ranks of one process have steps of their own. */
	for (int i = 0; i < 200; i++, now_ns += S / 10) {
		for (uint32_t rank = 0; rank < 2 * NT_GPU_SCHEDULE_RANKS; rank++)
			nt_gpu_schedule_steps(&schedule, PID, rank, 1, (1 + rank % 2) * 100 * MS,
					      now_ns);
	}
	assert_false(is_open(&schedule, now_ns, 3010 * S));
	for (int i = 0; i < 4; i++) {
		for (uint32_t rank = 0; rank < 2 * NT_GPU_SCHEDULE_RANKS; rank++)
			nt_gpu_schedule_steps(&schedule, PID, rank, 1, (1 + rank % 2) * 200 * MS,
					      now_ns);
	}
	assert_true(is_open(&schedule, now_ns, 3010 * S));
	/* What is not a rank or has no steps is not followed. */
	nt_gpu_schedule_steps(&schedule, 0, 1, 1, S, now_ns);
	nt_gpu_schedule_steps(&schedule, 5, 1, 0, S, now_ns);
	/* Those that are forgotten make room. */
	now_ns += 61 * S;
	nt_gpu_schedule_steps(&schedule, PID + 1, 0, 1, S, now_ns);
	nt_gpu_schedule_steps(&schedule, PID + 1, 1, 1, S, now_ns);
	for (uint32_t i = 0, found = 0; i < NT_GPU_SCHEDULE_RANKS; i++) {
		found += schedule.rank[i].key >> 32 == PID + 1;
		assert_true(i + 1 < NT_GPU_SCHEDULE_RANKS || found == 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_begin_at_the_same_time_on_all_nodes),
		cmocka_unit_test(nothing_is_measured_without_a_window_and_all_without_an_interval),
		cmocka_unit_test(a_new_rank_is_measured_until_its_past_is_known),
		cmocka_unit_test(longer_steps_are_measured_at_once),
		cmocka_unit_test(a_window_lasts_three_steps),
		cmocka_unit_test(more_ranks_than_the_table_holds_are_not_followed),
		cmocka_unit_test(continuous_measurement_has_a_credit),
		cmocka_unit_test(new_ranks_do_not_use_up_the_credit_of_longer_steps),
		cmocka_unit_test(without_a_measured_process_no_credit_is_spent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
