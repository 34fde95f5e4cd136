/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/link_queue.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct item {
	struct nt_link_entry entry; /* first */
	uint32_t number;
};

static struct item items[NT_LINK_QUEUE_MAX + 16];
static size_t used;

static int push(struct nt_link_queue *queue, enum nt_link_job job, uint64_t owner, uint32_t number)
{
	struct item *item = &items[used++];

	assert_true(used <= sizeof(items) / sizeof(items[0]));
	item->number = number;
	return nt_link_queue_push(queue, job, owner, &item->entry);
}

/* 0: it is empty. */
static uint32_t pop(struct nt_link_queue *queue)
{
	struct nt_link_entry *entry = nt_link_queue_pop(queue);

	return entry ? ((struct item *)(void *)entry)->number : 0;
}

static int start(void **state)
{
	(void)state;
	used = 0;
	return 0;
}

static void what_is_freed_goes_before_what_is_made_and_that_before_looks(void **state)
{
	struct nt_link_queue queue = {0};

	(void)state;
	assert_int_equal(push(&queue, NT_LINK_LOOK, 1, 30), 0);
	assert_int_equal(push(&queue, NT_LINK_MAKE, 1, 20), 0);
	assert_int_equal(push(&queue, NT_LINK_FREE, 1, 10), 0);
	assert_int_equal(push(&queue, NT_LINK_FREE, 1, 11), 0);
	assert_int_equal(pop(&queue), 10);
	assert_int_equal(pop(&queue), 11);
	assert_int_equal(pop(&queue), 20);
	assert_int_equal(push(&queue, NT_LINK_FREE, 1, 12), 0);
	assert_int_equal(pop(&queue), 12);
	assert_int_equal(pop(&queue), 30);
	assert_int_equal(pop(&queue), 0);
}

static void owners_take_turns_each_in_the_order_of_its_requests(void **state)
{
	struct nt_link_queue queue = {0};

	(void)state;
	for (uint32_t i = 1; i <= 100; i++)
		assert_int_equal(push(&queue, NT_LINK_MAKE, 7, i), 0);
	assert_int_equal(pop(&queue), 1);
	assert_int_equal(push(&queue, NT_LINK_MAKE, 8, 201), 0);
	assert_int_equal(push(&queue, NT_LINK_MAKE, 8, 202), 0);
	assert_int_equal(push(&queue, NT_LINK_MAKE, 9, 301), 0);
	assert_int_equal(pop(&queue), 2);
	assert_int_equal(pop(&queue), 201);
	assert_int_equal(pop(&queue), 301);
	assert_int_equal(pop(&queue), 3);
	assert_int_equal(pop(&queue), 202);
	for (uint32_t i = 4; i <= 100; i++)
		assert_int_equal(pop(&queue), i);
	assert_int_equal(pop(&queue), 0);
}

static void what_one_owner_frees_does_not_delay_what_is_made_for_another(void **state)
{
	struct nt_link_queue queue = {0};

	(void)state;
	assert_int_equal(push(&queue, NT_LINK_MAKE, 1, 100), 0);
	for (uint32_t i = 1; i <= 50; i++)
		assert_int_equal(push(&queue, NT_LINK_FREE, 1, i), 0);
	assert_int_equal(pop(&queue), 1);
	assert_int_equal(push(&queue, NT_LINK_MAKE, 2, 200), 0);
	assert_int_equal(push(&queue, NT_LINK_MAKE, 2, 201), 0);
	assert_int_equal(pop(&queue), 2);
	assert_int_equal(pop(&queue), 200);
	assert_int_equal(pop(&queue), 3);
	assert_int_equal(pop(&queue), 201);
	for (uint32_t i = 4; i <= 50; i++)
		assert_int_equal(pop(&queue), i);
	assert_int_equal(pop(&queue), 100);
	assert_int_equal(pop(&queue), 0);
}

static void an_owner_has_an_eighth_of_the_queue_and_others_find_room(void **state)
{
	struct nt_link_queue queue = {0};
	uint32_t taken = 0;

	(void)state;
	for (uint64_t owner = 1; owner <= 8; owner++) {
		for (uint32_t i = 0; i < NT_LINK_QUEUE_OF_OWNER; i++)
			assert_int_equal(push(&queue, NT_LINK_MAKE, owner, 1), 0);
		assert_false(nt_link_queue_has_room(&queue, NT_LINK_MAKE, owner));
		assert_int_equal(push(&queue, NT_LINK_MAKE, owner, 1), -EAGAIN);
		assert_int_equal(nt_link_queue_has_room(&queue, NT_LINK_MAKE, owner + 1),
				 owner < 8);
	}
	assert_int_equal(push(&queue, NT_LINK_MAKE, 9, 1), -EAGAIN);
	/* Neither what is freed nor looks wait for room among them. */
	assert_int_equal(push(&queue, NT_LINK_FREE, 1, 2), 0);
	assert_int_equal(push(&queue, NT_LINK_LOOK, 1, 2), 0);
	assert_int_equal(pop(&queue), 2);
	assert_int_equal(pop(&queue), 1); /* of owner 2, whose turn it is */
	assert_true(nt_link_queue_has_room(&queue, NT_LINK_MAKE, 2));
	assert_false(nt_link_queue_has_room(&queue, NT_LINK_MAKE, 1));
	while (pop(&queue))
		taken++;
	assert_int_equal(taken, NT_LINK_QUEUE_MAX);
	assert_true(nt_link_queue_has_room(&queue, NT_LINK_MAKE, 1));
}

static void a_look_has_its_turn_however_much_is_made(void **state)
{
	struct nt_link_queue queue = {0};

	(void)state;
	assert_int_equal(push(&queue, NT_LINK_LOOK, 1, 2), 0);
	for (uint32_t i = 0; i < 2 * NT_LINK_QUEUE_LOOK; i++)
		assert_int_equal(push(&queue, NT_LINK_MAKE, 1, 1), 0);
	for (uint32_t i = 0; i < NT_LINK_QUEUE_LOOK; i++)
		assert_int_equal(pop(&queue), 1);
	assert_int_equal(pop(&queue), 2);
	for (uint32_t i = 0; i < NT_LINK_QUEUE_LOOK; i++)
		assert_int_equal(pop(&queue), 1);
	assert_int_equal(pop(&queue), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_freed_goes_before_what_is_made_and_that_before_looks,
				       start),
		cmocka_unit_test_setup(owners_take_turns_each_in_the_order_of_its_requests, start),
		cmocka_unit_test_setup(what_one_owner_frees_does_not_delay_what_is_made_for_another,
				       start),
		cmocka_unit_test_setup(an_owner_has_an_eighth_of_the_queue_and_others_find_room,
				       start),
		cmocka_unit_test_setup(a_look_has_its_turn_however_much_is_made, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
