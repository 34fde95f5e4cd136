/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Time of ranks in MPI's code outside of probed calls: of which processes it is found. */
#include "tests/unit/agent/agent_job.h"

#define MPI_CODE 0x7f1000000000ULL

static const struct nt_mpi_code code = {
	.count = 1,
	.range = {{.start = MPI_CODE, .end = MPI_CODE + 0x100000}},
};

static void begin(struct node *node)
{
	node_start(node);
	ENVIRON(node, PID, MPI_ENVIRON("0"));
	mpi_process(node, PID, 0, false);
	mpi_init(node, PID);
}

/* Walks, a second apart, that find the main thread there. Returns findings. */
static uint32_t walks(struct node *node, uint32_t pid, int n)
{
	struct nt_tracker_unprobed unprobed;
	uint32_t found = 0;

	for (int i = 0; i < n; i++) {
		uint64_t start_ns;

		node->now_ns += SECOND;
		nt_tracker_tick(node->tracker, node->now_ns);
		if (!nt_tracker_outside(node->tracker, pid, MPI_CODE + node->now_ns / SECOND,
					node->now_ns, &start_ns))
			continue;
		assert_false(nt_tracker_judge_unprobed(node->tracker, pid, start_ns + 1, &code,
						       node->now_ns, &unprobed));
		if (!nt_tracker_judge_unprobed(node->tracker, pid, start_ns, &code, node->now_ns,
					       &unprobed))
			continue;
		assert_string_equal(unprobed.command, "prog");
		assert_in_range(unprobed.finding.percent, 90, 100);
		found++;
	}
	return found;
}

static uint64_t count(const struct node *node)
{
	struct nt_tracker_stats stats;

	nt_tracker_stats(node->tracker, &stats);
	return stats.unprobed;
}

static void a_process_of_mpi_is_found_once_and_counted(void **state)
{
	struct node node;

	(void)state;
	begin(&node);
	assert_int_equal(walks(&node, PID, 2 * NT_UNPROBED_WALKS - 1), 0);
	assert_int_equal(count(&node), 0);
	assert_int_equal(walks(&node, PID, 10 * NT_UNPROBED_WALKS), 1);
	assert_int_equal(count(&node), 1);
	node_stop(&node);
}

static void mappings_beyond_the_cap_are_counted(void **state)
{
	const struct nt_mpi_code full = {.over_cap = 3};
	struct nt_tracker_unprobed unprobed;
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	begin(&node);
	assert_false(nt_tracker_judge_unprobed(node.tracker, PID, PID, &full, 0, &unprobed));
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.mpi_code_over_cap, 3);
	node_stop(&node);
}

static void other_processes_are_not(void **state)
{
	struct node node;

	(void)state;
	begin(&node);
	node_map(&node, PID + 1, "/usr/lib/libnccl.so.2", NT_LIBRARY_NCCL, false);
	assert_int_equal(walks(&node, PID + 1, 10 * NT_UNPROBED_WALKS), 0);
	assert_int_equal(walks(&node, PID + 2, 10 * NT_UNPROBED_WALKS), 0);
	assert_int_equal(count(&node), 0);
	node_stop(&node);
}

static void calls_that_the_governor_does_not_observe_are_no_evidence(void **state)
{
	struct node node;

	(void)state;
	begin(&node);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(walks(&node, PID, NT_UNPROBED_WALKS - 2), 0);
		nt_tracker_paused(node.tracker, PID, node.now_ns);
		assert_int_equal(walks(&node, PID, NT_UNPROBED_WALKS), 0);
		nt_tracker_resumed(node.tracker, PID, node.now_ns);
	}
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_COMMUNICATION);
	assert_int_equal(walks(&node, PID, 10 * NT_UNPROBED_WALKS), 0);
	nt_tracker_shed(node.tracker, PID, 0);
	assert_int_equal(walks(&node, PID, 10 * NT_UNPROBED_WALKS), 1);
	node_stop(&node);
}

static void lost_events_begin_the_look_anew(void **state)
{
	struct node node;

	(void)state;
	begin(&node);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(walks(&node, PID, 2 * NT_UNPROBED_WALKS - 2), 0);
		nt_tracker_lost_of(node.tracker, PID, 1);
	}
	assert_int_equal(walks(&node, PID, 10 * NT_UNPROBED_WALKS), 1);
	node_stop(&node);
}

static void a_wait_in_a_probed_call_is_none(void **state)
{
	struct nt_inside inside = {.entry_ns = 1};
	struct node node;
	uint16_t row = 0;

	(void)state;
	begin(&node);
	while (strcmp(nt_probe_row(row)->symbol, "MPI_Allreduce") != 0)
		row++;
	for (int i = 0; i < 60 * NT_UNPROBED_WALKS; i++) {
		if (i % 6 == 0) {
			assert_int_equal(walks(&node, PID, 1), 0);
			continue;
		}
		node.now_ns += SECOND;
		nt_tracker_look(node.tracker);
		nt_tracker_inside(node.tracker, PID, PID, row, &inside, node.now_ns);
	}
	assert_int_equal(count(&node), 0);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_of_mpi_is_found_once_and_counted),
		cmocka_unit_test(mappings_beyond_the_cap_are_counted),
		cmocka_unit_test(other_processes_are_not),
		cmocka_unit_test(calls_that_the_governor_does_not_observe_are_no_evidence),
		cmocka_unit_test(lost_events_begin_the_look_anew),
		cmocka_unit_test(a_wait_in_a_probed_call_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
