/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events of processes that discovery has still to judge. */
#include "tests/unit/agent/agent_job.h"

static void events_of_a_process_that_is_still_looked_at_wait(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;
	uint32_t pid;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node.awaited_pid = PID;
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nccl_reduce(&node, 999, 999, 0x5000, 1 << 20, STREAM);
	for (int i = 0; i < 3; i++) {
		nt_tracker_discovering(node.tracker);
		/* It need not be recalled: it is looked at already. */
		assert_int_equal(nt_tracker_unknown(node.tracker, &pid, 1), i == 0);
		assert_true(i > 0 || pid == 999);
		nt_tracker_discovered(node.tracker, true);
	}
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.foreign_events, 1);
	assert_int_equal(node_last(&node)->window.rank.rank, 5);
	assert_int_equal(node_last(&node)->op[0][0].calls, 1);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_a_process_that_is_still_looked_at_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
