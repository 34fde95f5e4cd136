/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step that is found in a sequence of calls. */
#include "tests/unit/agent/step_sequence.h"

static void equal_calls_are_a_step_each(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 4; i++)
		assert_false(reduce(&s, 1 << 20));
	for (int i = 0; i < 100; i++)
		assert_true(reduce(&s, 1 << 20));
	assert_int_equal(info(&s).period, 1);
	assert_int_equal(info(&s).found_count, 1);
	nt_step_free(s.step);
}

static void a_thousand_tensor_calls_and_one_reduction_are_one_step(void **state)
{
	uint64_t detected = 0;
	struct sequence s;

	(void)state;
	start(&s);
	for (uint64_t step = 1; step <= 8; step++) {
		for (int i = 0; i < 1000; i++)
			(void)call(&s, 2, NT_OP_ALL_REDUCE, 1 << 20, MS / 100);
		if (call(&s, 1, NT_OP_ALL_REDUCE, 64 << 20, MS) && info(&s).period == 1001 &&
		    !detected)
			detected = step;
	}
	assert_int_equal(info(&s).period, 1001);
	assert_in_range(detected, 3, 5);
	/* It begins with the rare call. */
	assert_int_equal(s.last_begin, s.calls);
	assert_int_equal(info(&s).anchor_comm, 1);
	nt_step_free(s.step);
}

static void the_period_is_found_within_three_of_it(void **state)
{
	uint64_t first = 0;
	struct sequence s;

	(void)state;
	start(&s);
	for (uint64_t step = 0; step < 5; step++) {
		for (uint64_t i = 0; i < 40; i++) {
			(void)reduce(&s, (100 + i) << 10);
			if (!first && info(&s).period == 40)
				first = s.calls;
		}
	}
	assert_int_equal(info(&s).period, 40);
	assert_in_range(first, 120, 128);
	nt_step_free(s.step);
}

static void ranks_that_make_the_same_calls_put_the_boundary_at_the_same_call(void **state)
{
	static const uint64_t bytes[] = {5 << 20, 3 << 20, 5 << 20, 7 << 20, 7 << 20, 3 << 20};
	struct sequence a, b;

	(void)state;
	start(&a);
	start(&b);
	/* b is watched from the middle of a step on. */
	for (int i = 0; i < 6 * 20; i++) {
		bool begins_a = reduce(&a, bytes[i % 6]);
		bool begins_b = i >= 27 && reduce(&b, bytes[i % 6]);

		if (i > 80)
			assert_int_equal(begins_a, begins_b);
	}
	assert_int_equal(info(&a).period, 6);
	assert_int_equal(info(&b).period, 6);
	assert_int_equal(info(&a).anchor_kind, info(&b).anchor_kind);
	nt_step_free(a.step);
	nt_step_free(b.step);
}

static void a_small_call_now_and_then_does_not_count(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 300; i++) {
		(void)reduce(&s, 4 << 20);
		(void)reduce(&s, 6 << 20);
		if (i % 7 == 0)
			(void)reduce(&s, 8);
		if (i % 50 == 3)
			(void)call(&s, 1, NT_OP_BARRIER, 0, MS);
	}
	assert_int_equal(info(&s).period, 2);
	assert_int_equal(info(&s).found_count, 1);
	nt_step_free(s.step);
}

static void small_calls_count_where_there_are_no_others(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 50; i++) {
		(void)call(&s, 1, NT_OP_BARRIER, 0, MS);
		(void)call(&s, 2, NT_OP_BARRIER, 0, MS);
	}
	assert_int_equal(info(&s).period, 2);
	nt_step_free(s.step);
}

static void the_calls_of_the_beginning_do_not_hide_the_step(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (uint64_t i = 0; i < 60; i++)
		(void)call(&s, 1, NT_OP_BROADCAST, (1 + i % 20) << 20, MS);
	for (int i = 0; i < 40; i++) {
		(void)reduce(&s, 1 << 20);
		(void)reduce(&s, 2 << 20);
		(void)reduce(&s, 3 << 20);
	}
	assert_int_equal(info(&s).period, 3);
	nt_step_free(s.step);
}

static void four_equal_buckets_and_a_loss_are_one_step(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 40; i++) {
		(void)call(&s, 1, NT_OP_ALL_REDUCE, 16 << 20, 25 * MS);
		for (int b = 0; b < 3; b++)
			(void)call(&s, 1, NT_OP_ALL_REDUCE, 16 << 20, 6 * MS);
		(void)call(&s, 2, NT_OP_ALL_REDUCE, 12, MS);
	}
	assert_int_equal(info(&s).period, 5);
	/* The loss is the rarest: it begins the step. */
	assert_int_equal(info(&s).anchor_comm, 2);
	assert_int_equal(s.last_begin, s.calls);
	nt_step_free(s.step);
}

/* Sharded weights: gathered layer by layer, twice a step, and each gradient scattered. */
static void equal_layers_are_no_steps(void **state)
{
	(void)state;
	for (int layers = 4; layers <= 32; layers *= 2) {
		uint64_t before = 0, early = 0;
		struct sequence s;

		start(&s);
		for (int step = 0; step < 60; step++) {
			for (int i = 0; i < layers; i++)
				(void)call(&s, 1, NT_OP_ALL_GATHER, 1 << 20, MS);
			for (int i = 0; i < layers; i++) {
				(void)call(&s, 1, NT_OP_ALL_GATHER, 1 << 20, MS);
				(void)call(&s, 1, NT_OP_REDUCE_SCATTER, 1 << 20, MS);
			}
			(void)call(&s, 2, NT_OP_ALL_REDUCE, 16, MS);
			/* After the first few each step begins once. */
			if (step == 12)
				early = s.begins;
			if (step > 12)
				assert_int_equal(s.begins, before + 1);
			before = s.begins;
		}
		assert_true(early > 0);
		assert_int_equal(info(&s).period, 3 * layers);
		nt_step_free(s.step);
	}
}

static void equal_buckets_alone_are_told_by_their_times(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 40; i++) {
		(void)call(&s, 1, NT_OP_ALL_REDUCE, 16 << 20, 25 * MS);
		for (int b = 0; b < 3; b++)
			(void)call(&s, 1, NT_OP_ALL_REDUCE, 16 << 20, 3 * MS);
	}
	assert_int_equal(info(&s).period, 4);
	assert_int_equal(s.calls - s.last_begin, 3); /* the one after the long time */
	nt_step_free(s.step);
}

static void a_barrier_every_ten_steps_does_not_make_the_step_longer(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 400; i++) {
		(void)call(&s, 1, NT_OP_ALL_REDUCE, 1 << 19, 21 * MS);
		if (i % 10 == 9) {
			(void)call(&s, 1, NT_OP_BARRIER, 0, MS / 10);
			(void)call(&s, 1, NT_OP_BROADCAST, 32, MS / 10);
		}
	}
	assert_int_equal(info(&s).period, 1);
	assert_int_equal(info(&s).found_count, 1);
	nt_step_free(s.step);
}

/*
 * A stage in the middle of a pipeline: a host that runs ahead enqueues all sends and receives in a burst,
 * and waits once, at the end. Ten pairs and one reduction are one step, not ten.
 */
static void pairs_in_a_burst_are_no_steps_of_their_own(void **state)
{
	(void)state;
	for (int pairs = 8; pairs <= 20; pairs += 4) {
		uint64_t before = 0;
		struct sequence s;

		start(&s);
		for (int i = 0; i < 60; i++) {
			for (int p = 0; p < pairs; p++) {
				(void)call(&s, 2, NT_OP_RECV, 8 << 20, p ? MS / 10 : 3000 * MS);
				s.launches += 60;
				if (p == pairs - 1)
					(void)call(&s, 1, NT_OP_ALL_REDUCE, 64 << 20, MS / 10);
				(void)call(&s, 2, NT_OP_SEND, 8 << 20, MS / 10);
			}
			s.launches += 10;
			(void)call(&s, 3, NT_OP_ALL_REDUCE, 16, MS / 10);
			if (i > 12)
				assert_int_equal(s.begins, before + 1);
			before = s.begins;
		}
		nt_step_free(s.step);
	}
}

static void sizes_that_differ_each_time_do_not_hide_the_step(void **state)
{
	uint64_t seed = 1;
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 200; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		(void)call(&s, 1, NT_OP_ALL_TO_ALL, (1 << 20) + (seed >> 44), MS);
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		(void)call(&s, 1, NT_OP_ALL_GATHER, (1 << 20) + (seed >> 44), MS);
		(void)call(&s, 1, NT_OP_ALL_GATHER, (1 << 20) + (seed >> 43), MS);
	}
	assert_int_equal(info(&s).period, 3);
	assert_true(s.begins > 150);
	nt_step_free(s.step);
}

static void calls_whose_order_varies_have_an_anchor(void **state)
{
	uint64_t seed = 1, seen = 0;
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 200; i++) {
		uint64_t bytes[] = {1 << 20, 2 << 20, 3 << 20, 4 << 20, 2 << 20, 3 << 20};

		for (int k = 5; k > 1; k--) {
			uint64_t keep;
			int j;

			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			j = 1 + (int)(seed >> 33) % k;
			keep = bytes[k];
			bytes[k] = bytes[j];
			bytes[j] = keep;
		}
		for (int k = 0; k < 6; k++)
			seen += reduce(&s, bytes[k]);
	}
	assert_true(info(&s).found);
	assert_int_equal(info(&s).period, 6);
	assert_in_range(seen, 180, 200);
	nt_step_free(s.step);
}

/* Two of the calls that begin a step, and others in any order. Returns how many steps began. */
static uint64_t anchored_step(struct sequence *s, uint64_t *seed, bool cut)
{
	uint64_t bytes[] = {2 << 20, 2 << 20, 2 << 20, 3 << 20, 3 << 20,
			    3 << 20, 4 << 20, 4 << 20, 4 << 20};
	uint64_t begun = 0;

	for (int i = cut; i < 2; i++)
		begun += reduce(s, 64 << 20);
	for (int k = 8; k >= 0; k--) {
		uint64_t keep = bytes[k];
		int j;

		*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
		j = (int)((*seed >> 33) % (uint64_t)(k + 1));
		bytes[k] = bytes[j];
		bytes[j] = keep;
		begun += reduce(s, bytes[k]);
	}
	return begun;
}

static void a_gap_that_ends_among_calls_that_begin_a_step_makes_no_short_one(void **state)
{
	uint64_t seed = 1, seen = 0;
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 200; i++)
		seen += anchored_step(&s, &seed, false);
	assert_true(info(&s).found && info(&s).by_anchor);
	assert_in_range(seen, 150, 200);
	for (int i = 0; i < 20; i++) {
		nt_step_gap(s.step);
		assert_int_equal(anchored_step(&s, &seed, true), 0);
		assert_int_equal(anchored_step(&s, &seed, false), 1);
		assert_int_equal(anchored_step(&s, &seed, false), 1);
	}
	nt_step_free(s.step);
}

static void calls_without_any_order_are_taken_one_by_one(void **state)
{
	uint64_t seed = 1;
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 3000; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		(void)reduce(&s, (1 + (seed >> 33) % 13) << 20);
	}
	assert_int_equal(info(&s).period, 1);
	assert_true(s.begins > 2500);
	nt_step_free(s.step);
}

static void steps_are_numbered_by_the_calls_that_begin_them(void **state)
{
	struct sequence s;
	uint64_t before = 0;

	(void)state;
	start(&s);
	for (int i = 0; i < 30; i++) {
		(void)reduce(&s, 1 << 20);
		if (reduce(&s, 2 << 20) || s.last_begin == s.calls - 1) {
			assert_true(!before || info(&s).number == before + 1);
			before = info(&s).number;
		}
	}
	assert_int_equal(before, 30);
	nt_step_free(s.step);
}

static void more_kinds_than_fit_are_counted_and_harmless(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (uint64_t i = 0; i < 2 * NT_STEP_KINDS; i++)
		(void)call(&s, i, NT_OP_ALL_REDUCE, (1 << 20) + i, MS);
	assert_true(info(&s).unknown_kinds > 0);
	/* When they have left the ring, their places are free again. */
	for (int i = 0; i < 2 * NT_STEP_RING; i++)
		(void)call(&s, 7, NT_OP_ALL_REDUCE, 9 << 20, MS);
	for (int i = 0; i < 2 * NT_STEP_RING; i++)
		(void)call(&s, 7, i % 2 ? NT_OP_ALL_GATHER : NT_OP_REDUCE_SCATTER, 3 << 20, MS);
	assert_int_equal(info(&s).period, 2);
	nt_step_free(s.step);
}

static void the_longest_period_is_a_third_of_the_ring(void **state)
{
	enum { LONG = NT_STEP_RING / 3 };
	struct sequence s;

	(void)state;
	start(&s);
	for (int step = 0; step < 5; step++) {
		for (int i = 1; i < LONG; i++)
			(void)call(&s, 2, NT_OP_ALL_REDUCE, 1 << 20, MS / 100);
		(void)call(&s, 1, NT_OP_ALL_REDUCE, 64 << 20, MS);
	}
	assert_int_equal(info(&s).period, LONG);
	nt_step_free(s.step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_calls_are_a_step_each),
		cmocka_unit_test(a_thousand_tensor_calls_and_one_reduction_are_one_step),
		cmocka_unit_test(the_period_is_found_within_three_of_it),
		cmocka_unit_test(ranks_that_make_the_same_calls_put_the_boundary_at_the_same_call),
		cmocka_unit_test(a_small_call_now_and_then_does_not_count),
		cmocka_unit_test(small_calls_count_where_there_are_no_others),
		cmocka_unit_test(the_calls_of_the_beginning_do_not_hide_the_step),
		cmocka_unit_test(four_equal_buckets_and_a_loss_are_one_step),
		cmocka_unit_test(equal_layers_are_no_steps),
		cmocka_unit_test(equal_buckets_alone_are_told_by_their_times),
		cmocka_unit_test(a_barrier_every_ten_steps_does_not_make_the_step_longer),
		cmocka_unit_test(pairs_in_a_burst_are_no_steps_of_their_own),
		cmocka_unit_test(sizes_that_differ_each_time_do_not_hide_the_step),
		cmocka_unit_test(calls_whose_order_varies_have_an_anchor),
		cmocka_unit_test(a_gap_that_ends_among_calls_that_begin_a_step_makes_no_short_one),
		cmocka_unit_test(calls_without_any_order_are_taken_one_by_one),
		cmocka_unit_test(steps_are_numbered_by_the_calls_that_begin_them),
		cmocka_unit_test(more_kinds_than_fit_are_counted_and_harmless),
		cmocka_unit_test(the_longest_period_is_a_third_of_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
