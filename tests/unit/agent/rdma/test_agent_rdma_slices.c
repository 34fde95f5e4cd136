/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is waited for after a slice, and a device that was opened before. */
#include "tests/unit/agent/rdma/rdma_world.h"

/* A rank in a slice of posts and polls, whose queue pair has two timed requests without a completion. */
static struct nt_rdma_traffic *begin_polls(struct nt_rdma *rdma)
{
	struct nt_rdma_traffic *t;

	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 60 * NT_SECOND);
	find_provider(rdma);
	nt_rdma_tick(rdma, NOW_NS, 60 * NT_SECOND);
	make(rdma, NT_LIBRARY_RDMA_POST, NOW_NS);
	make(rdma, NT_LIBRARY_RDMA_POLL, NOW_NS);
	assert_int_equal(world.watch.is_polled, NT_RDMA_POLLED);
	t = traffic_at(0, QPN);
	t->generation = world.watch.generation;
	t->head = 7;
	t->tail = 5;
	return t;
}

static uint64_t unfinished(const struct nt_rdma *rdma)
{
	struct nt_rdma_stats stats;

	nt_rdma_stats(rdma, &stats);
	return stats.unfinished;
}

/* So that a latency may be longer than a slice. */
static void after_a_slice_its_completions_are_waited_for(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_traffic *t = begin_polls(rdma);

	(void)state;
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND, 61 * NT_SECOND);
	assert_int_equal(world.detaches, 1); /* posts */
	assert_int_equal(world.watch.is_polled, NT_RDMA_POLLED_REST);
	t->tail = 6;
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND + NT_SECOND / 2, 61 * NT_SECOND);
	assert_int_equal(world.detaches, 1);
	t->tail = 7;
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND + NT_SECOND / 2, 61 * NT_SECOND);
	assert_int_equal(world.detaches, 2);
	assert_int_equal(world.watch.is_polled, NT_RDMA_POLLED_NOT);
	assert_int_equal(unfinished(rdma), 0);
	nt_rdma_free(rdma);
}

static void those_that_do_not_come_in_time_are_counted(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	(void)begin_polls(rdma);
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND, 61 * NT_SECOND);
	nt_rdma_tick(rdma, NOW_NS + 2 * NT_SECOND - 1, 62 * NT_SECOND);
	assert_int_equal(world.detaches, 1);
	nt_rdma_tick(rdma, NOW_NS + 2 * NT_SECOND, 62 * NT_SECOND);
	assert_int_equal(world.detaches, 2);
	assert_int_equal(unfinished(rdma), 2);
	nt_rdma_free(rdma);
}

/* Requests of an earlier slice, whose posts are no longer kept. */
static void others_are_not_waited_for(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	begin_polls(rdma)->generation--;
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND, 61 * NT_SECOND);
	assert_int_equal(world.detaches, 2);
	assert_int_equal(unfinished(rdma), 0);
	nt_rdma_free(rdma);
}

/* Waiting costs as much as a slice. */
static void over_the_budget_nothing_is_waited_for(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	(void)begin_polls(rdma);
	nt_rdma_govern(rdma, PID, false, true);
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND, 61 * NT_SECOND);
	assert_int_equal(world.detaches, 2);
	assert_int_equal(unfinished(rdma), 2);
	nt_rdma_free(rdma);
}

static void a_slice_that_begins_meanwhile_begins_anew(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	uint32_t generation;

	(void)state;
	(void)begin_polls(rdma);
	generation = world.watch.generation;
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND, 61 * NT_SECOND);
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND, 120 * NT_SECOND);
	assert_int_equal(world.detaches, 1);
	assert_int_equal(world.watch.is_polled, NT_RDMA_POLLED);
	assert_int_equal(world.watch.generation, generation + 1);
	assert_int_equal(unfinished(rdma), 2);
	nt_rdma_free(rdma);
}

/* It opened its device before, and makes no verb: what it does is not zero. */
static void a_device_without_a_verb_is_not_visible(void **state)
{
	const struct nt_provider_place held = {.holds_device = 1};
	struct nt_provider_place found = {.post_offset = 0x300,
					  .poll_offset = 0x400,
					  .build_id = "fedcba",
					  .holds_device = 1};
	struct nt_rdma *rdma = open_rdma();
	const struct nt_rdma_window *w;
	int fd = -1;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	nt_rdma_tick(rdma, NOW_NS + 5 * NT_SECOND, 5 * NT_SECOND);
	assert_int_equal(world.finds, 1);
	assert_null(nt_rdma_take_window(rdma, PID, NOW_NS));
	nt_rdma_found(rdma, PID, START_NS, 0, &fd, &held);
	w = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_non_null(w);
	assert_int_equal(w->not_visible, NT_WIRE_RDMA_PROVIDER);
	/* Its memory is searched again after 30 s, then after 60. */
	nt_rdma_tick(rdma, NOW_NS + 34 * NT_SECOND, 5 * NT_SECOND);
	assert_int_equal(world.finds, 1);
	nt_rdma_tick(rdma, NOW_NS + 35 * NT_SECOND, 5 * NT_SECOND);
	assert_int_equal(world.finds, 2);
	nt_rdma_found(rdma, PID, START_NS, -ENOENT, &fd, NULL); /* it has closed it */
	assert_null(nt_rdma_take_window(rdma, PID, NOW_NS));
	nt_rdma_tick(rdma, NOW_NS + 94 * NT_SECOND, 5 * NT_SECOND);
	assert_int_equal(world.finds, 2);
	nt_rdma_tick(rdma, NOW_NS + 95 * NT_SECOND, 5 * NT_SECOND);
	assert_int_equal(world.finds, 3);
	fd = dup(0);
	nt_rdma_found(rdma, PID, START_NS, 0, &fd, &found);
	assert_int_equal(fd, -1);
	nt_rdma_tick(rdma, NOW_NS, 10 * NT_SECOND);
	assert_int_equal(world.attaches[0], 1);
	assert_int_equal(world.offset[0], 0x300);
	w = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_int_equal(w->not_visible, NT_WIRE_RDMA_PROVIDER); /* no queue pair yet */
	create(rdma, QPN);
	w = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_int_equal(w->not_visible, 0);
	/* It may have written these offsets there itself: nobody else is probed at them. */
	nt_rdma_end(rdma, PID, START_NS);
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	nt_rdma_tick(rdma, NOW_NS + 5 * NT_SECOND, 5 * NT_SECOND);
	assert_int_equal(world.finds, 4);
	found.post_offset = found.poll_offset = 0;
	fd = dup(0);
	nt_rdma_found(rdma, PID, START_NS, 0, &fd, &found);
	assert_true(fd >= 0); /* not taken */
	(void)close(fd);
	nt_rdma_free(rdma);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_slice_its_completions_are_waited_for),
		cmocka_unit_test(those_that_do_not_come_in_time_are_counted),
		cmocka_unit_test(others_are_not_waited_for),
		cmocka_unit_test(over_the_budget_nothing_is_waited_for),
		cmocka_unit_test(a_slice_that_begins_meanwhile_begins_anew),
		cmocka_unit_test(a_device_without_a_verb_is_not_visible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
