/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/agent/rdma/rdma_world.h"

/* ---- attaching ------------------------------------------------------------------------------- */

static void traffic_of_a_rank_is_observed_in_slices(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	create(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 0);
	assert_int_equal(world.finds, 0); /* it is no rank */
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.finds, 1);
	assert_int_equal(world.post, POST);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.finds, 1); /* the search goes on */
	find_provider(rdma);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.attaches[0], 0); /* between slices */
	nt_rdma_tick(rdma, NOW_NS, 10 * NT_SECOND);
	assert_int_equal(world.attaches[0], 1);
	assert_int_equal(world.attaches[1], 0); /* polls are seldom observed */
	assert_int_equal(world.offset[0], 0x100);
	make(rdma, NT_LIBRARY_RDMA_POST, NOW_NS);
	nt_rdma_tick(rdma, NOW_NS, 10 * NT_SECOND);
	assert_int_equal(world.attaches[0], 1);
	nt_rdma_tick(rdma, NOW_NS + NT_SECOND, 11 * NT_SECOND);
	assert_int_equal(world.detaches, 1);
	nt_rdma_tick(rdma, NOW_NS, 60 * NT_SECOND);
	assert_int_equal(world.attaches[1], 1);
	assert_int_equal(world.offset[1], 0x200);
	make(rdma, NT_LIBRARY_RDMA_POLL, NOW_NS);
	assert_int_equal(world.watch.is_polled, 1);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.attached, 1);
	nt_rdma_tick(rdma, NOW_NS, 61 * NT_SECOND);
	assert_int_equal(world.watch.is_polled, 0);
	nt_rdma_free(rdma);
	assert_int_equal(world.unwatches, 1);
}

static void at_level_1_posts_are_always_observed_unless_the_budget_forbids_it(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	nt_rdma_set_level(rdma, PID, START_NS, 1);
	create(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	find_provider(rdma);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.attaches[0], 1);
	assert_int_equal(world.attaches[1], 0);
	make(rdma, NT_LIBRARY_RDMA_POST, NOW_NS);
	nt_rdma_tick(rdma, NOW_NS, 20 * NT_SECOND);
	assert_int_equal(world.attaches[1], 1);
	nt_rdma_govern(rdma, PID, false, true); /* in slices */
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.detaches, 1);
	nt_rdma_govern(rdma, PID, true, true);
	nt_rdma_tick(rdma, NOW_NS, 10 * NT_SECOND);
	assert_int_equal(world.attaches[0], 1);
	nt_rdma_govern(rdma, PID, false, false);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.attaches[0], 2);
	make(rdma, NT_LIBRARY_RDMA_POST, NOW_NS);
	nt_rdma_set_level(rdma, PID, START_NS, 0);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.detaches, 2);
	nt_rdma_free(rdma);
}

static void a_probe_that_comes_too_late_is_detached(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	nt_rdma_set_level(rdma, PID, START_NS, 1);
	create(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	find_provider(rdma);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	nt_rdma_end(rdma, PID, START_NS);
	make(rdma, NT_LIBRARY_RDMA_POST, NOW_NS);
	assert_int_equal(world.detaches, 1);
	/* One that is attached goes with its process. */
	nt_rdma_set_level(rdma, PID, START_NS, 1);
	create(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	find_provider(rdma);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	make(rdma, NT_LIBRARY_RDMA_POST, NOW_NS);
	nt_rdma_end(rdma, PID, START_NS);
	assert_int_equal(world.detaches, 2);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.attached, 0);
	nt_rdma_free(rdma);
}

/* It opened its device before: another process has shown where that provider's functions are. */
static void a_provider_is_known_by_its_build_id(void **state)
{
	const struct nt_provider_place same = {.build_id = "abcdef"}, other = {.build_id = "ab"};
	struct nt_rdma *rdma = open_rdma();
	struct nt_event_verbs event = event_of(NT_VERB_MODIFY_QP, PID, QPN);
	int fd = dup(0);

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	find_provider(rdma);
	nt_rdma_end(rdma, PID, START_NS);
	event.post_send = event.poll_cq = 0;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	nt_rdma_event(rdma, &event);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.finds, 1); /* not at once */
	nt_rdma_tick(rdma, NOW_NS + 10 * NT_SECOND, 5 * NT_SECOND);
	assert_int_equal(world.finds, 2);
	assert_int_equal(world.post, 0);
	nt_rdma_found(rdma, PID, START_NS, 0, &fd, &other);
	assert_true(fd >= 0); /* not taken */
	nt_rdma_tick(rdma, NOW_NS + NT_MINUTE, 5 * NT_SECOND);
	assert_int_equal(world.finds, 3);
	nt_rdma_found(rdma, PID, START_NS, 0, &fd, &same);
	assert_int_equal(fd, -1);
	nt_rdma_tick(rdma, NOW_NS, 10 * NT_SECOND);
	assert_int_equal(world.attaches[0], 1);
	assert_int_equal(world.offset[0], 0x100);
	nt_rdma_free(rdma);
}

static void a_provider_that_cannot_be_probed_is_not_visible_never_zero(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	const struct nt_rdma_window *w;
	struct nt_rdma_stats stats;
	int fd = -1;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	nt_rdma_found(rdma, PID, START_NS, -ENOTSUP, &fd, NULL);
	w = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_int_equal(w->not_visible, NT_WIRE_RDMA_PROVIDER);
	assert_int_equal(w->pair_count, 1);
	assert_true(w->pair[0].not_visible);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.refused, 1);
	nt_rdma_free(rdma);
}

/* ---- windows --------------------------------------------------------------------------------- */

static void a_window_states_what_was_added_since_the_last_one(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	const struct nt_rdma_window *w;
	struct nt_rdma_traffic *t;

	(void)state;
	assert_null(nt_rdma_take_window(rdma, PID, NOW_NS)); /* uses none */
	nt_rdma_set_level(rdma, PID, START_NS, 1);
	assert_null(nt_rdma_take_window(rdma, PID, NOW_NS));
	create(rdma, QPN);
	connect_pair(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	find_provider(rdma);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	make(rdma, NT_LIBRARY_RDMA_POST, NOW_NS);
	t = traffic_at(0, QPN);
	t->posts[NT_RDMA_SEND] = 10;
	t->bytes[NT_RDMA_SEND] = 1000;
	t->errors[12] = 3;
	t->errors[5] = 1;
	w = nt_rdma_take_window(rdma, PID, NOW_NS + NT_SECOND);
	assert_int_equal(w->observed_ns, NT_SECOND);
	assert_int_equal(w->polled_ns, 0);
	assert_int_equal(w->regions, 3);
	assert_int_equal(w->region_bytes, 400);
	assert_int_equal(w->pairs, 1);
	assert_int_equal(w->pair_count, 1);
	assert_int_equal(w->pair[0].sends, 10);
	assert_int_equal(w->pair[0].send_bytes, 1000);
	assert_int_equal(w->pair[0].errors, 4);
	assert_int_equal(w->pair[0].error_status, 12);
	assert_int_equal(w->pair[0].remote_qpn, REMOTE);
	assert_string_equal(w->pair[0].local_gid, "fe80::1");
	assert_string_equal(w->pair[0].remote_gid, "2001::2");
	assert_false(w->pair[0].not_visible);
	t->posts[NT_RDMA_SEND] = 12;
	w = nt_rdma_take_window(rdma, PID, NOW_NS + 3 * NT_SECOND);
	assert_int_equal(w->observed_ns, 2 * NT_SECOND);
	assert_int_equal(w->pair[0].sends, 2);
	assert_int_equal(w->pair[0].errors, 0);
	w = nt_rdma_take_window(rdma, PID, NOW_NS + 4 * NT_SECOND);
	assert_int_equal(w->pair_count, 0); /* no news */
	nt_rdma_free(rdma);
}

/* Its last traffic is not lost with it. */
static void a_destroyed_queue_pair_is_sent_once_more(void **state)
{
	const struct nt_event_verbs gone = event_of(NT_VERB_DESTROY_QP, PID, QPN);
	struct nt_rdma *rdma = open_rdma();
	const struct nt_rdma_window *w;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create(rdma, QPN);
	traffic_at(0, QPN)->posts[NT_RDMA_WRITE] = 7;
	nt_rdma_event(rdma, &gone);
	assert_int_equal(world.forgets, 0);
	w = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_int_equal(w->pair_count, 1);
	assert_int_equal(w->pair[0].writes, 7);
	assert_string_equal(w->pair[0].device, "mlx5_0");
	assert_int_equal(world.forgets, 1);
	w = nt_rdma_take_window(rdma, PID, NOW_NS + NT_MINUTE);
	assert_int_equal(w->pairs, 0);
	/* A process that sends no window keeps none. */
	nt_rdma_end(rdma, PID, START_NS);
	create(rdma, QPN);
	nt_rdma_event(rdma, &gone);
	assert_int_equal(world.forgets, 2);
	nt_rdma_free(rdma);
}

static void what_cannot_be_seen_is_stated(void **state)
{
	struct nt_event_verbs extended = event_of(NT_VERB_EXTENDED, PID, QPN);
	struct nt_event_verbs direct = event_of(NT_VERB_DIRECT, PID, 0);
	struct nt_event_verbs foreign = event_of(NT_VERB_CREATE_QP, PID, QPN + 1);
	struct nt_rdma *rdma = open_rdma();
	const struct nt_rdma_window *w;
	struct nt_rdma_stats stats;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create(rdma, QPN);
	nt_rdma_event(rdma, &extended);
	nt_rdma_event(rdma, &direct);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	find_provider(rdma);
	foreign.post_send = POST + 64; /* of another provider */
	nt_rdma_event(rdma, &foreign);
	nt_rdma_govern(rdma, PID, true, true);
	w = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_int_equal(w->not_visible,
			 NT_WIRE_RDMA_EXTENDED | NT_WIRE_RDMA_DIRECT | NT_WIRE_RDMA_SHED);
	assert_int_equal(w->pair_count, 2);
	assert_true(w->pair[0].not_visible && w->pair[1].not_visible);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.not_visible, 2);
	nt_rdma_free(rdma);
}

/* ---- caps ------------------------------------------------------------------------------------ */

static void queue_pairs_of_a_process_are_capped_and_counted(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	const struct nt_rdma_window *w;
	struct nt_rdma_stats stats;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	for (uint32_t i = 0; i < NT_QUEUE_PAIRS + 5; i++)
		create(rdma, QPN + i);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.queue_pairs, NT_QUEUE_PAIRS);
	assert_int_equal(stats.queue_pairs_over_cap, 5);
	assert_int_equal(world.forgets, 5);
	w = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_int_equal(w->pairs, NT_QUEUE_PAIRS);
	assert_int_equal(w->pairs_over_cap, 5);
	assert_int_equal(w->pair_count, 64);
	assert_int_equal(w->unsent, NT_QUEUE_PAIRS - 64);
	nt_rdma_end(rdma, PID, START_NS);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.queue_pairs, 0);
	assert_int_equal(stats.queue_pairs_over_cap, 5);
	nt_rdma_free(rdma);
}

static void create_pairs(struct nt_rdma *rdma, uint32_t pid, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct nt_event_verbs event = event_of(NT_VERB_CREATE_QP, pid, i + 1);

		nt_rdma_event(rdma, &event);
	}
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND); /* one owner has only so many events in a turn */
}

/* One owner has half of the table at most. */
static void queue_pairs_of_one_owner_are_capped(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		create_pairs(rdma, FOREIGN + i, 1000);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.queue_pairs, NT_RDMA_QPS / 2);
	assert_int_equal(stats.queue_pairs_over_cap, 20000 - NT_RDMA_QPS / 2);
	nt_rdma_free(rdma);
}

/* Who comes later has its share, as that of others is taken back. */
static void an_owner_that_comes_later_has_its_share(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;
	const struct nt_rdma_window *window;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		create_pairs(rdma, FOREIGN + i, 1000);
	for (uint32_t pid = 1; pid <= 12; pid++)
		create_pairs(rdma, pid, 1000);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.queue_pairs, NT_RDMA_QPS);
	/* 16,384 / 15 are more than it has. */
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create_pairs(rdma, PID, 1000);
	window = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_true(window && window->pairs == 1000 && !window->pairs_over_cap);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.queue_pairs, NT_RDMA_QPS);
	nt_rdma_free(rdma);
}

/* A process that is no rank is dropped first; a rank never is. */
static void processes_are_capped_and_ranks_stay(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create(rdma, QPN);
	for (uint32_t pid = 10000; pid < 10000 + NT_RDMA_PROCESSES + 3; pid++) {
		const struct nt_event_verbs event = event_of(NT_VERB_CREATE_QP, pid, 1);

		nt_rdma_event(rdma, &event);
	}
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.processes, NT_RDMA_PROCESSES);
	assert_int_equal(stats.processes_over_cap, 4);
	assert_non_null(nt_rdma_take_window(rdma, PID, NOW_NS));
	nt_rdma_free(rdma);
}

/* A pid is used anew: what is known is of another process. */
static void another_process_with_the_pid_begins_anew(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	create(rdma, QPN);
	nt_rdma_add(rdma, PID, NOW_NS + NT_SECOND, NOW_NS + 2 * NT_SECOND);
	assert_null(nt_rdma_take_window(rdma, PID, NOW_NS + 2 * NT_SECOND));
	nt_rdma_free(rdma);
}

/* The number and the start of the process are as before. */
static void another_program_of_a_process_begins_anew(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	const struct nt_rdma_window *w;
	struct nt_rdma_stats stats;

	(void)state;
	nt_rdma_set_level(rdma, PID, START_NS, 1);
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create(rdma, QPN);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	find_provider(rdma);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	make(rdma, NT_LIBRARY_RDMA_POST, NOW_NS);
	nt_rdma_exec(rdma, PID, NOW_NS);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.processes, 1);
	assert_int_equal(stats.queue_pairs + stats.attached, 0);
	assert_int_equal(world.detaches, 1);
	assert_int_equal(world.forgets, 1);
	assert_int_equal(world.unwatches, 1);
	assert_null(nt_rdma_take_window(rdma, PID, NOW_NS));
	/* It is a rank at level 1 as before, and its provider is searched anew. */
	create(rdma, QPN + 1);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.finds, 2);
	find_provider(rdma);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.attaches[0], 2);
	w = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_true(w && w->pairs == 1 && w->pair[0].qpn == QPN + 1);
	nt_rdma_free(rdma);
}

static void of_another_program_of_no_rank_nothing_is_known(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	create(rdma, QPN);
	nt_rdma_exec(rdma, PID, NOW_NS);
	nt_rdma_exec(rdma, PID + 1, NOW_NS);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.processes + stats.queue_pairs, 0);
	assert_int_equal(world.forgets, 1);
	nt_rdma_free(rdma);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_of_a_rank_is_observed_in_slices),
		cmocka_unit_test(at_level_1_posts_are_always_observed_unless_the_budget_forbids_it),
		cmocka_unit_test(a_probe_that_comes_too_late_is_detached),
		cmocka_unit_test(a_provider_is_known_by_its_build_id),
		cmocka_unit_test(a_provider_that_cannot_be_probed_is_not_visible_never_zero),
		cmocka_unit_test(a_window_states_what_was_added_since_the_last_one),
		cmocka_unit_test(a_destroyed_queue_pair_is_sent_once_more),
		cmocka_unit_test(what_cannot_be_seen_is_stated),
		cmocka_unit_test(queue_pairs_of_a_process_are_capped_and_counted),
		cmocka_unit_test(queue_pairs_of_one_owner_are_capped),
		cmocka_unit_test(an_owner_that_comes_later_has_its_share),
		cmocka_unit_test(processes_are_capped_and_ranks_stay),
		cmocka_unit_test(another_process_with_the_pid_begins_anew),
		cmocka_unit_test(another_program_of_a_process_begins_anew),
		cmocka_unit_test(of_another_program_of_no_rank_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
