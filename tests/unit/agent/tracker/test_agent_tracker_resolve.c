/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Communicators of an unknown release of NCCL from before the agent, and what its RAS states of them. */
#include "agent/tracker/tracker_impl.h"
#include "tests/unit/agent/agent_job.h"

enum {
	OTHER = PID + 1,
	UNKNOWN = 0x100008, /* offset of the hash in no release */
	LOCAL = 0x102000,
};

#define WORLD_HASH 0xfeedULL
#define ENV(rank)                                                                                  \
	"MASTER_ADDR=a\0MASTER_PORT=1\0WORLD_SIZE=4\0LOCAL_WORLD_SIZE=2\0RANK=" rank               \
	"\0LOCAL_RANK=0\0"

static uint8_t *add_comm(struct node *node, uint32_t pid, uint64_t handle, uint64_t hash,
			 uint32_t rank)
{
	uint8_t *bytes = calloc(1, FAKE_NCCL_BYTES);

	assert_non_null(bytes);
	fake_nccl_at(bytes, UNKNOWN, hash, rank, 4, LOCAL);
	fake_memory_add(&node->memory, pid, handle, bytes, FAKE_NCCL_BYTES);
	return bytes;
}

static struct nt_tracker_stats stats_of(const struct node *node)
{
	struct nt_tracker_stats stats;

	nt_tracker_stats(node->tracker, &stats);
	return stats;
}

static struct nt_ras_want wanted(const struct node *node)
{
	struct nt_ras_want want[4];

	assert_int_equal(nt_tracker_unresolved(node->tracker, want, 4), 1);
	return want[0];
}

/* Ranks 3 and 2 of one communicator, in a process each. */
static void start_two(struct node *node, bool of_one_owner, uint8_t *ret_bytes[2])
{
	node_start(node);
	node->crowd_pid = of_one_owner ? 1 : 0;
	ENVIRON(node, PID, ENV("3"));
	ENVIRON(node, OTHER, ENV("2"));
	node_map(node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, true);
	node_map(node, OTHER, "/x/libnccl.so.2", NT_LIBRARY_NCCL, true);
	ret_bytes[0] = add_comm(node, PID, 0x50000000, WORLD_HASH, 3);
	ret_bytes[1] = add_comm(node, OTHER, 0x60000000, WORLD_HASH, 2);
}

static void communicators_are_read_by_what_ras_states_of_one_process(void **state)
{
	const struct nt_ras_comm stated[] = {{0x11, 0, 4}, {WORLD_HASH, 3, 4}};
	struct nt_ras_want want;
	uint8_t *bytes[2];
	struct node node;

	(void)state;
	start_two(&node, true, bytes);
	nccl_steps(&node, PID, 0x50000000, false, 160, 5 * MS);
	assert_true(node_last(&node)->comm[0].id_is_local);
	nccl_steps(&node, OTHER, 0x60000000, false, 1, 5 * MS);
	assert_int_equal(stats_of(&node).unresolved_comms, 2);
	want = wanted(&node);
	assert_true(want.has_node);
	assert_int_equal(want.node, 1); /* ranks 2 and 3 */

	assert_true(nt_tracker_stated(node.tracker, PID, want.start_ns, stated, 2));
	assert_int_equal(stats_of(&node).stated_layouts, 1);
	assert_int_equal(stats_of(&node).resolved_comms, 2);
	/* By it, launches of unknown graphs are known to communicate. */
	assert_true(nt_tracker_process(node.tracker, PID)->comms->last_call_ns > 0);
	assert_int_equal(stats_of(&node).ranks, 2);
	nccl_steps(&node, PID, 0x50000000, false, 320, 5 * MS);
	assert_false(node_last(&node)->comm[0].id_is_local);
	assert_int_equal(node_last(&node)->comm[0].id, WORLD_HASH);
	assert_int_equal(node_last(&node)->comm[0].rank, 3);
	assert_int_equal(node_last(&node)->comm[0].size, 4);
	assert_true(node_last(&node)->window.steps > 0);
	assert_int_equal(stats_of(&node).unresolved_comms, 2);
	assert_int_equal(nt_tracker_unresolved(node.tracker, &want, 1), 0);
	free(bytes[0]);
	free(bytes[1]);
	node_stop(&node);
}

static void of_another_owner_nothing_is_read_by_it(void **state)
{
	const struct nt_ras_comm stated[] = {{WORLD_HASH, 2, 4}, {WORLD_HASH, 3, 4}};
	struct nt_ras_want want[4];
	uint8_t *bytes[2];
	struct node node;

	(void)state;
	start_two(&node, false, bytes);
	nccl_steps(&node, PID, 0x50000000, false, 160, 5 * MS);
	nccl_steps(&node, OTHER, 0x60000000, false, 1, 5 * MS);
	assert_int_equal(nt_tracker_unresolved(node.tracker, want, 4), 2);
	assert_true(nt_tracker_stated(node.tracker, want[0].pid, want[0].start_ns, stated, 2));
	assert_int_equal(stats_of(&node).resolved_comms, 1);
	assert_int_equal(nt_tracker_unresolved(node.tracker, want, 4), 1);
	assert_true(nt_tracker_stated(node.tracker, want[0].pid, want[0].start_ns, stated, 2));
	assert_int_equal(stats_of(&node).resolved_comms, 2);
	free(bytes[0]);
	free(bytes[1]);
	node_stop(&node);
}

static void what_is_not_in_the_memory_of_the_process_changes_nothing(void **state)
{
	const struct nt_ras_comm lies[] = {{WORLD_HASH, 1, 4}, {WORLD_HASH + 1, 3, 4}};
	const struct nt_ras_comm truth = {WORLD_HASH, 3, 4};
	struct nt_ras_want want;
	struct node node;
	uint8_t *bytes;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, ENV("3"));
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, true);
	bytes = add_comm(&node, PID, 0x50000000, WORLD_HASH, 3);
	nccl_steps(&node, PID, 0x50000000, false, 160, 5 * MS);
	want = wanted(&node);
	assert_false(nt_tracker_stated(node.tracker, PID, want.start_ns, lies, 2));
	assert_false(nt_tracker_stated(node.tracker, PID, want.start_ns, lies, 0));
	/* Other processes. */
	assert_true(nt_tracker_stated(node.tracker, PID, want.start_ns + 1, &truth, 1));
	assert_true(nt_tracker_stated(node.tracker, OTHER, want.start_ns, &truth, 1));
	assert_int_equal(stats_of(&node).stated_layouts, 0);
	assert_int_equal(stats_of(&node).resolved_comms, 0);
	assert_int_equal(wanted(&node).pid, PID);
	free(bytes);
	node_stop(&node);
}

static void without_a_node_number_it_is_still_reported(void **state)
{
	struct nt_ras_want want;
	struct node node;
	uint8_t *bytes;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "MASTER_ADDR=a\0MASTER_PORT=1\0WORLD_SIZE=4\0RANK=3\0LOCAL_RANK=0\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, true);
	bytes = add_comm(&node, PID, 0x50000000, WORLD_HASH, 3);
	nccl_steps(&node, PID, 0x50000000, false, 160, 5 * MS);
	want = wanted(&node);
	assert_int_equal(want.pid, PID);
	assert_false(want.has_node);
	assert_int_equal(nt_tracker_unresolved(node.tracker, &want, 0), 0);
	free(bytes);
	node_stop(&node);
}

static void ranks_in_one_process_are_told_apart_once_they_are_read(void **state)
{
	const struct nt_ras_comm stated[] = {{WORLD_HASH, 0, 4}, {WORLD_HASH, 1, 4}};
	struct node node;
	uint8_t *first, *second;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, ENV("0"));
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, true);
	first = add_comm(&node, PID, 0x50000000, WORLD_HASH, 0);
	second = add_comm(&node, PID, 0x60000000, WORLD_HASH, 1);
	nccl_reduce(&node, PID, PID, 0x50000000, 1 << 20, STREAM);
	nccl_reduce(&node, PID, PID, 0x60000000, 1 << 20, STREAM);
	assert_int_equal(stats_of(&node).ranks, 1);
	assert_true(nt_tracker_stated(node.tracker, PID, wanted(&node).start_ns, stated, 2));
	assert_int_equal(stats_of(&node).resolved_comms, 2);
	nccl_reduce(&node, PID, PID, 0x50000000, 1 << 20, STREAM);
	nccl_reduce(&node, PID, PID, 0x60000000, 1 << 20, STREAM);
	assert_int_equal(stats_of(&node).ranks, 2);
	free(first);
	free(second);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(communicators_are_read_by_what_ras_states_of_one_process),
		cmocka_unit_test(of_another_owner_nothing_is_read_by_it),
		cmocka_unit_test(what_is_not_in_the_memory_of_the_process_changes_nothing),
		cmocka_unit_test(without_a_node_number_it_is_still_reported),
		cmocka_unit_test(ranks_in_one_process_are_told_apart_once_they_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
