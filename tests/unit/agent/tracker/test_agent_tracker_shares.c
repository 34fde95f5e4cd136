/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Places are shared out among owners. */
#include "tests/unit/agent/agent_job.h"

#include "agent/steps/registry.h"

static void map_as(struct node *node, uint32_t pid, uint32_t uid)
{
	struct nt_owner owner = {.id = uid + 10, .uid = uid, .name = "user"};
	struct nt_mapped_file file = {
		.pid = pid,
		.start_boot_ns = pid,
		.dev = 1,
		.ino = 2,
		.path = "/x/libnccl.so.2",
		.name = "/x/libnccl.so.2",
		.library = NT_LIBRARY_NCCL,
		.owner = &owner,
	};

	nt_tracker_mapped(node->tracker, &file);
}

static uint64_t left_out(const struct nt_share *share)
{
	struct nt_share_report report;

	nt_share_read(share, &report);
	return report.left_out;
}

/* A job of two ranks on this node steps on. */
static void work(struct node *node, uint32_t pid, int steps)
{
	for (int i = 0; i < steps; i++) {
		nccl_reduce(node, pid, pid, 0x5000, 1 << 20, STREAM);
		node->now_ns += 50 * MS;
	}
}

static void idle_processes_of_one_owner_do_not_hide_a_job_of_another(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t i = 0; i < NT_TRACKER_PROCESSES + 76; i++)
		map_as(&node, 10000 + i, 65534);
	assert_int_equal(left_out(nt_tracker_share(node.tracker)), 76);
	ENVIRON(&node, PID, "PATH=/bin\0");
	map_as(&node, PID, 1000);
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	work(&node, PID, 40);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node_last(&node)->window.rank.rank, 5);
	assert_int_equal(node_last(&node)->comm[0].epoch, NT_COMMUNICATOR_EPOCH_WHOLE);
	assert_int_equal(left_out(nt_tracker_share(node.tracker)), 77);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, NT_TRACKER_PROCESSES);
	assert_int_equal(stats.foreign_events, 0);
	/* They end, and no process is left out. */
	for (uint32_t i = 0; i < NT_TRACKER_PROCESSES + 76; i++)
		nt_tracker_exited(node.tracker, 10000 + i, 10000 + i, node.now_ns);
	assert_int_equal(left_out(nt_tracker_share(node.tracker)), 0);
	node_stop(&node);
}

static void a_process_that_was_left_out_is_watched_from_its_first_call_on(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	map_as(&node, PID, 65534); /* the oldest, so that it is the first to go */
	for (uint32_t i = 0; i < NT_TRACKER_PROCESSES; i++)
		map_as(&node, 10000 + i, 65534);
	map_as(&node, 999, 1000);
	assert_int_equal(left_out(nt_tracker_share(node.tracker)), 2);
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	work(&node, PID, 40);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node_last(&node)->window.rank.rank, 5);
	assert_int_equal(node_last(&node)->window.rank.pid, PID);
	/* What it did before is what it did at all. */
	assert_int_equal(node_last(&node)->comm[0].epoch, NT_COMMUNICATOR_EPOCH_WHOLE);
	node_stop(&node);
}

/* Of two owners whose processes all call, each has half of the places. */
static void processes_that_call_are_shared_out_evenly(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;
	size_t windows;

	(void)state;
	node_start(&node);
	for (uint32_t i = 0; i < NT_TRACKER_PROCESSES; i++) {
		map_as(&node, 10000 + i, 1);
		nccl_reduce(&node, 10000 + i, 10000 + i, 0x5000, 1 << 20, STREAM);
	}
	windows = node.windows;
	for (uint32_t i = 0; i < NT_TRACKER_PROCESSES; i++) {
		map_as(&node, 20000 + i, 2);
		nccl_reduce(&node, 20000 + i, 20000 + i, 0x5000, 1 << 20, STREAM);
	}
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, NT_TRACKER_PROCESSES);
	assert_int_equal(stats.ranks, NT_TRACKER_PROCESSES);
	assert_int_equal(left_out(nt_tracker_share(node.tracker)), NT_TRACKER_PROCESSES);
	/* What is known of those that had to go is sent, and they have not ended. */
	assert_int_equal(node.windows - windows, NT_TRACKER_PROCESSES / 2);
	assert_false(node_last(&node)->window.ended);
	/* Those that are refused ask again, in vain, and take nobody's place. */
	node.now_ns += SECOND;
	for (uint32_t i = 0; i < NT_TRACKER_PROCESSES; i++)
		nccl_reduce(&node, 20000 + i, 20000 + i, 0x5000, 1 << 20, STREAM);
	assert_int_equal(node.windows - windows, NT_TRACKER_PROCESSES / 2);
	node_stop(&node);
}

static void a_process_that_discovery_gives_up_has_not_ended(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	map_as(&node, PID, 1);
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_tick(node.tracker, node.now_ns += 100 * MS);
	nt_tracker_evicted(node.tracker, PID, 999); /* another of this number */
	assert_int_equal(node.windows, 0);
	nt_tracker_evicted(node.tracker, PID, PID);
	assert_int_equal(node.windows, 1);
	assert_false(node_last(&node)->window.ended);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, 0);
	node_stop(&node);
}

/* Of more processes than are reported nothing is kept. */
static void candidates_over_the_cap_are_counted(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t i = 0; i < NT_TRACKER_CANDIDATES + 3; i++)
		map_as(&node, 10000 + i, 1);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, NT_TRACKER_PROCESSES);
	assert_int_equal(stats.processes_over_cap,
			 NT_TRACKER_CANDIDATES - NT_TRACKER_PROCESSES + 3);
	node_stop(&node);
}

static void communicators_of_one_owner_leave_room_for_those_of_another(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t pid = 10000; pid < 10000 + NT_REGISTRY_COMMS / NT_PROCESS_COMMS; pid++) {
		map_as(&node, pid, 1);
		for (uint32_t i = 0; i < NT_PROCESS_COMMS; i++)
			nccl_reduce(&node, pid, pid, 0x5000 + 0x1000ULL * i, 1 << 20, STREAM);
	}
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, NT_REGISTRY_COMMS / 2);
	assert_true(left_out(nt_tracker_comm_share(node.tracker)) > 0);
	map_as(&node, 20000, 2);
	for (uint32_t i = 0; i < NT_PROCESS_COMMS; i++)
		nccl_reduce(&node, 20000, 20000, 0x5000 + 0x1000ULL * i, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, NT_REGISTRY_COMMS / 2 + NT_PROCESS_COMMS);
	for (uint32_t pid = 10000; pid < 10000 + NT_REGISTRY_COMMS / NT_PROCESS_COMMS; pid++)
		nt_tracker_exited(node.tracker, pid, pid, node.now_ns);
	nt_tracker_tick(node.tracker, node.now_ns += 20 * SECOND);
	assert_int_equal(left_out(nt_tracker_comm_share(node.tracker)), 0);
	map_as(&node, 20001, 1);
	nccl_reduce(&node, 20001, 20001, 0x5000, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, NT_PROCESS_COMMS + 1);
	node_stop(&node);
}

static void jobs_of_one_owner_do_not_take_the_keys_of_another(void **state)
{
	static char environ[NT_TRACKER_KEYS + 8][96];
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t i = 0; i < NT_TRACKER_KEYS + 8; i++) {
		uint32_t pid = 10000 + i;
		int len = snprintf(environ[i], sizeof(environ[i]),
				   "MASTER_ADDR=10.0.0.1%cMASTER_PORT=%u%cRANK=0%cWORLD_SIZE=2", 0,
				   1000 + i, 0, 0);

		node.processes = 0;
		node_describe_as(&node, pid, environ[i], (size_t)len + 1);
		map_as(&node, pid, 1);
		nccl_init(&node, pid, pid, 0x5000, 0, 2, 0x11 + i);
		work(&node, pid, 3);
	}
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(node.windows, NT_TRACKER_KEYS);
	assert_true(stats.keys_over_cap >= 8);
	assert_int_equal(left_out(nt_tracker_key_share(node.tracker)), 8);
	node.processes = 0;
	ENVIRON(&node, PID, "MASTER_ADDR=10.0.0.1\0MASTER_PORT=9\0RANK=1\0WORLD_SIZE=2\0");
	map_as(&node, PID, 2);
	nccl_init(&node, PID, PID, 0x5000, 1, 2, 0x11);
	work(&node, PID, 3);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_true(strstr(node_last(&node)->key, ":9") ||
		    node_last(&node)->window.rank.pid == PID);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_processes_of_one_owner_do_not_hide_a_job_of_another),
		cmocka_unit_test(a_process_that_was_left_out_is_watched_from_its_first_call_on),
		cmocka_unit_test(processes_that_call_are_shared_out_evenly),
		cmocka_unit_test(a_process_that_discovery_gives_up_has_not_ended),
		cmocka_unit_test(candidates_over_the_cap_are_counted),
		cmocka_unit_test(communicators_of_one_owner_leave_room_for_those_of_another),
		cmocka_unit_test(jobs_of_one_owner_do_not_take_the_keys_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
