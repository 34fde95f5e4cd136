/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/cupti/buffer_pool.h"

enum {
	THREADS = 4,
	ROUNDS = 5000,
	HELD = NT_BUFFERS / THREADS, /* by a thread at once: together all */
};

static uint8_t *taken[NT_BUFFERS];

static void take_all(void)
{
	for (int i = 0; i < NT_BUFFERS; i++) {
		taken[i] = nt_buffer_pool_take();
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % 8, 0);
		memset(taken[i], i, NT_BUFFER_BYTES);
	}
	assert_null(nt_buffer_pool_take());
}

static void all_can_be_taken_and_given_back_in_any_order(void **state)
{
	(void)state;
	for (int round = 0; round < 3; round++) {
		take_all();
		for (int i = 0; i < NT_BUFFERS; i++) {
			/* 1, 77 and 101 have no common factor with their number. */
			const int at = i * (round == 0 ? 1 : round == 1 ? 77 : 101) % NT_BUFFERS;

			assert_int_equal(taken[at][NT_BUFFER_BYTES - 1], (uint8_t)at);
			assert_int_equal(nt_buffer_pool_give(taken[at]), 1);
		}
	}
}

static void one_that_is_given_back_can_be_taken_again(void **state)
{
	(void)state;
	take_all();
	assert_int_equal(nt_buffer_pool_give(taken[130]), 1);
	taken[130] = nt_buffer_pool_take();
	assert_non_null(taken[130]);
	assert_null(nt_buffer_pool_take());
	for (int i = 0; i < NT_BUFFERS; i++)
		assert_int_equal(nt_buffer_pool_give(taken[i]), 1);
}

static void what_was_not_taken_is_refused(void **state)
{
	static uint8_t foreign[NT_BUFFER_BYTES];
	uint8_t *buffer = nt_buffer_pool_take();

	(void)state;
	assert_non_null(buffer);
	assert_int_equal(nt_buffer_pool_give(foreign), 0);
	assert_int_equal(nt_buffer_pool_give(NULL), 0);
	assert_int_equal(nt_buffer_pool_give(buffer + 1), 0);
	assert_int_equal(nt_buffer_pool_give(buffer + NT_BUFFER_BYTES), 0);
	assert_int_equal(nt_buffer_pool_give(buffer), 1);
	assert_int_equal(nt_buffer_pool_give(buffer), 0);
}

/* CUPTI gives a buffer to the client that registered last, and that one frees it. */
static void another_client_may_free_a_buffer(void **state)
{
	int left = 0;

	(void)state;
	free(nt_buffer_pool_take());
	while (left < NT_BUFFERS && (taken[left] = nt_buffer_pool_take()))
		left++;
	assert_in_range(left, NT_BUFFERS - 1, NT_BUFFERS);
	for (int i = 0; i < left; i++)
		assert_int_equal(nt_buffer_pool_give(taken[i]), 1);
}

struct worker {
	pthread_t thread;
	uint32_t number, failures;
};

/* Writes its number into what it took, and finds it there. */
static void *work(void *data)
{
	struct worker *worker = data;
	uint8_t *held[HELD] = {NULL};

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint8_t **slot = &held[i * 7 % (worker->number + HELD / 2)];

		if (*slot) {
			worker->failures += **slot != worker->number;
			worker->failures += nt_buffer_pool_give(*slot) != 1;
		}
		*slot = nt_buffer_pool_take();
		if (*slot)
			**slot = (uint8_t)worker->number;
		else
			worker->failures++;
	}
	for (uint32_t i = 0; i < HELD; i++)
		worker->failures += held[i] && nt_buffer_pool_give(held[i]) != 1;
	return NULL;
}

static void threads_never_share_a_buffer(void **state)
{
	struct worker worker[THREADS];

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){.number = i + 1};
		assert_int_equal(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(worker[i].thread, NULL), 0);
		assert_int_equal(worker[i].failures, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_can_be_taken_and_given_back_in_any_order),
		cmocka_unit_test(one_that_is_given_back_can_be_taken_again),
		cmocka_unit_test(what_was_not_taken_is_refused),
		cmocka_unit_test(threads_never_share_a_buffer),
		cmocka_unit_test(another_client_may_free_a_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
