/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events of processes that are not discovered yet: kept, given in order, capped. */
#include "tests/unit/agent/agent_job.h"

static void events_before_discovery_are_kept_and_those_of_strangers_are_not(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nccl_reduce(&node, 999, 999, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker, true);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nccl_reduce(&node, 999, 999, 0x5000, 1 << 20, STREAM); /* known to be foreign by now */
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.foreign_events, 2);
	assert_int_equal(node.windows, 1);
	assert_int_equal(node_last(&node)->window.rank.rank, 5);
	assert_int_equal(node_last(&node)->op[0][0].calls, 2);
	node_stop(&node);
}

/* A look that began before a process mapped its libraries does not find it. */
static void events_that_come_during_a_look_wait_for_the_next(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	nt_tracker_discovering(node.tracker);
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nt_tracker_discovered(node.tracker, true);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.foreign_events, 0);
	assert_int_equal(node_last(&node)->window.rank.rank, 5);
	assert_int_equal(node_last(&node)->op[0][0].calls, 1);
	node_stop(&node);
}

static void what_a_look_that_lost_records_does_not_find_is_nobodys_yet(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nt_tracker_discovering(node.tracker);
	nt_tracker_discovered(node.tracker, false);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.foreign_events, 0);
	assert_int_equal(node_last(&node)->window.rank.rank, 5);
	node_stop(&node);
}

/* More events may be read while processes are reported: they are not to overtake what waits. */
static void events_that_waited_come_before_those_read_after_their_process_was_found(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	nccl_reduce(&node, 999, 999, 0x5000, 1 << 20, STREAM);
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nccl_reduce(&node, 999, 999, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node_last(&node)->window.rank.rank, 5);
	/* Its making was seen first: its numbers are those of its whole life. */
	assert_int_equal(node_last(&node)->comm[0].epoch, NT_COMMUNICATOR_EPOCH_WHOLE);
	node_stop(&node);
}

/* Which MPI it is, the second of its libraries tells: the upper half of a handle of MPICH is anything. */
static void what_waited_is_given_when_all_that_a_process_maps_is_known(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PMI_RANK=5\0PMI_SIZE=8\0");
	mpi_reduce(&node, PID, 0x44000000 | 1ULL << 40, 1000, MS);
	mpi_reduce(&node, PID, 0x44000000 | 2ULL << 40, 1000, MS);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libcudart.so.13", NT_LIBRARY_CUDART, false);
	node_map(&node, PID, "/x/libmpich.so.12", NT_LIBRARY_MPI, false);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node_last(&node)->window.comms, 1);
	assert_int_equal(node_last(&node)->op[0][0].calls, 2);
	node_stop(&node);
}

static void what_waited_comes_before_the_end_of_its_process(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns += SECOND);
	nt_tracker_discovered(node.tracker, true);
	assert_true(node_last(&node)->window.ended);
	assert_int_equal(node_last(&node)->op[0][0].calls, 1);
	node_stop(&node);
}

static void a_strangers_pid_is_asked_about_again(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	nt_tracker_discovered(node.tracker, true);
	node.now_ns += 2 * SECOND;
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.foreign_events, 1);
	assert_int_equal(node_last(&node)->window.rank.rank, 5);
	node_stop(&node);
}

/* One owner alone has half of the places. */
static void events_over_the_cap_before_discovery_are_lost_and_counted(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	for (int i = 1; i < NT_TRACKER_ORPHANS / 2 + 3; i++)
		nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.orphans_over_cap, 3);
	assert_int_equal(stats.lost_events, 3);
	assert_int_equal(stats.foreign_events, 0);
	assert_int_equal(node_last(&node)->window.lost, 3);
	assert_int_not_equal(node_last(&node)->comm[0].epoch, NT_COMMUNICATOR_EPOCH_WHOLE);
	node_stop(&node);
}

static void one_process_cannot_take_the_places_of_anothers_first_events(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	for (int i = 0; i < 2 * NT_TRACKER_ORPHANS; i++)
		nccl_reduce(&node, 999, 999, 0x5000, 1 << 20, STREAM);
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.orphans_over_cap, 2 * NT_TRACKER_ORPHANS - NT_TRACKER_ORPHANS / 2);
	assert_int_equal(stats.lost_events, 0);
	assert_int_equal(node_last(&node)->window.lost, 0);
	assert_int_equal(node_last(&node)->comm[0].epoch, NT_COMMUNICATOR_EPOCH_WHOLE);
	/* All places are free again. */
	for (int i = 0; i < NT_TRACKER_ORPHANS / 2; i++)
		nccl_reduce(&node, 888, 888, 0x5000, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.orphans_over_cap, 2 * NT_TRACKER_ORPHANS - NT_TRACKER_ORPHANS / 2);
	node_stop(&node);
}

static void many_processes_of_one_owner_leave_room_for_anothers_first_events(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	node.crowd_pid = 10000;
	ENVIRON(&node, PID, "PATH=/bin\0");
	for (int i = 0; i < 64; i++)
		for (uint32_t pid = 10000; pid < 11000; pid++)
			nccl_reduce(&node, pid, pid, 0x5000, 1 << 20, STREAM);
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	for (int i = 0; i < 100; i++)
		nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_discovering(node.tracker);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node_last(&node)->window.lost, 0);
	assert_int_equal(node_last(&node)->op[0][0].calls, 100);
	node_stop(&node);
}

static void many_processes_with_early_events_have_a_cap(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t pid = 10000; pid < 30000; pid++)
		nccl_reduce(&node, pid, pid, 0x5000, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_true(stats.orphans_over_cap > 0);
	nt_tracker_discovering(node.tracker);
	nt_tracker_discovered(node.tracker, true);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.foreign_events + stats.orphans_over_cap, 20000);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_before_discovery_are_kept_and_those_of_strangers_are_not),
		cmocka_unit_test(events_that_come_during_a_look_wait_for_the_next),
		cmocka_unit_test(what_a_look_that_lost_records_does_not_find_is_nobodys_yet),
		cmocka_unit_test(
			events_that_waited_come_before_those_read_after_their_process_was_found),
		cmocka_unit_test(what_waited_is_given_when_all_that_a_process_maps_is_known),
		cmocka_unit_test(what_waited_comes_before_the_end_of_its_process),
		cmocka_unit_test(a_strangers_pid_is_asked_about_again),
		cmocka_unit_test(events_over_the_cap_before_discovery_are_lost_and_counted),
		cmocka_unit_test(one_process_cannot_take_the_places_of_anothers_first_events),
		cmocka_unit_test(many_processes_of_one_owner_leave_room_for_anothers_first_events),
		cmocka_unit_test(many_processes_with_early_events_have_a_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
