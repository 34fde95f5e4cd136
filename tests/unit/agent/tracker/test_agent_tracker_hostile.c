/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events that make no sense, or that are too many. */
#include "tests/unit/agent/agent_job.h"

static void events_that_make_no_sense_are_counted_and_left_out(void **state)
{
	struct nt_tracker_stats stats;
	struct nt_event_call call;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	call = node_call(&node, PID, PID, "MPI_Allreduce", NT_LIBRARY_MPI, MS);
	call.h.row = 0xffff;
	node_event(&node, &call);
	call = node_call(&node, PID, PID, "MPI_Allreduce", NT_LIBRARY_MPI, MS);
	call.ret_ns = call.h.entry_ns - 1; /* returns before it is entered */
	node_event(&node, &call);
	mpi_reduce(&node, PID, 0, 10, MS); /* no communicator */
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.malformed_events, 3);
	assert_int_equal(stats.ranks, 0);
	node_stop(&node);
}

static void random_events_do_no_harm(void **state)
{
	struct nt_event_call call;
	struct nt_inside inside;
	uint8_t id[NT_ID_BYTES];
	uint64_t seed = 1;
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t pid = PID; pid < PID + 4; pid++) {
		ENVIRON(&node, pid, MPI_ENVIRON("0"));
		node_map(&node, pid, "/x/libmpi.so", NT_LIBRARY_MPI, pid & 1);
		node_map(&node, pid, "/x/libnccl.so", NT_LIBRARY_NCCL, pid & 1);
	}
	memset(&call, 0, sizeof(call));
	for (int i = 0; i < 200000; i++) {
		uint64_t *words = (uint64_t *)(void *)&call;

		for (size_t w = 0; w < sizeof(call) / 8; w++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			words[w] = seed >> (seed % 64);
		}
		memset(id, (int)(seed >> 20), sizeof(id));
		call.h.row = (uint16_t)((seed >> 8) % (nt_probe_rows() + 1));
		call.h.pid = PID + (seed >> 30) % 5;
		call.h.tid = call.h.pid + (seed >> 33) % 100;
		call.h.entry_ns = node.now_ns += (seed >> 40) % MS;
		call.ret_ns = call.h.entry_ns + (seed >> 50);
		call.h.flags = (uint16_t)(seed >> 41) & NT_CALL_RETURNED;
		call.ret = (seed >> 60) == 0;
		call.word[0] &= 0xff0;
		nt_tracker_event(node.tracker, &call, (seed >> 62) ? id : NULL);
		if (i % 100 == 0) {
			inside.entry_ns = node.now_ns;
			memcpy(inside.word, call.word, sizeof(inside.word));
			inside.deref = call.deref;
			nt_tracker_inside(node.tracker, call.h.pid, call.h.tid, call.h.row, &inside,
					  node.now_ns);
			nt_tracker_discovered(node.tracker, i % 300 == 0);
			nt_tracker_discovering(node.tracker);
			nt_tracker_tick(node.tracker, node.now_ns);
		}
		if (i % 20000 == 0)
			nt_tracker_lost_of(node.tracker, call.h.pid, seed % 3);
	}
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_true(node.windows > 0);
	node_stop(&node);
}

static void communicators_over_the_cap_are_counted(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	for (uint32_t i = 0; i < NT_PROCESS_COMMS + 7; i++)
		nccl_reduce(&node, PID, PID, 0x5000 + 0x1000ULL * i, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, NT_PROCESS_COMMS);
	assert_int_equal(stats.comms_over_cap, 7);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node.windows, 1);
	node_stop(&node);
}

static void communicators_that_come_and_go_have_a_cap_and_fit_into_one_window(void **state)
{
	enum { MADE = 3 * NT_PROCESS_COMMS };
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	for (uint32_t i = 0; i < MADE; i++) {
		uint64_t handle = 0x5000 + 0x1000ULL * i;
		struct nt_event_call call;

		nccl_reduce(&node, PID, PID, handle, 1 << 20, STREAM);
		call = node_call(&node, PID, PID, "ncclCommDestroy", NT_LIBRARY_NCCL, 1);
		call.word[0] = handle;
		node_event(&node, &call);
	}
	assert_int_equal(node.windows, 0);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, 0);
	assert_int_equal(stats.comms_over_cap, MADE - NT_PROCESS_COMMS);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node.windows, 1);
	/* What was told of makes room. */
	nccl_reduce(&node, PID, PID, 0x1000, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, 1);
	assert_int_equal(stats.comms_over_cap, MADE - NT_PROCESS_COMMS);
	node_stop(&node);
}

static void ranks_over_the_cap_are_counted(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	for (uint32_t i = 0; i < NT_PROCESS_RANKS + 3; i++) {
		nccl_init(&node, PID, PID, 0x5000 + 0x1000ULL * i, i, 64, 0x11);
		nccl_reduce(&node, PID, PID, 0x5000 + 0x1000ULL * i, 1 << 20, STREAM);
	}
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.ranks, NT_PROCESS_RANKS);
	assert_int_equal(stats.ranks_over_cap, 3);
	node_stop(&node);
}

static void processes_over_the_cap_are_counted(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	node.crowd_pid = 1000;
	for (uint32_t i = 0; i < NT_TRACKER_PROCESSES + 5; i++)
		node_map(&node, 1000 + i, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.processes, NT_TRACKER_PROCESSES);
	assert_int_equal(stats.processes_over_cap, 5);
	assert_int_equal(stats.undescribed, NT_TRACKER_PROCESSES);
	node_stop(&node);
}

static void threads_over_the_cap_are_counted_and_their_calls_are_not_lost(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
	for (uint32_t i = 0; i < NT_PROCESS_THREADS + 10; i++)
		nccl_reduce(&node, PID, PID + i, 0x5000, 1 << 20, STREAM);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.threads_over_cap, 10);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node_last(&node)->op[0][0].calls, NT_PROCESS_THREADS + 10);
	node_stop(&node);
}

static void pending_communicators_over_the_cap_are_counted(void **state)
{
	struct nt_tracker_stats stats;
	struct nt_event_call call;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	for (uint32_t i = 0; i < NT_PROCESS_PENDING + 2; i++) {
		uint8_t id[NT_ID_BYTES] = {1};

		call = node_call(&node, PID, PID, "ncclCommInitRank", NT_LIBRARY_NCCL, MS);
		call.word[0] = 0x6000 + 8 * i;
		call.word[1] = 2;
		nt_tracker_event(node.tracker, &call, id);
	}
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.pending_over_cap, 2);
	node_stop(&node);
}

static void init_all_without_handles(struct node *node, uint64_t address)
{
	struct nt_event_call call =
		node_call(node, PID, PID, "ncclCommInitAll", NT_LIBRARY_NCCL, 1);

	call.word[0] = address;
	call.word[1] = NT_PROCESS_PENDING;
	node_event(node, &call);
}

static void end_group(struct node *node)
{
	struct nt_event_call call = node_call(node, PID, PID, "ncclGroupEnd", NT_LIBRARY_NCCL, 1);

	node_event(node, &call);
}

/* Each read is one that the loop waits for. */
static void handles_that_never_come_are_read_seldom(void **state)
{
	enum { CALLS = 1000 };
	static uint64_t handles[NT_PROCESS_PENDING];
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	fake_memory_add(&node.memory, PID, 0x6000, handles, sizeof(handles));
	for (uint32_t i = 0; i < CALLS; i++)
		init_all_without_handles(&node, 0x6000);
	assert_in_range(node.memory.reads, 1, CALLS);
	node.memory.reads = 0;
	for (uint32_t i = 0; i < CALLS; i++)
		end_group(&node);
	assert_in_range(node.memory.reads, 0, NT_PROCESS_PENDING);
	node.memory.reads = 0;
	/* Of each one that is not known something is read to learn it, once. */
	for (uint32_t i = 0; i < CALLS; i++)
		nccl_reduce(&node, PID, PID, 0x900000 + 0x1000 * (i % 100), 1, STREAM);
	assert_in_range(node.memory.reads, 100, 300 + NT_PROCESS_PENDING);
	node_stop(&node);
}

static void a_handle_that_comes_later_is_found_by_a_call(void **state)
{
	static uint64_t handles[NT_PROCESS_PENDING];
	const struct node_window *w;
	struct node node;

	(void)state;
	memset(handles, 0, sizeof(handles));
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	fake_memory_add(&node.memory, PID, 0x6000, handles, sizeof(handles));
	init_all_without_handles(&node, 0x6000);
	handles[3] = 0x5000;
	node.now_ns += 100 * MS + 1;
	nccl_steps(&node, PID, 0x5000, true, 40, 5 * MS);
	w = node_last(&node);
	assert_int_equal(w->comm[0].rank, 3);
	assert_int_equal(w->comm[0].size, NT_PROCESS_PENDING);
	assert_int_equal(w->comm[0].epoch, 1);
	node_stop(&node);
}

/* Before the group ends any number may be there; the end is the time to look, however soon it comes. */
static void a_handle_is_read_at_the_end_of_its_group_although_it_was_read_before(void **state)
{
	static uint64_t handles[NT_PROCESS_PENDING];
	struct nt_tracker_stats stats;
	struct nt_event_call call;
	struct node node;

	(void)state;
	memset(handles, 0, sizeof(handles));
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	fake_memory_add(&node.memory, PID, 0x6000, handles, sizeof(handles));
	call = node_call(&node, PID, PID, "ncclGroupStart", NT_LIBRARY_NCCL, 0);
	node_event(&node, &call);
	init_all_without_handles(&node, 0x6000);
	assert_int_equal(node.memory.reads, 0);
	nccl_reduce(&node, PID, PID, 0x900000, 1, STREAM);
	assert_true(node.memory.reads >= NT_PROCESS_PENDING);
	for (uint32_t i = 0; i < NT_PROCESS_PENDING; i++)
		handles[i] = 0x500000 + 0x1000 * (uint64_t)i;
	end_group(&node);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.comms, NT_PROCESS_PENDING + 1);
	node_stop(&node);
}

static void a_pid_that_comes_again_is_another_process(void **state)
{
	struct nt_mapped_file file = {
		.pid = PID,
		.start_boot_ns = 777777,
		.path = "/x/libmpi.so",
		.name = "/x/libmpi.so",
		.library = NT_LIBRARY_MPI,
	};
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	nt_tracker_mapped(node.tracker, &file);
	assert_true(node_last(&node)->window.ended);
	mpi_steps(&node, PID, 60);
	assert_int_equal(node_last(&node)->window.rank.start_boot_ns, 777777);
	/* The end of the first is no end of the second. */
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	assert_false(node_last(&node)->window.ended);
	node_stop(&node);
}

static void a_rank_is_described_by_the_program_that_makes_the_calls(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	/* A launcher's child, not yet the program that it will run. */
	ENVIRON(&node, PID, "PATH=/bin\0");
	mpi_process(&node, PID, 1, false);
	node.processes = 0;
	ENVIRON(&node, PID, MPI_ENVIRON("1"));
	mpi_steps(&node, PID, 40);
	assert_string_equal(node_last(&node)->key, "user/7/mpi:77");
	node_stop(&node);
}

static void bytes_that_would_overflow_are_none(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_reduce(&node, PID, PID, 0x5000, UINT64_MAX, STREAM);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_int_equal(node_last(&node)->op[0][0].bytes, 0);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_that_make_no_sense_are_counted_and_left_out),
		cmocka_unit_test(random_events_do_no_harm),
		cmocka_unit_test(communicators_over_the_cap_are_counted),
		cmocka_unit_test(communicators_that_come_and_go_have_a_cap_and_fit_into_one_window),
		cmocka_unit_test(ranks_over_the_cap_are_counted),
		cmocka_unit_test(processes_over_the_cap_are_counted),
		cmocka_unit_test(threads_over_the_cap_are_counted_and_their_calls_are_not_lost),
		cmocka_unit_test(pending_communicators_over_the_cap_are_counted),
		cmocka_unit_test(handles_that_never_come_are_read_seldom),
		cmocka_unit_test(a_handle_that_comes_later_is_found_by_a_call),
		cmocka_unit_test(
			a_handle_is_read_at_the_end_of_its_group_although_it_was_read_before),
		cmocka_unit_test(a_pid_that_comes_again_is_another_process),
		cmocka_unit_test(a_rank_is_described_by_the_program_that_makes_the_calls),
		cmocka_unit_test(bytes_that_would_overflow_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
