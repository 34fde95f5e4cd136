/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several ranks in one process, and communicators that are made in rarer ways, grow, or break off. */
#include "agent/steps/process.h"
#include "tests/unit/agent/agent_job.h"

enum {
	ARRAY = 0x6000, /* where a process has its handles */
	DEVICES = 8,
	STEPS = 60,
	MOST = NT_PROCESS_RANKS + 1,
};

static uint64_t handle_of(uint32_t device)
{
	return 0x500000 + 0x1000ULL * device;
}

/* One process, on one thread, makes the communicator of all its devices. */
static void init_all(struct node *node, uint64_t *handles, uint32_t devices)
{
	struct nt_event_call call =
		node_call(node, PID, PID, "ncclCommInitAll", NT_LIBRARY_NCCL, MS);

	for (uint32_t i = 0; i < devices; i++)
		handles[i] = handle_of(i);
	fake_memory_add(&node->memory, PID, ARRAY, handles, devices * sizeof(*handles));
	call.word[0] = ARRAY;
	call.word[1] = devices | 0xdead00000000ULL; /* an int */
	node_event(node, &call);
}

/* Each step all devices reduce, in a group, on streams of their own. */
static void reduce_all(struct node *node, uint32_t devices, uint32_t first_tid, bool own_threads)
{
	for (int step = 0; step < STEPS; step++) {
		for (uint32_t i = 0; i < devices; i++)
			nccl_reduce(node, PID, own_threads ? first_tid + i : PID, handle_of(i),
				    1 << 20, STREAM + i);
		node->now_ns += 25 * MS;
	}
	nt_tracker_exited(node->tracker, PID, PID, node->now_ns);
}

/* What came of a rank: calls of its windows; each as this one communicator's. */
static uint64_t calls_of(const struct node *node, uint32_t rank, uint32_t size, uint64_t id,
			 const char *key)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < node->windows; i++) {
		const struct node_window *w = &node->window[i];

		if (w->window.rank.rank != rank)
			continue;
		assert_true(w->window.rank.rank_known);
		assert_int_equal(w->window.rank.size, size);
		assert_string_equal(w->key, key);
		assert_int_equal(w->window.comms, 1);
		assert_int_equal(w->comm[0].rank, rank);
		assert_int_equal(w->comm[0].size, size);
		assert_true(w->comm[0].id == id);
		assert_false(w->comm[0].id_is_local);
		assert_int_equal(w->comm[0].epoch, 1);
		calls += w->comm[0].ops ? w->op[0][0].calls : 0;
	}
	return calls;
}

static void begin(struct node *node)
{
	node_start(node);
	ENVIRON(node, PID, "PATH=/bin\0");
	node_map(node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
}

static void check_all(bool own_threads)
{
	uint64_t handles[DEVICES];
	struct nt_tracker_stats stats;
	const struct node_window *w;
	struct node node;

	begin(&node);
	init_all(&node, handles, DEVICES);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, DEVICES);
	reduce_all(&node, DEVICES, PID, own_threads);
	w = node_last(&node);
	for (uint32_t i = 0; i < DEVICES; i++)
		assert_int_equal(calls_of(&node, i, DEVICES, w->comm[0].id, w->key), STEPS);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.ranks_over_cap + stats.pending_over_cap, 0);
	node_stop(&node);
}

static void a_process_that_drives_eight_devices_from_one_thread_is_eight_ranks(void **state)
{
	(void)state;
	check_all(false);
}

static void a_process_with_a_thread_for_each_device_is_as_many_ranks(void **state)
{
	(void)state;
	check_all(true);
}

/* They are the process's: the sum over its ranks would be too much. */
static void of_several_ranks_of_a_process_one_sends_its_connections(void **state)
{
	uint64_t handles[DEVICES], sent = 0;
	struct nt_tcp_socket socket = {
		.local = "10.0.0.1", .remote = "10.0.0.2", .sent_bytes = 77, .retransmits = 3};
	struct node node;

	(void)state;
	begin(&node);
	node.tcp = (struct nt_tcp_window){
		.socket = &socket, .socket_count = 1, .sockets = 1, .observed_ns = MS};
	init_all(&node, handles, DEVICES);
	reduce_all(&node, DEVICES, PID, false);
	for (size_t i = 0; i < node.windows; i++) {
		const struct nt_window *window = &node.window[i].window;

		assert_true(!window->tcp.observed_ns || window->rank.rank == 0);
		sent += window->tcp.observed_ns;
		/* No tracepoint knows of them here. */
		assert_int_equal(window->host.tcp_retransmits, window->tcp.observed_ns ? 3 : 0);
	}
	assert_true(sent > 0);
	node_stop(&node);
}

static void more_devices_than_ranks_of_a_process_are_counted_and_the_size_stays_true(void **state)
{
	uint64_t handles[MOST];
	struct nt_tracker_stats stats;
	const struct node_window *w;
	struct node node;

	(void)state;
	begin(&node);
	init_all(&node, handles, MOST);
	reduce_all(&node, MOST, PID, false);
	w = &node.window[0];
	for (uint32_t i = 0; i < NT_PROCESS_RANKS; i++)
		assert_int_equal(calls_of(&node, i, MOST, w->comm[0].id, w->key), STEPS);
	/* The calls of the last are nobody else's. */
	assert_int_equal(calls_of(&node, NT_PROCESS_RANKS, MOST, w->comm[0].id, w->key), 0);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.ranks_over_cap, STEPS);
	assert_int_equal(stats.pending_over_cap, 0);
	node_stop(&node);
}

static void more_devices_than_can_wait_for_their_handles_are_counted(void **state)
{
	uint64_t handles[NT_PROCESS_PENDING + 1];
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	begin(&node);
	init_all(&node, handles, NT_PROCESS_PENDING + 1);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.pending_over_cap, 1);
	assert_int_equal(stats.comms, NT_PROCESS_PENDING);
	node_stop(&node);
}

static void an_init_that_failed_makes_nobody(void **state)
{
	uint64_t handles[2] = {handle_of(0), handle_of(1)};
	struct nt_tracker_stats stats;
	struct nt_event_call call;
	struct node node;

	(void)state;
	begin(&node);
	fake_memory_add(&node.memory, PID, ARRAY, handles, sizeof(handles));
	call = node_call(&node, PID, PID, "ncclCommInitAll", NT_LIBRARY_NCCL, MS);
	call.word[0] = ARRAY;
	call.word[1] = 2;
	call.ret = 1;
	node_event(&node, &call);
	/* Nor does one of so many. */
	call.ret = 0;
	call.word[1] = UINT32_MAX;
	node_event(&node, &call);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms + stats.pending_over_cap, 0);
	node_stop(&node);
}

static void ranks_of_a_scalable_init_meet_by_its_first_id(void **state)
{
	const struct node_window *first;
	struct nt_event_call call;
	struct node node;
	uint8_t id[NT_ID_BYTES] = {3};

	(void)state;
	begin(&node);
	ENVIRON(&node, PID + 1, "PATH=/bin\0");
	node_map(&node, PID + 1, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	for (uint32_t i = 0; i < 2; i++) {
		call = node_call(&node, PID + i, PID + i, "ncclCommInitRankScalable",
				 NT_LIBRARY_NCCL, MS);
		call.word[0] = ARRAY;
		call.word[1] = 4;
		call.word[2] = 3 * i;
		call.word[3] = 2; /* ids */
		call.deref = handle_of(i);
		nt_tracker_event(node.tracker, &call, id);
	}
	nccl_steps(&node, PID, handle_of(0), true, 60, 5 * MS);
	first = node_last(&node);
	nccl_steps(&node, PID + 1, handle_of(1), true, 60, 5 * MS);
	assert_true(node_last(&node)->window.rank.rank_known);
	assert_int_equal(first->window.rank.rank, 0);
	assert_int_equal(node_last(&node)->window.rank.rank, 3);
	assert_int_equal(node_last(&node)->window.rank.size, 4);
	assert_true(first->comm[0].id == node_last(&node)->comm[0].id);
	assert_false(first->comm[0].id_is_local);
	assert_string_equal(first->key, node_last(&node)->key);
	node_stop(&node);
}

/* A rank that was there passes its communicator; one that comes has none. */
static void who_grows_a_communicator_and_who_comes_to_it_are_of_one(void **state)
{
	struct nt_event_call call;
	uint64_t id[3] = {0};
	uint8_t *bytes[3];
	struct node node;

	(void)state;
	begin(&node);
	for (uint32_t i = 0; i < 3; i++) {
		ENVIRON(&node, PID + i, "PATH=/bin\0");
		node_map(&node, PID + i, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
		if (i < 2)
			nccl_init(&node, PID + i, PID + i, handle_of(i), i, 2, 0x11);
		bytes[i] = nccl_bytes(&node, PID + i, 0x7f0000005000ULL, 0xfeedface, i, 3);
		call = node_call(&node, PID + i, PID + i, "ncclCommGrow", NT_LIBRARY_NCCL, MS);
		call.word[0] = i < 2 ? handle_of(i) : 0;
		call.word[1] = 3;
		call.word[3] = i < 2 ? UINT32_MAX : i;
		call.word[4] = ARRAY;
		call.deref = 0x7f0000005000ULL;
		node_event(&node, &call);
		nccl_steps(&node, PID + i, 0x7f0000005000ULL, true, 60, 5 * MS);
		for (size_t c = 0; c < node_last(&node)->window.comms; c++) {
			const struct nt_comm_window *comm = &node_last(&node)->comm[c];

			if (comm->size != 3)
				continue;
			assert_int_equal(comm->rank, i);
			assert_false(comm->id_is_local);
			id[i] = comm->id;
		}
	}
	assert_true(id[0] && id[0] == id[1] && id[0] == id[2]);
	node_stop(&node);
	for (int i = 0; i < 3; i++)
		free(bytes[i]);
}

static void who_aborts_its_communicator_has_not_ended_well(void **state)
{
	static const struct {
		const char *symbol;
		bool finalized;
	} ends[] = {{"ncclCommAbort", false}, {"ncclCommDestroy", true}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct nt_tracker_stats stats;
		struct nt_event_call call;
		struct node node;

		begin(&node);
		nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
		nccl_steps(&node, PID, 0x5000, true, 60, 5 * MS);
		call = node_call(&node, PID, PID, ends[i].symbol, NT_LIBRARY_NCCL, MS);
		call.word[0] = 0x5000;
		node_event(&node, &call);
		nt_tracker_stats(node.tracker, &stats);
		assert_int_equal(stats.comms, 0);
		nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
		assert_true(node_last(&node)->window.ended);
		assert_int_equal(node_last(&node)->window.finalized, ends[i].finalized);
		node_stop(&node);
	}
}

/* Where the driver names no processes, the card is that of the environment. */
static void the_instance_of_the_environment_is_stated(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	node.has_host = true;
	node.host = (struct nt_host_sample){.state = 'S'};
	ENVIRON(&node, PID,
		MPI_ENVIRON("0") "CUDA_VISIBLE_DEVICES=MIG-1f0a4c8b-0000-0000-0000-000000000003\0");
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 21);
	assert_string_equal(node.gpu, "MIG-1f0a4c8b-0000-0000-0000-000000000003");
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_instance_of_the_environment_is_stated),
		cmocka_unit_test(
			a_process_that_drives_eight_devices_from_one_thread_is_eight_ranks),
		cmocka_unit_test(a_process_with_a_thread_for_each_device_is_as_many_ranks),
		cmocka_unit_test(of_several_ranks_of_a_process_one_sends_its_connections),
		cmocka_unit_test(
			more_devices_than_ranks_of_a_process_are_counted_and_the_size_stays_true),
		cmocka_unit_test(more_devices_than_can_wait_for_their_handles_are_counted),
		cmocka_unit_test(an_init_that_failed_makes_nobody),
		cmocka_unit_test(ranks_of_a_scalable_init_meet_by_its_first_id),
		cmocka_unit_test(who_grows_a_communicator_and_who_comes_to_it_are_of_one),
		cmocka_unit_test(who_aborts_its_communicator_has_not_ended_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
