/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step of a sequence of calls (cli/readers/period.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/readers/period.h"
#include "common/base/buf.h"

/* A letter a call; capital ones are the small calls. */
static void call(struct nt_buf *calls, const char *unit, int times)
{
	for (int i = 0; i < times; i++)
		assert_int_equal(nt_buf_append(calls, unit, strlen(unit)), 0);
}

/* idle_ns: before each call, NULL: not known. */
static struct nt_period find_period_by(struct nt_buf *calls, const uint64_t *idle_ns)
{
	struct nt_period period = {0};
	uint64_t shape[128];
	uint32_t kind[4096];

	assert_true(calls->len <= 4096);
	for (size_t i = 0; i < calls->len; i++)
		kind[i] = calls->data[i];
	for (uint32_t i = 0; i < 128; i++)
		shape[i] = (i >= 'A' && i <= 'Z' ? 4ULL : 1000000ULL) << 32 | i;
	assert_int_equal(nt_period_find(kind, calls->len, idle_ns, shape, 128, &period), 0);
	calls->len = 0;
	return period;
}

static struct nt_period find_period(struct nt_buf *calls)
{
	return find_period_by(calls, NULL);
}

static void a_step_is_the_period_of_the_calls(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	struct nt_period period;

	(void)state;
	call(&calls, "abcD", 30);
	period = find_period(&calls);
	assert_int_equal(period.calls, 4);
	assert_true(period.has_anchor);
	assert_int_equal(period.anchor, 'D');

	/* Runs of one kind come once. */
	call(&calls, "aabbb", 30);
	period = find_period(&calls);
	assert_int_equal(period.calls, 5);
	assert_int_equal(period.anchor, 'a');
	assert_int_equal(period.anchor_run, 1);
	/* A call that comes once ends a step, and so does a barrier of its kind behind it. */
	for (int i = 0; i < 30; i++)
		call(&calls, i % 10 == 9 ? "abNN" : "abN", 1);
	period = find_period(&calls);
	assert_int_equal(period.calls, 3);
	assert_int_equal(period.anchor_run, 0);
	call(&calls, "aaaaababaabb", 30);
	period = find_period(&calls);
	assert_int_equal(period.calls, 12);
	assert_int_equal(period.anchor, 'a');
	assert_int_equal(period.anchor_run, 4);

	call(&calls, "a", 300);
	assert_int_equal(find_period(&calls).calls, 1);
	assert_int_equal(find_period(&calls).calls, 1);
	call(&calls, "abcdefghijk", 1);
	assert_int_equal(find_period(&calls).calls, 1);
}

/* A barrier beside each 17th step is a call of the step's own kind: 17 steps fit better, and are none. */
static void a_barrier_beside_some_steps_does_not_join_them(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	struct nt_period period;

	(void)state;
	for (int i = 0; i < 21; i++) {
		call(&calls, "aaabababC", 17);
		call(&calls, "C", 1);
	}
	period = find_period(&calls);
	assert_int_equal(period.calls, 9);
	assert_true(period.has_anchor);
	assert_int_equal(period.anchor, 'C');
}

static void how_a_job_starts_and_what_it_seldom_does_are_no_steps(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	struct nt_period period;

	(void)state;
	/* Fifty layers that are alike, and a norm: the layer fits as well, almost. */
	for (int step = 0; step < 30; step++) {
		call(&calls, "ab", 50);
		call(&calls, "N", 1);
	}
	period = find_period(&calls);
	assert_int_equal(period.calls, 101);
	assert_int_equal(period.anchor, 'N');

	/* A checkpoint every tenth step. */
	call(&calls, "zzzyyyx", 1);
	for (int step = 0; step < 60; step++) {
		call(&calls, "aabbccN", 1);
		if (step % 10 == 9)
			call(&calls, "k", 1);
	}
	period = find_period(&calls);
	assert_int_equal(period.calls, 7);
	assert_int_equal(period.anchor, 'N');
}

/* An evaluation's loss, exchanged after each seventh step, and a barrier at each fourteenth. */
static void calls_between_some_steps_do_not_join_them(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	struct nt_period period;

	(void)state;
	for (int step = 0; step < 90; step++) {
		call(&calls, "aaaabbcbcbcbN", 1);
		if (step % 14 == 13)
			call(&calls, "N", 1);
		if (step % 7 == 6)
			call(&calls, "L", 1);
	}
	period = find_period(&calls);
	assert_int_equal(period.calls, 13);
	assert_int_equal(period.anchor, 'N');

	/* Of two scalars a step ends with the one of lower shape; four of ten steps are no proof. */
	for (int step = 0; step < 70; step++) {
		call(&calls, "aabMcbN", 1);
		if (step % 7 == 6)
			call(&calls, "L", 1);
	}
	period = find_period(&calls);
	assert_int_equal(period.calls, 7);
	assert_int_equal(period.anchor, 'M');
	for (int step = 0; step < 60; step++) {
		call(&calls, "aabMcbN", 1);
		if (step % 5 < 3)
			call(&calls, step % 5 == 1 ? "xy" : "zzz", 1);
	}
	assert_int_not_equal(find_period(&calls).calls, 7);

	/* Micro-batches with a scalar each, and gradients beside them. */
	for (int steps = 15; steps <= 30; steps += 15) {
		for (int step = 0; step < steps; step++) {
			call(&calls, "aabS", 12);
			call(&calls, "ggN", 1);
		}
		period = find_period(&calls);
		assert_int_equal(period.calls, 51);
		assert_int_equal(period.anchor, 'N');
	}
}

/* Two buckets a step: the pauses between bursts will tell, not the few long periods. */
static void equal_buckets_beside_other_calls_have_a_doubtful_period(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	struct nt_period period;

	(void)state;
	for (int step = 0; step < 75; step++) {
		call(&calls, "bb", 1);
		if (step % 10 == 9)
			call(&calls, "N", 1);
		if (step % 11 == 9)
			call(&calls, "L", 1);
	}
	period = find_period(&calls);
	assert_true(period.calls > 1);
	assert_true(period.doubtful);

	call(&calls, "abcD", 30);
	assert_false(find_period(&calls).doubtful);
}

/* As a recording does that lacks records: one call of each `part` is not in it. */
static void lose(struct nt_buf *calls, uint32_t part, uint64_t random)
{
	size_t kept = 0;

	for (size_t i = 0; i < calls->len; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		if ((random >> 33) % part)
			calls->data[kept++] = calls->data[i];
	}
	calls->len = kept;
}

static void lost_calls_change_no_step(void **state)
{
	static const char *const unit[] = {
		/* Layers of a pipeline's stage, its sends, gradients, a norm. */
		"ttttttttsttttttttsttttttttsttttttttsttttttttsttttttttsggeN",
		/* Experts, with gradients behind three groups of them: nothing comes once. */
		"aaaaaaaaaaaaaaaaaaaabaaaabaaaabaaaab",
		/* Micro-batches that receive and send, in turn. */
		"arsrsrsrsrsrsrsrsrsrsrsrsrsrsrsrsrsdeN",
	};
	nt_autobuf struct nt_buf calls = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
		const uint32_t length = (uint32_t)strlen(unit[i]);
		struct nt_period period;

		for (int step = 0; step < 40; step++) {
			call(&calls, unit[i], 1);
			if (step % 10 == 9)
				call(&calls, "M", 1);
		}
		lose(&calls, 100, 5);
		period = find_period(&calls);
		assert_in_range(period.calls, length - 1, length);
		assert_true(period.has_anchor);
		assert_false(period.doubtful && unit[i][length - 1] == 'N');
	}
}

/* Ranks that lack other records, and whose communicators have other names, have the same steps. */
static void the_steps_of_all_ranks_are_the_same(void **state)
{
	static const struct {
		const char *unit, *seldom;
		uint32_t steps, every, calls;
	} job[] = {
		{"aabbN", "L", 300, 10, 5},
		{"aaaabbbbcdN", "L", 300, 10, 11},
		{"aaaaaaaaaaaaaaaaarararararararararararararararN", "", 30, 1, 47},
		{"aabbcaabbcaabbcN", "", 100, 1, 16},
	};
	nt_autobuf struct nt_buf calls = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(job) / sizeof(job[0]); i++)
		for (uint64_t seed = 1; seed <= 30; seed++) {
			struct nt_period period;

			/* What a job exchanges at its start. */
			call(&calls, "z", 12);
			for (uint32_t step = 0; step < job[i].steps; step++) {
				call(&calls, job[i].unit, 1);
				if (step % job[i].every == 0)
					call(&calls, job[i].seldom, 1);
			}
			lose(&calls, 100, seed);
			period = find_period(&calls);
			assert_in_range(period.calls, job[i].calls - 1, job[i].calls);
			assert_int_equal(period.anchor, 'N');
		}
}

/* Each 12th step has a checkpoint's barriers and another loss, which lengthen a short step by half. */
static void scalars_between_steps_are_no_part_of_them(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	struct nt_period period;

	(void)state;
	for (int step = 0; step < 60; step++) {
		call(&calls, "abbN", 1);
		if (step % 12 == 11)
			call(&calls, "NMM", 1);
		if (step % 15 == 14)
			call(&calls, "M", 1);
	}
	period = find_period(&calls);
	assert_int_equal(period.calls, 4);
	assert_int_equal(period.anchor, 'N');
}

/* A step ends with the last call of a run that is long enough. */
static void a_run_ends_a_step(void **state)
{
	static const uint32_t call[] = {1, 1, 1, 2, 1, 2, 1, 1, 1, 1, 2, 1, 1};
	const struct nt_period period = {
		.calls = 6, .has_anchor = true, .anchor = 1, .anchor_run = 2};
	const struct nt_period single = {.calls = 2, .has_anchor = true, .anchor = 1};

	(void)state;
	for (size_t i = 0; i < 13; i++)
		assert_int_equal(nt_period_ends(&period, call, 13, i), i == 2 || i == 9 || i == 12);
	for (size_t i = 0; i < 13; i++)
		assert_int_equal(nt_period_ends(&single, call, 13, i), call[i] == 1);
}

/*
 * Ten units and a scalar: a step of ten layers pauses longer at its end, a unit with an entry of a log as
 * long as each.
 */
static void a_pause_tells_layers_from_steps_with_a_log(void **state)
{
	nt_autobuf struct nt_buf calls = {0};
	uint64_t idle_ns[4096];

	(void)state;
	for (int is_step = 0; is_step < 2; is_step++) {
		size_t n = 0;

		for (int i = 0; i < 60; i++) {
			call(&calls, "aab", 10);
			call(&calls, "L", 1);
		}
		for (size_t i = 0; i < calls.len; i++) {
			n += calls.data[i] != 'L';
			idle_ns[i] = calls.data[i] == 'L'     ? 1000
				     : n % 3 != 1             ? 10000
				     : is_step && n % 30 == 1 ? 90000
							      : 40000;
		}
		assert_int_equal(find_period_by(&calls, idle_ns).calls, is_step ? 31 : 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_tells_layers_from_steps_with_a_log),
		cmocka_unit_test(a_step_is_the_period_of_the_calls),
		cmocka_unit_test(a_barrier_beside_some_steps_does_not_join_them),
		cmocka_unit_test(how_a_job_starts_and_what_it_seldom_does_are_no_steps),
		cmocka_unit_test(calls_between_some_steps_do_not_join_them),
		cmocka_unit_test(equal_buckets_beside_other_calls_have_a_doubtful_period),
		cmocka_unit_test(lost_calls_change_no_step),
		cmocka_unit_test(the_steps_of_all_ranks_are_the_same),
		cmocka_unit_test(scalars_between_steps_are_no_part_of_them),
		cmocka_unit_test(a_run_ends_a_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
