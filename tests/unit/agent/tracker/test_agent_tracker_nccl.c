/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks, communicators and own work of NCCL jobs. */
#include "tests/unit/agent/agent_job.h"

static void ranks_and_job_come_from_the_init_call_without_any_environment(void **state)
{
	const struct node_window *w;
	struct node node;
	char key[64];

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	node_map(&node, PID, "/x/libcudart.so.13", NT_LIBRARY_CUDART, false);
	nccl_init(&node, PID, PID, 0x5000, 5, 8, 0x11);
	nccl_steps(&node, PID, 0x5000, true, 40, 5 * MS);
	w = node_last(&node);
	assert_true(w->window.rank.rank_known);
	assert_int_equal(w->window.rank.rank, 5);
	assert_int_equal(w->window.rank.size, 8);
	assert_true(w->window.uses_gpu);
	assert_int_equal(w->comm[0].epoch, 1);
	assert_false(w->comm[0].id_is_local);
	(void)snprintf(key, sizeof(key), "user/7/id:%016llx", (unsigned long long)w->comm[0].id);
	assert_string_equal(w->key, key);
	assert_int_equal(w->op[0][0].bytes, w->op[0][0].calls * (4 << 20));
	node_stop(&node);
}

static void a_local_check_makes_own_work_observable(void **state)
{
	const struct node_window *w;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
	nccl_steps(&node, PID, 0x5000, true, 60, 5 * MS);
	w = node_last(&node);
	assert_int_equal(w->window.own_tier, NT_TIER_T2);
	assert_int_equal(w->window.own_ns, w->window.steps * 22 * MS);
	assert_int_equal(w->window.own_blocked_ns, w->window.steps * 20 * MS);
	assert_int_equal(w->window.host_ns, w->window.steps * 2 * MS);
	assert_int_equal(w->window.blocked_ns, w->window.steps * 25 * MS);
	node_stop(&node);
}

static void the_victim_of_a_slow_peer_has_the_same_own_work(void **state)
{
	struct node node;
	uint64_t healthy;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
	nccl_steps(&node, PID, 0x5000, true, 60, 5 * MS);
	healthy = node_last(&node)->window.own_ns / node_last(&node)->window.steps;
	nccl_steps(&node, PID, 0x5000, true, 60, 30 * MS);
	assert_int_equal(node_last(&node)->window.own_ns / node_last(&node)->window.steps, healthy);
	assert_true(node_last(&node)->window.step_ns / node_last(&node)->window.steps >
		    2 * healthy);
	node_stop(&node);
}

static void without_a_check_only_host_work_is_told(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
	nccl_steps(&node, PID, 0x5000, false, 60, 25 * MS);
	assert_int_equal(node_last(&node)->window.own_tier, NT_TIER_T1);
	assert_int_equal(node_last(&node)->window.own_ns, 0);
	assert_int_equal(node_last(&node)->window.host_ns, node_last(&node)->window.steps * 2 * MS);
	node_stop(&node);
}

static void graph_launch(struct node *node, uint32_t pid)
{
	struct nt_event_call call =
		node_call(node, pid, pid, "cudaGraphLaunch", NT_LIBRARY_CUDART, 0);

	call.word[0] = 0x9999;
	call.word[1] = STREAM;
	node_event(node, &call);
}

/* As nccl_steps(), the kernels in a graph. */
static void graph_steps(struct node *node, uint32_t pid, uint64_t handle, int steps)
{
	for (int i = 0; i < steps; i++) {
		node->now_ns += 2 * MS;
		node->counters.calls[NT_COUNTER_LAUNCH] += 10;
		graph_launch(node, pid);
		stream_sync(node, pid, pid, STREAM, 20 * MS);
		nccl_reduce(node, pid, pid, handle, 1 << 20, STREAM + 1);
		stream_sync(node, pid, pid, STREAM + 1, 5 * MS);
	}
}

static void a_graph_of_kernels_is_own_work(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
	graph_steps(&node, PID, 0x5000, 60);
	assert_int_equal(node_last(&node)->window.own_tier, NT_TIER_T2);
	node_stop(&node);
}

static void a_graph_that_may_hold_communication_is_not(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
	nccl_init(&node, PID, PID, 0x9000, 0, 2, 0x22);
	/* While it was captured the tensor-parallel communicator was called, and never again. */
	nccl_reduce(&node, PID, PID, 0x9000, 1 << 20, STREAM);
	graph_steps(&node, PID, 0x5000, 60);
	assert_int_equal(node_last(&node)->window.own_tier, NT_TIER_T1);
	node_stop(&node);
}

static void communicators_made_in_a_group_are_known_at_its_end(void **state)
{
	uint64_t handles[] = {0, 0};
	struct nt_event_call call;
	const struct node_window *w;
	struct node node;
	uint8_t id[NT_ID_BYTES] = {1};

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	fake_memory_add(&node.memory, PID, 0x6000, handles, sizeof(handles));
	call = node_call(&node, PID, PID, "ncclGroupStart", NT_LIBRARY_NCCL, 0);
	node_event(&node, &call);
	for (uint32_t i = 0; i < 2; i++) {
		call = node_call(&node, PID, PID, "ncclCommInitRank", NT_LIBRARY_NCCL, MS);
		call.word[0] = 0x6000 + 8 * i;
		call.word[1] = 2;
		call.word[2] = i;
		nt_tracker_event(node.tracker, &call, id);
	}
	handles[0] = 0x5000;
	handles[1] = 0x9000;
	call = node_call(&node, PID, PID, "ncclGroupEnd", NT_LIBRARY_NCCL, MS);
	node_event(&node, &call);
	/* Two ranks of one communicator: two ranks in one process. */
	for (int i = 0; i < 100; i++) {
		nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
		nccl_reduce(&node, PID, PID, 0x9000, 1 << 20, STREAM + 1);
		node.now_ns += 20 * MS;
	}
	w = &node.window[node.windows - 2];
	assert_int_equal(w->window.rank.rank + node_last(&node)->window.rank.rank, 1);
	assert_true(w->comm[0].id == node_last(&node)->comm[0].id);
	assert_int_equal(w->comm[0].epoch, 1);
	node_stop(&node);
}

static void a_communicator_found_running_is_read_from_memory(void **state)
{
	const struct node_window *w;
	struct node node;
	uint8_t *bytes;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, true);
	bytes = nccl_bytes(&node, PID, 0x7f0000005000ULL, 0xfeedface, 3, 16);
	nccl_steps(&node, PID, 0x7f0000005000ULL, true, 60, 5 * MS);
	w = node_last(&node);
	assert_int_equal(w->window.rank.rank, 3);
	assert_int_equal(w->window.rank.size, 16);
	assert_int_equal(w->comm[0].id, 0xfeedface);
	assert_false(w->comm[0].id_is_local);
	assert_true(w->comm[0].epoch > 1);
	assert_string_equal(w->key, "user/7/id:00000000feedface");
	assert_int_equal(w->window.own_tier, NT_TIER_T2);
	node_stop(&node);
	free(bytes);
}

static void early_and_late_agents_give_a_communicator_the_same_id(void **state)
{
	struct node node;
	uint8_t *early, *late;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	ENVIRON(&node, PID + 1, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	node_map(&node, PID + 1, "/x/libnccl.so.2", NT_LIBRARY_NCCL, true);
	early = nccl_bytes(&node, PID, 0x7f0000005000ULL, 0xfeedface, 0, 2);
	late = nccl_bytes(&node, PID + 1, 0x7f0000005000ULL, 0xfeedface, 1, 2);
	nccl_init(&node, PID, PID, 0x7f0000005000ULL, 0, 2, 0x11);
	nccl_steps(&node, PID, 0x7f0000005000ULL, true, 60, 5 * MS);
	assert_int_equal(node_last(&node)->comm[0].id, 0xfeedface);
	nccl_steps(&node, PID + 1, 0x7f0000005000ULL, true, 60, 5 * MS);
	assert_int_equal(node_last(&node)->comm[0].id, 0xfeedface);
	assert_string_equal(node_last(&node)->key, node.window[0].key);
	node_stop(&node);
	free(early);
	free(late);
}

static void a_communicator_that_tells_nothing_is_local_and_its_rank_unknown(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, true);
	nccl_steps(&node, PID, 0x5000, true, 60, 5 * MS);
	assert_true(node_last(&node)->comm[0].id_is_local);
	assert_false(node_last(&node)->window.rank.rank_known);
	node_stop(&node);
}

static void a_group_of_the_job_is_not_taken_for_the_world(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID,
		"RANK=6\0WORLD_SIZE=8\0LOCAL_RANK=2\0MASTER_ADDR=h\0MASTER_PORT=1\0"
		"TORCHELASTIC_RESTART_COUNT=3\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 1, 2, 0x11);
	nccl_steps(&node, PID, 0x5000, true, 60, 5 * MS);
	assert_int_equal(node_last(&node)->window.rank.rank, 6);
	assert_int_equal(node_last(&node)->window.rank.size, 8);
	assert_int_equal(node_last(&node)->window.rank.local_rank, 2);
	assert_int_equal(node_last(&node)->window.attempt_hint, 3);
	assert_string_equal(node_last(&node)->key, "user/7/torch:h:1");
	/* But a world of that size knows better than the environment. */
	nccl_init(&node, PID, PID, 0x9000, 4, 8, 0x22);
	nccl_steps(&node, PID, 0x9000, true, 60, 5 * MS);
	assert_int_equal(node_last(&node)->window.rank.rank, 4);
	node_stop(&node);
}

static void a_destroyed_communicator_is_reported_once_more_and_forgotten(void **state)
{
	struct nt_tracker_stats stats;
	struct nt_event_call call;
	uint64_t calls = 0;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
	nccl_steps(&node, PID, 0x5000, true, 65, 5 * MS);
	call = node_call(&node, PID, PID, "ncclCommDestroy", NT_LIBRARY_NCCL, MS);
	call.word[0] = 0x5000;
	node_event(&node, &call);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, 0);
	/* The same address is another communicator. */
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x22);
	nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	assert_int_equal(node_last(&node)->window.comms, 2);
	assert_true(node_last(&node)->comm[0].id != node_last(&node)->comm[1].id);
	for (size_t i = 0; i < node.windows; i++) {
		for (size_t c = 0; c < node.window[i].window.comms; c++)
			calls += node.window[i].comm[c].ops ? node.window[i].op[c][0].calls : 0;
	}
	assert_int_equal(calls, 66);
	node_stop(&node);
}

static void split_and_shrink_children_are_the_same_on_all_ranks(void **state)
{
	struct nt_event_call call;
	uint64_t id[2] = {0};
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t r = 0; r < 2; r++) {
		uint32_t pid = PID + r;

		ENVIRON(&node, pid, "PATH=/bin\0");
		node_map(&node, pid, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
		nccl_init(&node, pid, pid, 0x5000, r, 2, 0x11);
		call = node_call(&node, pid, pid, "ncclCommSplit", NT_LIBRARY_NCCL, MS);
		call.word[0] = 0x5000;
		call.word[1] = 0;
		call.word[2] = r;
		call.word[3] = 0x6000;
		call.deref = 0x9000 + 0x1000 * r;
		node_event(&node, &call);
		/* No part in this one. */
		call.word[1] = 0xffffffff;
		call.deref = 0;
		node_event(&node, &call);
		nccl_reduce(&node, pid, pid, 0x9000 + 0x1000 * r, 1 << 20, STREAM);
		nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
		for (size_t c = 0; c < node_last(&node)->window.comms; c++) {
			if (node_last(&node)->comm[c].parent)
				id[r] = node_last(&node)->comm[c].id;
		}
	}
	assert_true(id[0] != 0);
	assert_true(id[0] == id[1]);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_and_job_come_from_the_init_call_without_any_environment),
		cmocka_unit_test(a_local_check_makes_own_work_observable),
		cmocka_unit_test(the_victim_of_a_slow_peer_has_the_same_own_work),
		cmocka_unit_test(without_a_check_only_host_work_is_told),
		cmocka_unit_test(a_graph_of_kernels_is_own_work),
		cmocka_unit_test(a_graph_that_may_hold_communication_is_not),
		cmocka_unit_test(communicators_made_in_a_group_are_known_at_its_end),
		cmocka_unit_test(a_communicator_found_running_is_read_from_memory),
		cmocka_unit_test(early_and_late_agents_give_a_communicator_the_same_id),
		cmocka_unit_test(a_communicator_that_tells_nothing_is_local_and_its_rank_unknown),
		cmocka_unit_test(a_group_of_the_job_is_not_taken_for_the_world),
		cmocka_unit_test(a_destroyed_communicator_is_reported_once_more_and_forgotten),
		cmocka_unit_test(split_and_shrink_children_are_the_same_on_all_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
