/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/call_order.h"

#include <string.h>

#include "tests/unit/agent/step_sequence.h"

/* A communicator whose calls are added, and the numbers that became due. */
struct series {
	struct nt_call_order order;
	struct nt_call_series series, other;
	uint64_t now_ns, due[64], due_ns[64];
	uint32_t count;
};

static void add_to(struct series *s, struct nt_call_series *series, uint64_t comm, uint64_t number)
{
	const struct nt_ordered_call added = {
		.number = number,
		.call = {.comm = comm, .entry_ns = s->now_ns += MS, .ret_ns = s->now_ns + MS},
	};
	struct nt_ordered_call due[NT_CALL_ORDER_DUE];
	uint32_t n = nt_call_order_add(&s->order, series, &added, due);

	for (uint32_t i = 0; i < n; i++) {
		assert_true(due[i].call.ret_ns >= due[i].call.entry_ns);
		s->due_ns[s->count] = due[i].call.entry_ns;
		s->due[s->count++] = due[i].number;
	}
}

static void add(struct series *s, uint64_t number)
{
	add_to(s, &s->series, 1, number);
}

static void assert_due(const struct series *s, const uint64_t *expected, uint32_t count)
{
	assert_int_equal(s->count, count);
	assert_memory_equal(s->due, expected, count * sizeof(*expected));
	for (uint32_t i = 1; i < count; i++)
		assert_true(s->due_ns[i] >= s->due_ns[i - 1]);
}

#define ADD(s, ...)                                                                                \
	do {                                                                                       \
		const uint64_t numbers[] = {__VA_ARGS__};                                          \
		for (size_t i_ = 0; i_ < sizeof(numbers) / sizeof(numbers[0]); i_++)               \
			add(s, numbers[i_]);                                                       \
	} while (0)
#define DUE(s, ...)                                                                                \
	do {                                                                                       \
		const uint64_t numbers[] = {__VA_ARGS__};                                          \
		assert_due(s, numbers, sizeof(numbers) / sizeof(numbers[0]));                      \
	} while (0)

static void calls_become_due_in_the_order_of_their_numbers(void **state)
{
	struct series s = {.now_ns = MS};

	(void)state;
	ADD(&s, 7, 9, 8, 10, 13, 11);
	DUE(&s, 7, 8, 9, 10, 11);
	ADD(&s, 12, 14);
	DUE(&s, 7, 8, 9, 10, 11, 12, 13, 14);
}

static void a_number_that_does_not_come_delays_three_calls(void **state)
{
	struct series s = {.now_ns = MS};

	(void)state;
	ADD(&s, 1, 3, 4, 5);
	DUE(&s, 1);
	ADD(&s, 6);
	DUE(&s, 1, 3, 4, 5, 6);
	/* It comes after all. */
	ADD(&s, 2, 7);
	DUE(&s, 1, 3, 4, 5, 6, 2, 7);
	/* After lost calls nothing is waited for. */
	ADD(&s, 20, 21);
	DUE(&s, 1, 3, 4, 5, 6, 2, 7, 20, 21);
}

static void where_numbers_are_skipped_always_no_call_is_held(void **state)
{
	struct series s = {.now_ns = MS};

	(void)state;
	for (uint64_t number = 1; number < 20; number += 2)
		add(&s, number);
	s.count = 0;
	ADD(&s, 21, 23, 25);
	DUE(&s, 21, 23, 25);
}

static void communicators_do_not_wait_for_each_other(void **state)
{
	struct series s = {.now_ns = MS};

	(void)state;
	ADD(&s, 1, 3);
	add_to(&s, &s.other, 2, 8);
	add_to(&s, &s.other, 2, 9);
	DUE(&s, 1, 8, 9);
	ADD(&s, 2);
	DUE(&s, 1, 8, 9, 2, 3);
	/* What one of them holds for good takes no room from the other. */
	ADD(&s, 5, 6, 7);
	s.count = 0;
	s.now_ns += 20000 * MS;
	add_to(&s, &s.other, 2, 11);
	add_to(&s, &s.other, 2, 10);
	DUE(&s, 10, 11);
}

static void what_is_held_at_a_gap_is_dropped(void **state)
{
	struct series s = {.now_ns = MS};

	(void)state;
	ADD(&s, 1, 3);
	nt_call_order_gap(&s.order);
	ADD(&s, 2, 3);
	DUE(&s, 1, 2, 3);
}

/* Two buckets of gradients, reduced by two threads: either may return first. */
static void a_step_of_two_concurrent_calls_keeps_its_period(void **state)
{
	static const uint64_t bytes[] = {1056768, 529408};
	struct nt_ordered_call due[NT_CALL_ORDER_DUE];
	struct nt_call_order order = {0};
	struct nt_call_series series = {0};
	struct sequence s;
	uint64_t seed = 3;
	const uint64_t steps = 2000;

	(void)state;
	start(&s);
	for (uint64_t i = 0; i < steps; i++) {
		bool swapped =
			(seed = seed * 6364136223846793005ULL + 1442695040888963407ULL) >> 63;

		for (uint64_t j = 0; j < 2; j++) {
			uint64_t at = j ^ swapped;
			const struct nt_ordered_call next = {
				.number = 1 + 2 * i + at,
				.call = {.comm = 1,
					 .comm_size = 2,
					 .op = NT_OP_ALL_REDUCE,
					 .bytes = bytes[at],
					 .entry_ns = s.now_ns += j ? MS / 50 : 20 * MS},
			};
			uint32_t n = nt_call_order_add(&order, &series, &next, due);

			for (uint32_t k = 0; k < n; k++)
				s.begins += nt_step_call(s.step, &due[k].call);
		}
	}
	assert_int_equal(info(&s).period, 2);
	assert_in_range(s.begins, steps - 10, steps);
	nt_step_free(s.step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_become_due_in_the_order_of_their_numbers),
		cmocka_unit_test(a_number_that_does_not_come_delays_three_calls),
		cmocka_unit_test(where_numbers_are_skipped_always_no_call_is_held),
		cmocka_unit_test(communicators_do_not_wait_for_each_other),
		cmocka_unit_test(what_is_held_at_a_gap_is_dropped),
		cmocka_unit_test(a_step_of_two_concurrent_calls_keeps_its_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
