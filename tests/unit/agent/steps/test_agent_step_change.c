/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sequences of calls that change: what is learned anew and what is not. */
#include "tests/unit/agent/step_sequence.h"

static void a_changed_sequence_is_learned_anew(void **state)
{
	struct sequence s;

	(void)state;
	start(&s);
	for (int i = 0; i < 60; i++) {
		(void)reduce(&s, 1 << 20);
		(void)reduce(&s, 2 << 20);
	}
	assert_int_equal(info(&s).period, 2);
	for (int i = 0; i < 60; i++) {
		(void)reduce(&s, 5 << 20);
		(void)reduce(&s, 6 << 20);
		(void)reduce(&s, 7 << 20);
	}
	assert_int_equal(info(&s).period, 3);
	assert_int_equal(info(&s).found_count, 2);
	nt_step_free(s.step);
}

/* No two take the same time. */
static void layer(struct sequence *s)
{
	(void)call(s, 2, NT_OP_ALL_REDUCE, 1 << 20, MS + s->calls * 7919 % 101 * (MS / 2000));
}

/* Twenty calls of the tensor group, and the gradients. */
static void train(struct sequence *s, int steps)
{
	for (int step = 0; step < steps; step++) {
		for (int i = 0; i < 20; i++)
			layer(s);
		(void)call(s, 1, NT_OP_ALL_REDUCE, 64 << 20, MS);
	}
}

static void an_evaluation_leaves_the_step_what_it_is(void **state)
{
	struct sequence s;
	uint64_t begins;

	(void)state;
	start(&s);
	train(&s, 20);
	assert_int_equal(info(&s).period, 21);
	for (int phase = 0; phase < 3; phase++) {
		begins = s.begins;
		for (int i = 0; i < 10 * 20; i++)
			layer(&s);
		assert_int_equal(s.begins, begins);
		train(&s, 10);
		/* The first may be taken for a look at what its length is. */
		assert_in_range(s.begins, begins + 9, begins + 10);
		assert_int_equal(info(&s).period, 21);
		assert_int_equal(info(&s).anchor_comm, 1);
	}
	/* What goes on for longer is what steps are now. */
	for (int i = 0; i < 20 * 20; i++)
		layer(&s);
	assert_int_equal(info(&s).period, 1);
	nt_step_free(s.step);
}

/* Fourteen equal buckets, and the loss, which marks the end of the step. */
static void train_with_loss(struct sequence *s, int steps)
{
	for (int step = 0; step < steps; step++) {
		for (int i = 0; i < 14; i++) {
			s->launches += i ? 10 : 80;
			(void)reduce(s, 25 << 20);
		}
		(void)reduce(s, 4);
	}
}

static void an_evaluation_of_the_call_that_begins_a_step_leaves_it_what_it_is(void **state)
{
	struct sequence s;
	uint64_t begins;

	(void)state;
	start(&s);
	train_with_loss(&s, 30);
	assert_int_equal(info(&s).period, 15);
	for (int phase = 0; phase < 5; phase++) {
		begins = s.begins;
		for (int i = 0; i < 8; i++)
			(void)reduce(&s, 4);
		/* The first of them might still be anything. */
		assert_int_equal(s.begins, begins + 1);
		train_with_loss(&s, 39);
		assert_int_equal(s.begins, begins + 1 + 39);
		assert_int_equal(info(&s).period, 15);
	}
	/* What goes on for longer is what steps are now. */
	for (int i = 0; i < 20 * 15; i++)
		(void)reduce(&s, 4);
	assert_int_not_equal(info(&s).period, 15);
	nt_step_free(s.step);
}

static void another_communicator_with_the_same_call_period_is_learned_anew(void **state)
{
	struct sequence s;
	uint64_t begins;

	(void)state;
	start(&s);
	for (int i = 0; i < 60; i++)
		(void)call(&s, 1, NT_OP_ALL_REDUCE, 1 << 20, 20 * MS);
	begins = s.begins;
	for (int i = 0; i < 60; i++)
		(void)call(&s, 2, NT_OP_ALL_REDUCE, 1 << 20, 20 * MS);
	assert_int_equal(info(&s).anchor_comm, 2);
	assert_true(s.begins > begins + 40);
	nt_step_free(s.step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_changed_sequence_is_learned_anew),
		cmocka_unit_test(an_evaluation_leaves_the_step_what_it_is),
		cmocka_unit_test(an_evaluation_of_the_call_that_begins_a_step_leaves_it_what_it_is),
		cmocka_unit_test(another_communicator_with_the_same_call_period_is_learned_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
