/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a tracker tells of the ranks of an MPI job, and of those of a pool of Gloo threads. */
#include "tests/unit/agent/agent_job.h"

static void an_mpi_job_is_measured_from_end_to_end(void **state)
{
	const struct node_window *w;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("1"));
	mpi_process(&node, PID, 1, false);
	mpi_init(&node, PID);
	mpi_steps(&node, PID, 60);
	nt_tracker_tick(node.tracker, node.now_ns);

	assert_int_equal(node.windows, 2);
	w = node_last(&node);
	assert_string_equal(w->key, "user/7/mpi:77");
	assert_true(w->window.rank.rank_known);
	assert_int_equal(w->window.rank.rank, 1);
	assert_int_equal(w->window.rank.size, 2);
	assert_int_equal(w->window.rank.pid, PID);
	assert_int_equal(w->window.own_tier, NT_TIER_T2);
	assert_int_equal(w->window.steps, 20);
	assert_int_equal(w->window.own_ns, 20 * 20 * MS);
	assert_int_equal(w->window.comm_ns, 20 * 5 * MS);
	assert_int_equal(w->window.step_ns, 20 * 25 * MS);
	assert_int_equal(w->window.host_ns, 20 * 20 * MS);
	assert_int_equal(w->window.comms, 1);
	assert_string_equal(w->comm[0].name, "MPI_COMM_WORLD");
	assert_int_equal(w->comm[0].epoch, 1);
	assert_int_equal(w->comm[0].op[0].op, NT_OP_ALL_REDUCE);
	assert_int_equal(w->watermark_ns, w->window.end_boot_ns);
	node_stop(&node);
}

static void calls_and_bytes_of_all_windows_are_those_that_were_made(void **state)
{
	uint64_t calls = 0, bytes = 0, last = 0;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 333);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	for (size_t i = 0; i < node.windows; i++) {
		const struct nt_comm_op *op = &node.window[i].op[0][0];

		if (!node.window[i].comm[0].ops)
			continue;
		assert_int_equal(op->first, last + 1);
		calls += op->calls;
		bytes += op->bytes;
		last = op->last;
	}
	assert_int_equal(calls, 333);
	assert_int_equal(bytes, 333 * 8000);
	assert_int_equal(last, 333);
	assert_true(node_last(&node)->window.ended);
	node_stop(&node);
}

static void the_world_has_one_id_on_all_ranks_and_after_a_restart(void **state)
{
	uint64_t early, late;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	ENVIRON(&node, PID + 1, MPI_ENVIRON("1"));
	mpi_process(&node, PID, 0, false);
	mpi_process(&node, PID + 1, 1, true);
	mpi_init(&node, PID);
	mpi_steps(&node, PID, 30);
	early = node_last(&node)->comm[0].id;
	assert_int_equal(node_last(&node)->comm[0].epoch, 1);
	mpi_steps(&node, PID + 1, 30);
	late = node_last(&node)->comm[0].id;
	assert_true(early == late);
	assert_false(node_last(&node)->comm[0].id_is_local);
	/* But the numbers of a rank that was found running are its own. */
	assert_true(node_last(&node)->comm[0].epoch > 1);
	assert_int_equal(node_last(&node)->window.rank.rank, 1);
	node_stop(&node);
}

static void mpi_split(struct node *node, uint32_t pid, uint64_t parent, uint32_t color,
		      uint64_t child)
{
	struct nt_event_call call = node_call(node, pid, pid, "MPI_Comm_split", NT_LIBRARY_MPI, MS);

	call.word[0] = parent;
	call.word[1] = color;
	call.word[3] = 0x7000;
	call.deref = child;
	node_event(node, &call);
}

static void split_communicators_have_one_id_per_colour(void **state)
{
	enum { RANKS = 4 };
	uint8_t world[RANKS][FAKE_MPI_BYTES], half[RANKS][FAKE_MPI_BYTES];
	uint64_t id[RANKS];
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t r = 0; r < RANKS; r++) {
		uint32_t pid = PID + r;
		uint64_t child = 0x7f0000100000ULL + r * 0x10000; /* differs on every rank */

		ENVIRON(&node, pid, "PMIX_NAMESPACE=77\0");
		fake_mpi(world[r], WORLD, "MPI_COMM_WORLD", r, RANKS);
		fake_mpi(half[r], child, "MPI COMMUNICATOR 3 SPLIT FROM 0", r / 2, RANKS / 2);
		fake_memory_add(&node.memory, pid, WORLD, world[r], FAKE_MPI_BYTES);
		fake_memory_add(&node.memory, pid, child, half[r], FAKE_MPI_BYTES);
		node_map(&node, pid, "/usr/lib/libmpi.so.40", NT_LIBRARY_MPI, false);
		mpi_init(&node, pid);
		mpi_split(&node, pid, WORLD, r % 2, child);
		for (int i = 0; i < 2; i++) {
			mpi_reduce(&node, pid, WORLD, 10, MS);
			mpi_reduce(&node, pid, child, 10, MS);
		}
		nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	}
	for (size_t i = 0; i < node.windows; i++) {
		const struct node_window *w = &node.window[i];

		for (size_t c = 0; c < w->window.comms; c++) {
			if (w->comm[c].size != RANKS / 2)
				continue;
			assert_int_equal(w->comm[c].rank, w->window.rank.rank / 2);
			assert_false(w->comm[c].id_is_local);
			id[w->window.rank.rank] = w->comm[c].id;
		}
		assert_int_equal(w->window.rank.size, RANKS); /* the world, not the half */
	}
	assert_true(id[0] == id[2]);
	assert_true(id[1] == id[3]);
	assert_true(id[0] != id[1]);
	node_stop(&node);
}

static void a_launcher_that_maps_the_libraries_is_no_rank(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "WORLD_SIZE=2\0MASTER_ADDR=h\0MASTER_PORT=1\0");
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	for (int i = 0; i < 5; i++)
		nt_tracker_tick(node.tracker, node.now_ns += SECOND);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(node.windows, 0);
	assert_int_equal(node.heartbeats, 0);
	assert_int_equal(stats.ranks, 0);
	node_stop(&node);
}

static void waiting_for_started_calls_is_communication(void **state)
{
	const struct node_window *w;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	for (int i = 0; i < 40; i++) {
		struct nt_event_call call =
			node_call(&node, PID, PID, "MPI_Iallreduce", NT_LIBRARY_MPI, 0);

		call.word[2] = 100;
		call.word[3] = 1ULL << 40;
		call.word[5] = WORLD;
		call.deref = 4;
		node_event(&node, &call);
		node.now_ns += 20 * MS;
		call = node_call(&node, PID, PID, "MPI_Wait", NT_LIBRARY_MPI, 7 * MS);
		node_event(&node, &call);
		node.now_ns += 10 * MS;
	}
	w = node_last(&node);
	assert_int_equal(w->window.own_tier, NT_TIER_T2);
	assert_int_equal(w->window.comm_ns, w->window.steps * 7 * MS);
	assert_int_equal(w->window.own_ns, w->window.steps * 23 * MS);
	assert_int_equal(w->op[0][0].op, NT_OP_ALL_REDUCE);
	assert_int_equal(w->op[0][0].bytes, w->op[0][0].calls * 400);
	node_stop(&node);
}

static void a_handle_of_mpich_is_a_number(void **state)
{
	const struct node_window *w;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PMI_RANK=1\0PMI_SIZE=4\0");
	node_map(&node, PID, "/usr/lib/libmpich.so.12", NT_LIBRARY_MPI, false);
	for (int i = 0; i < 60; i++) {
		struct nt_event_call call =
			node_call(&node, PID, PID, "MPI_Allreduce", NT_LIBRARY_MPI, MS);

		call.word[2] = 0xdead00000000ULL + 100; /* an int: the rest is noise */
		call.word[3] = 0x4c00080b;
		call.word[5] = 0xbeef00000000ULL + 0x44000000;
		node_event(&node, &call);
		node.now_ns += 20 * MS;
	}
	w = node_last(&node);
	assert_int_equal(w->window.rank.rank, 1);
	assert_int_equal(w->window.rank.size, 4);
	assert_int_equal(w->window.comms, 1);
	assert_false(w->comm[0].id_is_local);
	assert_int_equal(w->op[0][0].bytes, w->op[0][0].calls * 800);
	node_stop(&node);
}

/* word[1] points at an int, beside which there lies something. */
static void ask(struct node *node, const char *symbol, uint64_t handle, uint32_t answer)
{
	struct nt_event_call call = node_call(node, PID, PID, symbol, NT_LIBRARY_MPI, MS / 100);

	call.word[0] = handle;
	call.deref = 0x7700000000ULL + answer;
	node_event(node, &call);
}

static void make_child(struct node *node, const char *symbol, uint64_t parent, uint64_t color,
		       uint64_t handle)
{
	struct nt_event_call call = node_call(node, PID, PID, symbol, NT_LIBRARY_MPI, MS);

	call.word[0] = parent;
	call.word[1] = color;
	call.deref = handle;
	node_event(node, &call);
}

static void reduce_over(struct node *node, uint64_t handle)
{
	struct nt_event_call call = node_call(node, PID, PID, "MPI_Allreduce", NT_LIBRARY_MPI, MS);

	call.word[2] = 100;
	call.word[3] = 0x4c00080b;
	call.word[5] = handle;
	node_event(node, &call);
	node->now_ns += 20 * MS;
}

static const struct nt_comm_window *comm_of(const struct node_window *w, uint32_t size)
{
	for (size_t i = 0; i < w->window.comms; i++)
		if (w->comm[i].size == size)
			return &w->comm[i];
	return NULL;
}

static void begin_mpich(struct node *node)
{
	node_start(node);
	ENVIRON(node, PID, "PMI_RANK=5\0PMI_SIZE=8\0");
	node_map(node, PID, "/usr/lib/libmpich.so.12", NT_LIBRARY_MPI, false);
	ask(node, "MPI_Comm_rank", 0x44000000, 5);
}

static void communicators_of_mpich_are_known_by_what_the_program_asks(void **state)
{
	const struct nt_comm_window *half, *quarter, *whole;
	const struct node_window *w;
	struct node node;

	(void)state;
	begin_mpich(&node);
	make_child(&node, "MPI_Comm_split", 0x44000000, 1, 0x84000002);
	ask(&node, "MPI_Comm_size", 0x84000002, 4);
	ask(&node, "MPI_Comm_rank", 0x84000002, 2);
	make_child(&node, "MPI_Comm_dup", 0x84000002, 0, 0x84000003);
	make_child(&node, "MPI_Comm_create", 0x44000000, 0, 0x84000004);
	ask(&node, "MPI_Comm_rank", 0x84000004, 1);
	ask(&node, "MPI_Comm_size", 0x84000004, 2);
	make_child(&node, "MPI_Cart_create", 0x44000000, 0, 0x84000005);
	ask(&node, "MPI_Comm_size", 0x84000005, 8);
	ask(&node, "MPI_Comm_rank", 0x84000005, 5);
	for (int i = 0; i < 30; i++) {
		reduce_over(&node, 0x84000003);
		reduce_over(&node, 0x84000004);
		reduce_over(&node, 0x84000005);
	}
	w = node_last(&node);
	assert_int_equal(w->window.comms, 3);
	half = comm_of(w, 4);
	quarter = comm_of(w, 2);
	whole = comm_of(w, 8);
	/* A duplicate is all of its parent, and nobody need ask. */
	assert_non_null(half);
	assert_int_equal(half->rank, 2);
	assert_false(half->id_is_local);
	/* Which part of its parent that is, is not told. */
	assert_non_null(quarter);
	assert_int_equal(quarter->rank, 1);
	assert_true(quarter->id_is_local);
	assert_non_null(whole);
	assert_int_equal(whole->rank, 5);
	assert_false(whole->id_is_local);
	node_stop(&node);
}

static void a_size_without_a_rank_or_with_a_wrong_one_is_none(void **state)
{
	const struct node_window *w;
	struct node node;

	(void)state;
	begin_mpich(&node);
	make_child(&node, "MPI_Comm_split", 0x44000000, 1, 0x84000002);
	ask(&node, "MPI_Comm_size", 0x84000002, 4);
	make_child(&node, "MPI_Comm_split", 0x44000000, 2, 0x84000003);
	ask(&node, "MPI_Comm_rank", 0x84000003, 4);
	ask(&node, "MPI_Comm_size", 0x84000003, 4);
	ask(&node, "MPI_Comm_size", 0x84000003, UINT32_MAX);
	ask(&node, "MPI_Comm_size", 0x84000003, 0);
	/* The world's is known already. */
	ask(&node, "MPI_Comm_size", 0x44000000, 77);
	for (int i = 0; i < 30; i++) {
		reduce_over(&node, 0x84000002);
		reduce_over(&node, 0x84000003);
		reduce_over(&node, 0x44000000);
	}
	w = node_last(&node);
	assert_int_equal(w->window.comms, 3);
	assert_non_null(comm_of(w, 0));
	assert_non_null(comm_of(w, 8));
	assert_null(comm_of(w, 4));
	assert_null(comm_of(w, 77));
	assert_int_equal(w->window.rank.size, 8);
	node_stop(&node);
}

static void memory_that_cannot_be_read_leaves_the_environment(void **state)
{
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("1"));
	node_map(&node, PID, "/usr/lib/libmpi.so.40", NT_LIBRARY_MPI, false);
	mpi_init(&node, PID);
	mpi_steps(&node, PID, 40);
	assert_true(node_last(&node)->window.rank.rank_known);
	assert_int_equal(node_last(&node)->window.rank.rank, 1);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.unresolved_comms, 1);
	node_stop(&node);
}

static void gloo_reduce(struct node *node, uint32_t pid, uint32_t tid, uint64_t context,
			uint64_t count, uint32_t tag, uint64_t entry_ns, uint64_t ret_ns)
{
	struct nt_event_call call = node_call(
		node, pid, tid, "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE", NT_LIBRARY_GLOO, 1);

	call.h.entry_ns = entry_ns;
	call.ret_ns = ret_ns;
	call.deref = context;
	call.word[5] = count;
	call.word[6] = 4;
	call.word[11] = tag | 0xabcd00000000ULL; /* the upper half is padding */
	node_event(node, &call);
}

static void a_pool_of_threads_is_measured_as_one_rank(void **state)
{
	uint32_t context[] = {1, 2, 0, 0};
	const struct node_window *w;
	struct node node;
	uint32_t tag = 0;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "RANK=1\0WORLD_SIZE=2\0LOCAL_RANK=1\0MASTER_ADDR=h\0MASTER_PORT=1\0");
	node_map(&node, PID, "/usr/lib/libgloo.so.0", NT_LIBRARY_GLOO, false);
	fake_memory_add(&node.memory, PID, 0x7f0000002000ULL, context, sizeof(context));
	for (int i = 0; i < 60; i++) {
		uint64_t t = node.now_ns;

		/* Two in flight; the second one returns first. */
		gloo_reduce(&node, PID, PID + 2, 0x7f0000002000ULL, 200, tag + 1, t + 22 * MS,
			    t + 24 * MS);
		gloo_reduce(&node, PID, PID + 1, 0x7f0000002000ULL, 100, tag, t + 20 * MS,
			    t + 25 * MS);
		tag += 2;
		node.now_ns += 25 * MS;
	}
	nt_tracker_drain(node.tracker, node.now_ns);
	w = node_last(&node);
	assert_int_equal(w->window.rank.rank, 1);
	assert_int_equal(w->window.own_tier, NT_TIER_T2);
	assert_int_equal(w->window.comm_ns, w->window.steps * 5 * MS);
	assert_int_equal(w->window.own_ns, w->window.steps * 20 * MS);
	assert_true(w->comm[0].numbered_by_library);
	assert_int_equal(w->comm[0].epoch, 1);
	assert_false(w->comm[0].id_is_local);
	assert_int_equal(w->op[0][0].last, w->comm[0].last);
	assert_int_equal(w->comm[0].last, tag); /* tags count from 0 */
	node_stop(&node);
}

/* Who of several ranks ended first may depend on it. */
static void an_end_that_is_noticed_after_a_window_was_sent_keeps_its_time(void **state)
{
	struct node node;
	uint64_t ended_ns;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	ended_ns = node.now_ns;
	for (int i = 0; i < 3; i++)
		nt_tracker_tick(node.tracker, node.now_ns += SECOND);
	nt_tracker_exited(node.tracker, PID, PID, ended_ns);
	assert_true(node_last(&node)->window.ended);
	assert_int_equal(node_last(&node)->window.end_boot_ns -
				 node_last(&node)->window.ended_early_ns,
			 ended_ns);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_that_is_noticed_after_a_window_was_sent_keeps_its_time),
		cmocka_unit_test(an_mpi_job_is_measured_from_end_to_end),
		cmocka_unit_test(calls_and_bytes_of_all_windows_are_those_that_were_made),
		cmocka_unit_test(the_world_has_one_id_on_all_ranks_and_after_a_restart),
		cmocka_unit_test(split_communicators_have_one_id_per_colour),
		cmocka_unit_test(a_launcher_that_maps_the_libraries_is_no_rank),
		cmocka_unit_test(waiting_for_started_calls_is_communication),
		cmocka_unit_test(a_handle_of_mpich_is_a_number),
		cmocka_unit_test(communicators_of_mpich_are_known_by_what_the_program_asks),
		cmocka_unit_test(a_size_without_a_rank_or_with_a_wrong_one_is_none),
		cmocka_unit_test(memory_that_cannot_be_read_leaves_the_environment),
		cmocka_unit_test(a_pool_of_threads_is_measured_as_one_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
