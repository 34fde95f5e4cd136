/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Processes that make as many verbs, processes and queue pairs as they like: what others lose by it. */
#include "agent/agent_impl.h"
#include "tests/unit/agent/rdma/rdma_world.h"

enum {
	FLOOD = 5000, /* more events than one owner has in a turn */
	MOST = 4096,
	READS = 32, /* addresses that one owner has read in a turn */
	VICTIM = 4712,
};

static void send_event(struct nt_rdma *rdma, enum nt_verb verb, uint32_t pid, uint32_t qpn)
{
	const struct nt_event_verbs event = event_of(verb, pid, qpn);

	nt_rdma_event(rdma, &event);
}

/* A queue pair gets an address with that index. */
static void set_address(struct nt_rdma *rdma, uint32_t pid, uint32_t qpn, uint8_t index)
{
	struct nt_event_verbs event = event_of(NT_VERB_MODIFY_QP, pid, qpn);

	event.mask = CONNECTS;
	event.port = 1;
	event.sgid_index = index;
	nt_rdma_event(rdma, &event);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void an_address_is_read_once_in_ten_seconds(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		set_address(rdma, PID, i % 7 + 1, 3);
	assert_int_equal(world.reads, 1);
	set_address(rdma, VICTIM, 1, 3);
	assert_int_equal(world.reads, 1);
	nt_rdma_tick(rdma, NOW_NS + 10 * NT_SECOND, 5 * NT_SECOND);
	set_address(rdma, PID, 1, 3);
	assert_int_equal(world.reads, 2);
	nt_rdma_free(rdma);
}

/* Each queue pair asks for another address. The rest of one's own comes later; another owner has its own. */
static void a_flood_of_addresses_is_read_in_parts(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	const struct nt_rdma_window *window;
	struct nt_rdma_stats stats;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	for (uint32_t i = 0; i < 1000; i++)
		set_address(rdma, PID, i % 40 + 1, (uint8_t)i);
	assert_int_equal(world.reads, READS);
	nt_rdma_stats(rdma, &stats);
	assert_true(stats.addresses_late > 0);
	set_address(rdma, VICTIM, 1, 200);
	assert_int_equal(world.reads, READS + 1);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	window = nt_rdma_take_window(rdma, PID, NOW_NS);
	assert_true(window && window->pair_count == 40);
	assert_in_range(world.reads, READS + 2, 2 * READS + 1);
	assert_string_equal(window->pair[0].local_gid, "fe80::1");
	nt_rdma_free(rdma);
}

static void events_of_one_owner_are_capped_and_counted(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	for (uint32_t i = 0; i < FLOOD; i++)
		send_event(rdma, NT_VERB_MODIFY_QP, FOREIGN + i % 3, 1);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.verbs_over_cap, FLOOD - MOST);
	assert_int_equal(stats.queue_pairs, 3);
	/* A queue pair that the agent does not know is in use: the kernel keeps its entries. */
	send_event(rdma, NT_VERB_CREATE_QP, FOREIGN, 2);
	assert_int_equal(world.forgets, 0);
	/* What goes is always taken. */
	send_event(rdma, NT_VERB_DESTROY_QP, FOREIGN, 1);
	send_event(rdma, NT_VERB_CREATE_QP, VICTIM, 1);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.queue_pairs, 3);
	assert_int_equal(stats.verbs_over_cap, FLOOD - MOST + 1);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	send_event(rdma, NT_VERB_CREATE_QP, FOREIGN, 2);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.queue_pairs, 4);
	nt_rdma_free(rdma);
}

/* Else the next call, of any process, is charged with it. */
static void the_time_of_an_event_is_charged_to_its_process(void **state)
{
	const struct nt_governor_options free_of_cost = {.agent_budget = 1};
	const struct nt_event_verbs event = event_of(NT_VERB_MODIFY_QP, PID, QPN);
	struct nt_agent_config config = {0};
	struct nt_agent agent = {.config = &config};
	const uint64_t begin_ns = nt_clock_mono_ns();

	(void)state;
	agent.rdma = open_rdma();
	assert_int_equal(nt_governor_new(&free_of_cost, &agent.governor), 0);
	nt_agent_verbs(&agent, &event);
	assert_in_range(agent.event_since_ns, begin_ns, nt_clock_mono_ns());
	nt_governor_free(agent.governor);
	nt_rdma_free(agent.rdma);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* One owner's children make a verb each: where another one's provider is stays known. */
static void many_processes_of_one_owner_take_no_place_of_another(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	create(rdma, QPN);
	for (uint32_t i = 0; i < 2 * NT_RDMA_PROCESSES; i++)
		send_event(rdma, NT_VERB_OPEN, FOREIGN + i, 0);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.processes, NT_RDMA_PROCESSES);
	assert_int_equal(stats.processes_over_cap, NT_RDMA_PROCESSES + 1);
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.finds, 1);
	assert_int_equal(world.post, POST);
	nt_rdma_free(rdma);
}

static void a_process_that_has_ended_goes_before_an_older_one(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	world.ended_from = FOREIGN + 2000;
	send_event(rdma, NT_VERB_OPEN, FOREIGN, 0);
	send_event(rdma, NT_VERB_OPEN, FOREIGN + 2000, 0);
	for (uint32_t i = 1; i < NT_RDMA_PROCESSES; i++)
		send_event(rdma, NT_VERB_OPEN, FOREIGN + i, 0);
	assert_non_null(nt_rdma_take_window(rdma, FOREIGN, NOW_NS));
	assert_null(nt_rdma_take_window(rdma, FOREIGN + 2000, NOW_NS));
	nt_rdma_free(rdma);
}

static void processes_that_have_ended_go_by_themselves_but_no_rank(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	for (uint32_t i = 0; i < 100; i++)
		send_event(rdma, NT_VERB_CREATE_QP, FOREIGN + i, 1);
	world.ended_from = 1;
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	nt_rdma_stats(rdma, &stats);
	assert_in_range(stats.processes, 60, 80); /* a bounded number at once */
	for (int i = 0; i < 4; i++)
		nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.processes, 1); /* its end is reported */
	assert_int_equal(stats.queue_pairs, 0);
	nt_rdma_free(rdma);
}

static void nothing_is_kept_of_a_process_that_ended_at_once(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	struct nt_rdma_stats stats;

	(void)state;
	send_event(rdma, NT_VERB_CREATE_QP, GONE, 1);
	nt_rdma_stats(rdma, &stats);
	assert_int_equal(stats.processes, 0);
	assert_int_equal(world.forgets, 1);
	nt_rdma_free(rdma);
}

/* ---- keys of the kernel ---------------------------------------------------------------------- */

static void keep_key(uint32_t pid, uint32_t qpn)
{
	world.kept[world.kept_count++] =
		(struct nt_rdma_key){.pid = pid, .qpn = qpn, .context = CONTEXT};
}

/* Their events were lost, so the agent knows nothing of them. */
static void keys_of_processes_that_have_ended_are_deleted(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	keep_key(VICTIM, 1); /* not known, but it runs: its event may be on its way */
	for (uint32_t i = 0; i < 200; i++)
		keep_key(i % 2 ? GONE + i : PID, i);
	nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_in_range(world.kept_count, 160, 180); /* a bounded number at once */
	for (int i = 0; i < 5; i++)
		nt_rdma_tick(rdma, NOW_NS, 5 * NT_SECOND);
	assert_int_equal(world.kept_count, 101);
	for (size_t i = 0; i < world.kept_count; i++)
		assert_true(world.kept[i].pid < GONE);
	nt_rdma_free(rdma);
}

/* The kernel side counts them: else the place of one that it does not see go is lost. */
static void the_watch_states_what_is_deleted_before_its_queue_pair(void **state)
{
	struct nt_rdma *rdma = open_rdma();
	int watches;

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	keep_key(PID, QPN);
	for (uint32_t i = 0; i < 3; i++)
		keep_key(PID, QPN + NT_QUEUE_PAIRS + i);
	for (uint32_t i = 0; i < NT_QUEUE_PAIRS + 3; i++)
		create(rdma, QPN + i);
	assert_int_equal(world.kept_count, 1);
	assert_int_equal(world.watch.forgotten, 3);
	watches = world.watches;
	nt_rdma_end(rdma, PID, START_NS);
	assert_int_equal(world.kept_count, 0);
	assert_int_equal(world.watches, watches);
	assert_int_equal(world.unwatches, 1);
	nt_rdma_free(rdma);
}

/* What was deleted with it takes no places once it is observed again. */
static void a_process_that_was_dropped_while_it_ran_has_its_places(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	world.signaled = 5;
	world.seen = 9;
	world.ended = 2;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	assert_int_equal(world.watch.forgotten, 5);
	assert_int_equal(world.watch.dropped, 7);
	nt_rdma_free(rdma);
}

/* The kernel side has seen it go. What is kept may be of the next one with its number. */
static void what_a_destroyed_queue_pair_leaves_is_not_its_own(void **state)
{
	struct nt_rdma *rdma = open_rdma();

	(void)state;
	nt_rdma_add(rdma, PID, START_NS, NOW_NS);
	create(rdma, QPN);
	send_event(rdma, NT_VERB_DESTROY_QP, PID, QPN);
	send_event(rdma, NT_VERB_DESTROY_QP, PID, QPN + 1); /* not known */
	keep_key(PID, QPN);
	keep_key(PID, QPN + 1);
	assert_non_null(nt_rdma_take_window(rdma, PID, NOW_NS));
	assert_int_equal(world.forgets, 2);
	assert_int_equal(world.kept_count, 2);
	assert_int_equal(world.watch.forgotten, 0);
	nt_rdma_free(rdma);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_read_once_in_ten_seconds),
		cmocka_unit_test(a_flood_of_addresses_is_read_in_parts),
		cmocka_unit_test(events_of_one_owner_are_capped_and_counted),
		cmocka_unit_test(the_time_of_an_event_is_charged_to_its_process),
		cmocka_unit_test(many_processes_of_one_owner_take_no_place_of_another),
		cmocka_unit_test(a_process_that_has_ended_goes_before_an_older_one),
		cmocka_unit_test(processes_that_have_ended_go_by_themselves_but_no_rank),
		cmocka_unit_test(nothing_is_kept_of_a_process_that_ended_at_once),
		cmocka_unit_test(keys_of_processes_that_have_ended_are_deleted),
		cmocka_unit_test(the_watch_states_what_is_deleted_before_its_queue_pair),
		cmocka_unit_test(a_process_that_was_dropped_while_it_ran_has_its_places),
		cmocka_unit_test(what_a_destroyed_queue_pair_leaves_is_not_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
