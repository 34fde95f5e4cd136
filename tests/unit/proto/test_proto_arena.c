/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/arena.h"

#include <errno.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_taken_is_zeroed_aligned_and_apart(void **state)
{
	nt_autoarena struct nt_arena arena = {0};
	unsigned char *taken[2000];

	(void)state;
	for (size_t i = 0; i < 2000; i++) {
		size_t size = i * 37 % 300 + 1;

		taken[i] = nt_arena_alloc(&arena, size);
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % alignof(max_align_t), 0);
		for (size_t j = 0; j < size; j++)
			assert_int_equal(taken[i][j], 0);
		memset(taken[i], (int)i, size);
	}
	for (size_t i = 0; i < 2000; i++)
		for (size_t j = 0; j < i * 37 % 300 + 1; j++)
			assert_int_equal(taken[i][j], (unsigned char)i);
}

static void the_limit_holds_to_the_byte(void **state)
{
	nt_autoarena struct nt_arena arena = {.limit = 1024};

	(void)state;
	assert_non_null(nt_arena_alloc(&arena, 1000));
	assert_int_equal(arena.taken, 1008);
	assert_null(nt_arena_alloc(&arena, 17));
	assert_int_equal(arena.refused, -ENOBUFS);
	assert_non_null(nt_arena_alloc(&arena, 16));
	assert_null(nt_arena_alloc(&arena, 1));
	assert_int_equal(arena.taken, 1024);
}

static void absurd_sizes_are_refused(void **state)
{
	nt_autoarena struct nt_arena arena = {0};

	(void)state;
	assert_null(nt_arena_alloc(&arena, SIZE_MAX));
	assert_int_equal(arena.refused, -ENOMEM);
	assert_null(nt_arena_alloc(&arena, SIZE_MAX - 15));
}

static void large_pieces_have_room(void **state)
{
	nt_autoarena struct nt_arena arena = {.first = 64};
	unsigned char *large;

	(void)state;
	assert_non_null(nt_arena_alloc(&arena, 10));
	large = nt_arena_alloc(&arena, 5 << 20);
	assert_non_null(large);
	large[(5 << 20) - 1] = 1;
	assert_non_null(nt_arena_alloc(&arena, 10));
}

static void releasing_twice_is_releasing_once(void **state)
{
	struct nt_arena arena = {0};

	(void)state;
	assert_non_null(nt_arena_alloc(&arena, 10));
	nt_arena_release(&arena);
	nt_arena_release(&arena);
	assert_int_equal(arena.taken, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_is_zeroed_aligned_and_apart),
		cmocka_unit_test(the_limit_holds_to_the_byte),
		cmocka_unit_test(absurd_sizes_are_refused),
		cmocka_unit_test(large_pieces_have_room),
		cmocka_unit_test(releasing_twice_is_releasing_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
