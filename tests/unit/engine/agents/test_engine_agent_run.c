/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Agents that are started anew: what becomes of the ranks of their earlier runs. */
#include "tests/unit/engine/job_parties.h"

#include "engine/agents/agent_run.h"

static const struct party all = {
	.from = &agent, .count = 4, .size = 4, .pid = 100, .comm = 0xc1, .like = {.last = 1}};

static void push_vector(struct feed_agent *from, uint64_t at_ms)
{
	struct nt_message message = feed_envelope(from, at_ms);

	message.body = NT_BODY_NODE;
	message.node = (struct nt_node_vector){.node = from->name};
	push(feed_copy(&message));
}

/* Node vectors as an agent sends them, every five seconds. */
static void run_vectors(struct feed_agent *from, uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t at = from_ms; at <= to_ms; at += 5000)
		push_vector(from, at);
}

static void ranks_that_ended_while_their_agent_was_away_end_after_a_minute(void **state)
{
	(void)state;
	run_party(&all, 1000, 20000);
	run_vectors(&agent, 1000, 20000);
	agent.boot = 8; /* started anew */
	run_vectors(&agent, 40000, 95000);
	assert_int_equal(job_at(0)->live, 4);
	push_vector(&agent, 100000);
	assert_int_equal(job_at(0)->live, 0);
	assert_true(job_at(0)->closed);
}

static void ranks_that_the_new_run_has_found_go_on(void **state)
{
	(void)state;
	run_party(&all, 1000, 20000);
	agent.boot = 8;
	agent.seq = 0;
	run_party(&all, 40000, 100000);
	run_vectors(&agent, 40000, 120000);
	assert_int_equal(job_at(0)->live, 4);
	assert_false(job_at(0)->closed);
}

static void a_rank_ends_when_its_process_did_not_with_its_last_window(void **state)
{
	struct feed_window last = {
		.rank = 1, .size = 4, .pid = 101, .from_ms = 20000, .to_ms = 20500, .ended = true};
	struct nt_message *message;

	(void)state;
	run_party(&all, 1000, 20000);
	message = feed_window(&agent, &last);
	message->window.ended_early_ns = 300 * MS;
	push(message);
	run_vectors(&agent, 21000, 21000);
	end_party(&(struct party){.from = &agent,
				  .first = 2,
				  .count = 2,
				  .size = 4,
				  .pid = 100,
				  .comm = 0xc1,
				  .like = {.last = 1}},
		  20500);
	run_party(&(struct party){.from = &agent,
				  .count = 1,
				  .size = 4,
				  .pid = 100,
				  .comm = 0xc1,
				  .like = {.last = 1}},
		  20500, 30000);
	assert_true(job_at(0)->session[1]->ended);
	assert_int_equal(job_at(0)->session[1]->ended_ns, REAL_0 + 20200 * MS);
}

static void an_agent_that_is_away_ends_nothing(void **state)
{
	(void)state;
	run_party(&all, 1000, 20000);
	run_vectors(&other, 1000, 200000);
	assert_int_equal(job_at(0)->live, 4);
}

static void late_vectors_of_an_earlier_run_do_not_begin_another(void **state)
{
	struct nt_agent_runs runs = {0};
	struct nt_message message = {.agent = "a", .boot = 1, .body = NT_BODY_NODE};
	bool settled;

	(void)state;
	for (uint64_t s = 100; s <= 160; s += 10) {
		message.real_ns = s * SECOND;
		message.boot = 2;
		assert_int_equal(nt_agent_runs_take(&runs, &message, 1, &settled), 0);
		assert_int_equal(settled, s == 160);
		message.real_ns -= 50 * SECOND;
		message.boot = 1;
		assert_int_equal(nt_agent_runs_take(&runs, &message, 1, &settled), 0);
		assert_false(settled);
	}
	message.real_ns = 300 * SECOND;
	message.boot = 2;
	assert_int_equal(nt_agent_runs_take(&runs, &message, 1, &settled), 0);
	assert_false(settled); /* once */
	message.agent = "b"; /* over the limit */
	assert_int_equal(nt_agent_runs_take(&runs, &message, 1, &settled), 0);
	assert_int_equal(HASH_COUNT(runs.run), 1);
	nt_agent_runs_release(&runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ranks_that_ended_while_their_agent_was_away_end_after_a_minute),
		TEST(ranks_that_the_new_run_has_found_go_on),
		TEST(a_rank_ends_when_its_process_did_not_with_its_last_window),
		TEST(an_agent_that_is_away_ends_nothing),
		TEST(late_vectors_of_an_earlier_run_do_not_begin_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
