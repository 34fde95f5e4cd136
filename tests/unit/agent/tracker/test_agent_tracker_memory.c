/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who makes room where memory is short. */
#include "tests/unit/agent/agent_job.h"

enum {
	CROWD = 10000, /* the first of the crowd's processes */
	CROWDED = 8,
};

static void become_rank(struct node *node, uint32_t pid, uint32_t comms)
{
	ENVIRON(node, pid, "PATH=/bin\0");
	node_map(node, pid, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	for (uint32_t i = 0; i < comms; i++) {
		nccl_init(node, pid, pid, 0x5000 + 0x100 * i, i, 64, pid);
		nccl_reduce(node, pid, pid, 0x5000 + 0x100 * i, 1 << 20, STREAM);
	}
}

static void begin(struct node *node)
{
	node_start(node);
	node->crowd_pid = CROWD;
	become_rank(node, PID, 4); /* more than any one of the crowd has */
	for (uint32_t i = 0; i < CROWDED; i++)
		become_rank(node, CROWD + i, 1 + i % 2);
}

static bool is_watched(const struct node *node, uint32_t pid)
{
	struct nt_tracker_stats before, after;

	nt_tracker_stats(node->tracker, &before);
	nt_tracker_exited(node->tracker, pid, pid, node->now_ns);
	nt_tracker_stats(node->tracker, &after);
	return before.processes > after.processes;
}

static void the_owner_that_takes_the_most_gives_up_its_largest(void **state)
{
	struct nt_tracker_stats stats;
	struct nt_share_report report;
	struct node node;

	(void)state;
	begin(&node);
	assert_int_equal(nt_tracker_give_back(node.tracker, 1, 0), 1);
	assert_int_equal(nt_tracker_give_back(node.tracker, 1, 0), 1);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.memory_given_up, 2);
	assert_int_equal(stats.processes, CROWDED - 1);
	nt_share_read(nt_tracker_share(node.tracker), &report);
	assert_int_equal(report.left_out, 2);
	assert_int_equal(report.left_out_most, 2);
	assert_true(is_watched(&node, PID));
	for (uint32_t i = 0; i < CROWDED; i += 2)
		assert_true(is_watched(&node, CROWD + i)); /* the smaller ones */
	node_stop(&node);
}

static void what_is_asked_for_is_given_and_no_more_than_there_is(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;
	uint32_t some;

	(void)state;
	begin(&node);
	some = nt_tracker_give_back(node.tracker, 1 << 20, 0);
	assert_in_range(some, 2, CROWDED - 1);
	assert_int_equal(nt_tracker_give_back(node.tracker, SIZE_MAX, 0), CROWDED + 1 - some);
	assert_int_equal(nt_tracker_give_back(node.tracker, SIZE_MAX, 0), 0);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, 0);
	assert_int_equal(stats.ranks, 0);
	assert_int_equal(stats.comms, 0);
	node_stop(&node);
}

enum {
	SHARE_BYTES = 1 << 20, /* more than PID takes, less than the crowd */
};

static void an_owner_within_its_share_gives_up_nothing(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;
	uint32_t some;

	(void)state;
	begin(&node);
	/* Of two owners each may take a quarter. */
	assert_int_equal(nt_tracker_give_back(node.tracker, SIZE_MAX, 1000 * SHARE_BYTES), 0);
	some = nt_tracker_give_back(node.tracker, SIZE_MAX, 4 * SHARE_BYTES);
	assert_in_range(some, 2, CROWDED - 2);
	assert_int_equal(nt_tracker_give_back(node.tracker, SIZE_MAX, 4 * SHARE_BYTES), 0);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, 1 + CROWDED - some);
	assert_true(is_watched(&node, PID));
	node_stop(&node);
}

static void of_many_owners_each_has_an_equal_share(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	become_rank(&node, PID, 10);
	for (uint32_t i = 1; i < CROWDED; i++)
		become_rank(&node, PID + i, 1);
	assert_int_equal(nt_tracker_give_back(node.tracker, SIZE_MAX, CROWDED * SHARE_BYTES), 1);
	assert_false(is_watched(&node, PID));
	for (uint32_t i = 1; i < CROWDED; i++)
		assert_true(is_watched(&node, PID + i));
	node_stop(&node);
}

static void who_was_given_up_is_watched_again_after_half_a_minute(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	begin(&node);
	nt_tracker_tick(node.tracker, node.now_ns += SECOND);
	(void)nt_tracker_give_back(node.tracker, SIZE_MAX, 0);
	node.now_ns += 20 * SECOND;
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, 0);
	node.now_ns += 11 * SECOND;
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, 1);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_that_takes_the_most_gives_up_its_largest),
		cmocka_unit_test(what_is_asked_for_is_given_and_no_more_than_there_is),
		cmocka_unit_test(an_owner_within_its_share_gives_up_nothing),
		cmocka_unit_test(of_many_owners_each_has_an_equal_share),
		cmocka_unit_test(who_was_given_up_is_watched_again_after_half_a_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
