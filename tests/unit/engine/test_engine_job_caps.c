/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys, ranks, nodes, jobs and communicators at their caps. */
#include "engine/job_state.h"
#include "tests/unit/engine/job_parties.h"

static void keys_over_the_cap_are_refused_and_counted(void **state)
{
	char text[32];

	(void)state;
	options.limits.keys = 3;
	start_engine();
	for (int i = 0; i < 5; i++) {
		struct feed_agent one = feed_agent("n0", text);

		(void)snprintf(text, sizeof(text), "job-%d", i);
		push_window(&one, 0, (struct feed_window){.size = 1});
	}
	assert_int_equal(HASH_COUNT(nt_jobs_keys(nt_engine_jobs(engine))), 3);
	assert_int_equal(counters()->refused_keys, 2);
}

static void ranks_over_the_cap_are_refused_and_counted(void **state)
{
	const struct party party = {&agent, 0, 10, 10, 100, 0xaaa};

	(void)state;
	options.limits.ranks = 8;
	start_engine();
	run_party(&party, 0, 10000);
	assert_int_equal(job_at(0)->live, 8);
	assert_int_equal(only_key()->sessions, 8);
	assert_int_equal(counters()->refused_ranks, 2 * 20);
}

static void nodes_over_the_cap_are_refused_and_counted(void **state)
{
	char name[32];

	(void)state;
	options.limits.nodes = 2;
	start_engine();
	for (int i = 0; i < 4; i++) {
		struct feed_agent one = feed_agent(name, "job");

		(void)snprintf(name, sizeof(name), "node-%d", i);
		push_window(&one, 0, (struct feed_window){.rank = (uint32_t)i, .size = 4});
	}
	assert_int_equal(HASH_COUNT(nt_jobs_nodes(nt_engine_jobs(engine))), 2);
	assert_int_equal(counters()->refused_nodes, 2);
}

static void nodes_that_are_long_gone_make_room_for_new_ones(void **state)
{
	nt_autobuf struct nt_buf before = {0}, after = {0};
	char name[32];

	(void)state;
	options.limits.nodes = 3;
	start_engine();
	for (uint32_t i = 0; i < 20; i++) {
		struct feed_agent one = feed_agent(name, name);

		(void)snprintf(name, sizeof(name), "node-%u", i);
		push_window(&one, 0, (struct feed_window){.size = 1});
		push(feed_heartbeat(&one, 5000));
		/* One of them stays. */
		push_window(&agent, 5000 * (uint64_t)i, (struct feed_window){.size = 1});
		assert_int_equal(nt_engine_sweep(engine, 2400 * SECOND), 0);
	}
	assert_int_equal(counters()->refused_nodes, 0);
	assert_true(HASH_COUNT(nt_jobs_nodes(nt_engine_jobs(engine))) <= 3);
	assert_int_equal(nt_jobs_save(nt_engine_jobs(engine), &before), 0);
	start_engine();
	assert_int_equal(nt_jobs_load(nt_engine_jobs(engine), before.data, before.len), 0);
	assert_int_equal(nt_jobs_save(nt_engine_jobs(engine), &after), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.data, after.data, before.len);
}

static void jobs_over_the_cap_are_refused_and_counted(void **state)
{
	(void)state;
	options.limits.jobs = 2;
	start_engine();
	for (uint32_t i = 0; i < 4; i++) {
		/* The same rank, alive four times. */
		struct feed_window window = {.size = 1, .pid = 100 + i};

		push_window(&agent, 0, window);
	}
	push(feed_heartbeat(&agent, 9000));
	assert_int_equal(only_key()->jobs, 2);
	assert_int_equal(counters()->refused_jobs, 2);
	assert_int_equal(only_key()->admissions, 0);
	assert_int_equal(only_key()->sessions, 2);
}

static void communicators_and_series_over_the_cap_are_refused_and_counted(void **state)
{
	struct feed_window window = {.size = 2, .comm = 1, .comm_size = 2};

	(void)state;
	for (uint64_t i = 0; i < NT_RANK_SESSION_MAX_SERIES + 10; i++) {
		window.comm = i + 1;
		push_window(&agent, i * 500, window);
	}
	assert_int_equal(counters()->session.refused_series, 10);
	assert_int_equal(counters()->session.refused_comms,
			 NT_RANK_SESSION_MAX_SERIES + 10 - NT_RANK_SESSION_MAX_COMMS);
}

static void ended_jobs_are_forgotten_over_the_cap_and_in_time(void **state)
{
	uint64_t at = 0;

	(void)state;
	for (uint32_t i = 0; i < NT_JOBS_MAX_ENDED + 10; i++, at += 5000) {
		struct party party = {&agent, 0, 1, 1, 100 + i, 0, {.process_ms = at}};

		run_party(&party, at, at + 2000);
		end_party(&party, at + 2000);
		push(feed_heartbeat(&agent, at + 4000));
		assert_int_equal(nt_engine_sweep(engine, 0), 0);
	}
	assert_int_equal(counters()->jobs, NT_JOBS_MAX_ENDED + 10);
	assert_int_equal(only_key()->jobs, NT_JOBS_MAX_ENDED);
	assert_true(counters()->forgotten_jobs > 0);
	assert_int_equal(counters()->refused_jobs, 0);
	push(feed_heartbeat(&agent, at + 2 * 3600 * 1000));
	assert_int_equal(nt_engine_sweep(engine, 0), 0);
	assert_int_equal(only_key()->jobs, 0);
	assert_int_equal(only_key()->sessions, 0);
	assert_null(only_key()->process);
	assert_null(only_key()->shared_comm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_over_the_cap_are_refused_and_counted),
		TEST(ranks_over_the_cap_are_refused_and_counted),
		TEST(nodes_over_the_cap_are_refused_and_counted),
		TEST(nodes_that_are_long_gone_make_room_for_new_ones),
		TEST(jobs_over_the_cap_are_refused_and_counted),
		TEST(communicators_and_series_over_the_cap_are_refused_and_counted),
		TEST(ended_jobs_are_forgotten_over_the_cap_and_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
