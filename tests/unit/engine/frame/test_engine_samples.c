/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/frame/samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/hash.h"

enum {
	MANY = 3000,
};

static struct nt_arena arena;
static struct nt_frame_sample sample[MANY];

static int tear_down(void **state)
{
	(void)state;
	nt_arena_release(&arena);
	return 0;
}

static uint64_t draw(uint64_t a, uint64_t b, uint64_t below)
{
	return nt_hash_mix(a * 977 + b) % below;
}

static const struct nt_frame_sample *sort(size_t samples)
{
	struct nt_frame_sample *sorted = NULL;

	assert_int_equal(nt_samples_sort(&arena, sample, samples, &sorted), 0);
	return sorted;
}

static bool is_before(const struct nt_frame_sample *a, const struct nt_frame_sample *b)
{
	const uint64_t left[] = {a->comm, a->epoch, a->number, a->rank, a->op};
	const uint64_t right[] = {b->comm, b->epoch, b->number, b->rank, b->op};

	for (size_t i = 0; i < 5; i++)
		if (left[i] != right[i])
			return left[i] < right[i];
	return a->bytes < b->bytes; /* the place at which it was */
}

/* As many different calls as said, of ranks in ascending order or in any. */
static void check(size_t samples, uint64_t numbers, bool any_rank)
{
	const struct nt_frame_sample *sorted;

	for (size_t i = 0; i < samples; i++)
		sample[i] = (struct nt_frame_sample){
			.comm = draw(i, 1, 3),
			.epoch = draw(i, 2, 2),
			.number = draw(i, 3, numbers),
			.rank = (uint32_t)(any_rank ? draw(i, 4, 50) : i / 5),
			.op = (uint8_t)draw(i, 5, 2),
			.bytes = i,
		};
	sorted = sort(samples);
	for (size_t i = 1; i < samples; i++)
		assert_true(is_before(&sorted[i - 1], &sorted[i]));
}

static void few_calls_of_many_ranks_are_sorted(void **state)
{
	(void)state;
	check(MANY, 4, false);
	check(MANY, 50, false);
}

static void ranks_may_come_in_any_order(void **state)
{
	(void)state;
	check(MANY, 4, true);
	check(MANY, 50, true);
}

static void any_number_of_different_calls_is_sorted(void **state)
{
	(void)state;
	check(MANY, 1000000, false);
	check(MANY, 1000000, true);
}

static void none_and_one_are_sorted(void **state)
{
	(void)state;
	assert_non_null(sort(0));
	sample[0] = (struct nt_frame_sample){.number = 7};
	assert_int_equal(sort(1)->number, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(few_calls_of_many_ranks_are_sorted, tear_down),
		cmocka_unit_test_teardown(ranks_may_come_in_any_order, tear_down),
		cmocka_unit_test_teardown(any_number_of_different_calls_is_sorted, tear_down),
		cmocka_unit_test_teardown(none_and_one_are_sorted, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
