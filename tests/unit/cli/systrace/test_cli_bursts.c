/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bursts of equal calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/systrace/bursts.h"
#include "cli/systrace/timeline.h"

enum {
	CALLS = 400,
};

struct calls {
	uint64_t idle_ns[CALLS];
	bool first[CALLS];
	uint32_t burst;
};

/* Some microseconds, the same in every run. */
static uint64_t noise(size_t i)
{
	return (i * 2654435761U >> 7) % 5000;
}

static void find(struct calls *calls)
{
	assert_int_equal(nt_bursts_find(calls->idle_ns, CALLS, calls->first, &calls->burst), 0);
}

static void equal_calls_with_a_long_pause_are_bursts(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 64; n *= 2) {
		struct calls calls = {0};

		for (size_t i = 0; i < CALLS; i++)
			calls.idle_ns[i] = (i % n == 3 % n ? 900000 : 50000) + noise(i);
		find(&calls);
		assert_int_equal(calls.burst, n);
		for (size_t i = 1; i < CALLS; i++)
			assert_int_equal(calls.first[i], i % n == 3 % n);
	}
}

static void a_rank_that_is_waited_for_pauses_between_its_calls(void **state)
{
	struct calls calls = {0};

	(void)state;
	/* In every third step the peers wait inside of the calls: no pauses. */
	for (size_t i = 0; i < CALLS; i++)
		calls.idle_ns[i] = i % 8 == 0 ? 780000 : i / 8 % 3 == 0 ? 0 : 55000 + noise(i);
	find(&calls);
	assert_int_equal(calls.burst, 8);
	assert_true(calls.first[8] && !calls.first[9]);
}

static void calls_that_come_one_by_one_are_no_bursts(void **state)
{
	struct calls calls = {0};

	(void)state;
	for (size_t i = 0; i < CALLS; i++)
		calls.idle_ns[i] = 100000 + noise(i);
	find(&calls);
	assert_int_equal(calls.burst, 0);
	/* Nor do pauses now and then make any: a checkpoint, a hiccup. */
	for (size_t i = 0; i < CALLS; i += 37 + i % 11)
		calls.idle_ns[i] = 900000;
	find(&calls);
	assert_int_equal(calls.burst, 0);
}

/*
 * Two buckets a step: the second half of a backward pass lies between them, all else of the step between
 * steps. After eleven steps comes a checkpoint, with a barrier.
 */
static void pauses_that_differ_little_part_steps_of_two_calls(void **state)
{
	struct calls calls = {0};
	size_t twos = 0;

	(void)state;
	for (size_t i = 0; i < CALLS; i++)
		calls.idle_ns[i] = i % 23 == 22      ? 900000
				   : i % 23 % 2 == 0 ? 120000 + noise(i)
						     : 50000 + noise(i);
	find(&calls);
	assert_int_equal(calls.burst, 2);
	for (size_t i = 2; i < CALLS; i++)
		twos += calls.first[i] && calls.first[i - 2] && !calls.first[i - 1];
	assert_true(twos >= CALLS / 2 * 4 / 5);
}

static void an_evaluation_does_not_end_the_pattern(void **state)
{
	struct calls calls = {0};
	size_t at = 0;

	(void)state;
	for (size_t i = 0; i < CALLS; i++) {
		const bool evaluation = i % 100 > 90;

		at = evaluation ? 0 : at + 1;
		calls.idle_ns[i] = (evaluation || at % 6 == 1 ? 800000 : 20000) + noise(i);
	}
	find(&calls);
	assert_int_equal(calls.burst, 6);
}

static void few_calls_have_no_pattern(void **state)
{
	struct calls calls = {0};

	(void)state;
	assert_int_equal(nt_bursts_find(calls.idle_ns, 0, calls.first, &calls.burst), 0);
	assert_int_equal(calls.burst, 0);
	assert_int_equal(nt_bursts_find(calls.idle_ns, 7, calls.first, &calls.burst), 0);
	assert_int_equal(calls.burst, 0);
	find(&calls);
	assert_int_equal(calls.burst, 0);
}

/* The first step computes that many times as long, so that pauses lie between its calls. */
static void a_slow_first_step_is_not_cut_into_several(void **state)
{
	enum {
		BURST = 4,
		STEPS = 30,
	};
	struct nt_marker_op op[BURST * STEPS] = {0};
	struct nt_marker_kind kind = {.shape = 1, .bytes = 1000};
	const struct nt_markers markers = {
		.kind = &kind, .kinds = 1, .op = op, .ops = BURST * STEPS};
	struct nt_steps steps = {0};
	uint64_t at = 1000000;

	(void)state;
	for (size_t i = 0; i < markers.ops; i++) {
		at += (i < BURST ? 340000 : i % BURST ? 40000 : 350000) + noise(i);
		op[i] = (struct nt_marker_op){.start_ns = at, .end_ns = at + 50000};
		at += 50000;
	}
	assert_int_equal(nt_steps_cut(&markers, &steps), 0);
	/* The end of the first whole step is the first that is known; the last burst may be cut. */
	assert_int_equal(steps.steps, STEPS - 2);
	for (size_t i = 0; i < steps.steps; i++) {
		assert_int_equal(steps.step[i].count, 1);
		assert_int_equal(steps.step[i].last - steps.step[i].first, BURST - 1);
	}
	nt_steps_release(&steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_calls_with_a_long_pause_are_bursts),
		cmocka_unit_test(a_rank_that_is_waited_for_pauses_between_its_calls),
		cmocka_unit_test(calls_that_come_one_by_one_are_no_bursts),
		cmocka_unit_test(pauses_that_differ_little_part_steps_of_two_calls),
		cmocka_unit_test(an_evaluation_does_not_end_the_pattern),
		cmocka_unit_test(few_calls_have_no_pattern),
		cmocka_unit_test(a_slow_first_step_is_not_cut_into_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
