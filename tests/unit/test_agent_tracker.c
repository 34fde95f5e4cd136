/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/tracker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/agent_node.h"

enum {
	PID = 100,
	DOUBLE = 0x7000, /* where the data type lies */
	STREAM = 0x51,
};

#define WORLD                    0x7f0000001000ULL
#define ENVIRON(node, pid, text) node_describe_as(node, pid, text, sizeof(text) - 1)
#define MPI_ENVIRON(rank)                                                                          \
	"OMPI_COMM_WORLD_RANK=" rank "\0OMPI_COMM_WORLD_SIZE=2\0PMIX_NAMESPACE=77\0"

/* ---- an MPI job ----------------------------------------------------------------------------- */

static uint8_t world_bytes[4][FAKE_MPI_BYTES];

static void mpi_process(struct node *node, uint32_t pid, uint32_t rank, bool late)
{
	fake_mpi(world_bytes[rank], WORLD, "MPI_COMM_WORLD", rank, 2);
	fake_memory_add(&node->memory, pid, WORLD, world_bytes[rank], FAKE_MPI_BYTES);
	node_map(node, pid, "/usr/lib/libmpi.so.40", NT_LIBRARY_MPI, late);
}

static void mpi_init(struct node *node, uint32_t pid)
{
	struct nt_event_call call = node_call(node, pid, pid, "MPI_Init", NT_LIBRARY_MPI, MS);

	node_event(node, &call);
}

/* count doubles; the call lasts ns. */
static void mpi_reduce(struct node *node, uint32_t pid, uint64_t comm, uint64_t count, uint64_t ns)
{
	struct nt_event_call call = node_call(node, pid, pid, "MPI_Allreduce", NT_LIBRARY_MPI, ns);

	call.word[2] = count;
	call.word[3] = DOUBLE + (1ULL << 40);
	call.word[5] = comm;
	call.deref = 8;
	node_event(node, &call);
}

/* Steps of 20 ms own work and 5 ms in the reduction. */
static void mpi_steps(struct node *node, uint32_t pid, int steps)
{
	for (int i = 0; i < steps; i++) {
		node->now_ns += 20 * MS;
		mpi_reduce(node, pid, WORLD, 1000, 5 * MS);
		node->now_ns += 5 * MS;
	}
}

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
	assert_string_equal(w->key, "mpi:77");
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
	assert_int_equal(w->window.step_samples, 20);
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

/* ---- windows and time ----------------------------------------------------------------------- */

static void a_rank_that_stands_still_tells_where_it_is_every_second(void **state)
{
	struct nt_inside inside = {.entry_ns = 0};
	const struct node_window *w;
	struct node node;
	size_t before;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	before = node.windows;
	inside.entry_ns = node.now_ns + 20 * MS;
	inside.word[2] = 1000;
	inside.word[5] = WORLD;
	inside.deref = 8;
	for (int i = 0; i < 50; i++) {
		node.now_ns += 100 * MS;
		if (i % 10 == 0) {
			nt_tracker_look(node.tracker);
			nt_tracker_inside(node.tracker, PID, PID,
					  node_row("MPI_Allreduce", NT_LIBRARY_MPI), &inside,
					  node.now_ns);
		}
		nt_tracker_tick(node.tracker, node.now_ns);
	}
	assert_in_range(node.windows - before, 4, 6);
	w = node_last(&node);
	assert_int_equal(w->window.steps, 0);
	assert_true(w->window.inside.in_call);
	assert_false(w->window.inside.synchronising);
	assert_int_equal(w->window.inside.op, NT_OP_ALL_REDUCE);
	assert_int_equal(w->window.inside.number, 41);
	assert_int_equal(w->window.inside.count, 1000);
	assert_true(w->window.inside.comm == w->comm[0].id);
	assert_int_equal(w->window.inside.since_boot_ns, inside.entry_ns);
	assert_int_equal(w->comm[0].recents, NT_WIRE_MAX_RECENT);
	assert_true(w->watermark_ns + 1100 * MS >= node.now_ns);
	node_stop(&node);
}

static void a_call_that_has_ended_is_not_told_as_going_on(void **state)
{
	struct nt_inside inside = {0};
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	inside.entry_ns = node.now_ns;
	inside.word[5] = WORLD;
	nt_tracker_inside(node.tracker, PID, PID, node_row("MPI_Allreduce", NT_LIBRARY_MPI),
			  &inside, node.now_ns + MS);
	mpi_steps(&node, PID, 40);
	assert_false(node_last(&node)->window.inside.in_call);
	node_stop(&node);
}

static void a_job_with_nothing_to_say_has_a_heartbeat_for_a_minute(void **state)
{
	struct node node;
	size_t windows;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	windows = node.windows;
	assert_true(node_last(&node)->window.ended);
	assert_false(node_last(&node)->window.finalized);
	for (int i = 0; i < 30; i++)
		nt_tracker_tick(node.tracker, node.now_ns += SECOND);
	assert_in_range(node.heartbeats, 29, 30);
	assert_int_equal(node.heartbeat_ranks, 0);
	assert_int_equal(node.heartbeat_mark_ns, node.now_ns);
	for (int i = 0; i < 60; i++)
		nt_tracker_tick(node.tracker, node.now_ns += SECOND);
	assert_in_range(node.heartbeats, 59, 61);
	assert_int_equal(node.windows, windows);
	node_stop(&node);
}

static void a_rank_that_said_goodbye_is_finalized(void **state)
{
	struct nt_event_call call;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	call = node_call(&node, PID, PID, "MPI_Finalize", NT_LIBRARY_MPI, MS);
	node_event(&node, &call);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	assert_true(node_last(&node)->window.finalized);
	node_stop(&node);
}

static void the_watermark_waits_for_the_slowest_rank(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	ENVIRON(&node, PID + 1, MPI_ENVIRON("1"));
	mpi_process(&node, PID, 0, false);
	mpi_process(&node, PID + 1, 1, false);
	mpi_steps(&node, PID, 1);
	mpi_steps(&node, PID + 1, 1);
	nt_tracker_tick(node.tracker, node.now_ns += SECOND); /* both known from here on */
	mpi_steps(&node, PID, 40);
	assert_int_equal(node_last(&node)->window.rank.pid, PID);
	assert_true(node_last(&node)->watermark_ns <= node.window[0].window.end_boot_ns);
	nt_tracker_tick(node.tracker, node.now_ns);
	assert_int_equal(node_last(&node)->window.rank.pid, PID + 1);
	assert_true(node_last(&node)->watermark_ns + 500 * MS >= node.now_ns);
	node_stop(&node);
}

static void lost_events_are_told_and_change_the_epoch(void **state)
{
	struct node node;
	uint64_t epoch;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_init(&node, PID);
	mpi_steps(&node, PID, 40);
	epoch = node_last(&node)->comm[0].epoch;
	assert_int_equal(node_last(&node)->window.lost, 0);
	nt_tracker_lost(node.tracker, 0);
	mpi_steps(&node, PID, 30);
	assert_true(node_last(&node)->comm[0].epoch == epoch);
	nt_tracker_lost(node.tracker, 5);
	mpi_steps(&node, PID, 30);
	assert_int_equal(node.window[node.windows - 1].window.lost +
				 node.window[node.windows - 2].window.lost,
			 5);
	assert_true(node_last(&node)->comm[0].epoch != epoch);
	node_stop(&node);
}

static void what_the_thread_did_is_told_as_differences(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	node.has_host = true;
	node.host = (struct nt_host_sample){.on_cpu_ns = 5 * SECOND, .state = 'S'};
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 20);
	assert_int_equal(node.windows, 0);
	mpi_steps(&node, PID, 1);
	assert_int_equal(node.windows, 1);
	assert_int_equal(node_last(&node)->window.host.on_cpu_ns, 0);
	node.host.on_cpu_ns += 30 * MS;
	node.host.run_queue_ns += 3 * MS;
	node.host.read_bytes += 4096;
	node.host.read_chars += 100;
	node.host.write_chars += 8192;
	node.host.state = 'D';
	mpi_steps(&node, PID, 21);
	assert_int_equal(node.windows, 2);
	assert_int_equal(node_last(&node)->window.host.on_cpu_ns, 30 * MS);
	assert_int_equal(node_last(&node)->window.host.run_queue_ns, 3 * MS);
	assert_int_equal(node_last(&node)->window.host.read_bytes, 4096);
	assert_int_equal(node_last(&node)->window.host.write_bytes, 8192);
	assert_string_equal(node_last(&node)->state, "D");
	node_stop(&node);
}

static void short_synchronising_calls_count_as_blocked(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 30);
	node.counters.calls[NT_COUNTER_SYNC] = 1000;
	node.counters.bytes[NT_COUNTER_SYNC] = 100 * MS;
	mpi_steps(&node, PID, 20);
	assert_int_equal(node_last(&node)->window.steps, 20);
	assert_int_equal(node_last(&node)->window.blocked_ns, 100 * MS);
	assert_int_equal(node_last(&node)->window.host_ns, 300 * MS);
	assert_int_equal(node_last(&node)->window.own_ns, 400 * MS);
	node_stop(&node);
}

/* ---- NCCL ----------------------------------------------------------------------------------- */

static uint8_t *nccl_bytes(struct node *node, uint32_t pid, uint64_t handle, uint64_t hash,
			   uint32_t rank, uint32_t size)
{
	uint8_t *bytes = calloc(1, FAKE_NCCL_BYTES);

	assert_non_null(bytes);
	fake_nccl(bytes, hash, rank, size);
	fake_memory_add(&node->memory, pid, handle, bytes, FAKE_NCCL_BYTES);
	return bytes;
}

static void nccl_init(struct node *node, uint32_t pid, uint32_t tid, uint64_t handle, uint32_t rank,
		      uint32_t size, uint8_t id_byte)
{
	struct nt_event_call call =
		node_call(node, pid, tid, "ncclCommInitRank", NT_LIBRARY_NCCL, MS);
	uint8_t id[NT_ID_BYTES];

	memset(id, id_byte, sizeof(id));
	call.word[0] = 0x6000;
	call.word[1] = size;
	call.word[2] = rank;
	call.deref = handle;
	nt_tracker_event(node->tracker, &call, id);
}

static void nccl_reduce(struct node *node, uint32_t pid, uint32_t tid, uint64_t handle,
			uint64_t count, uint64_t stream)
{
	struct nt_event_call call = node_call(node, pid, tid, "ncclAllReduce", NT_LIBRARY_NCCL, 0);

	call.word[2] = count;
	call.word[3] = 7; /* float32 */
	call.word[5] = handle;
	call.word[6] = stream;
	node_event(node, &call);
}

static void stream_sync(struct node *node, uint32_t pid, uint32_t tid, uint64_t stream, uint64_t ns)
{
	struct nt_event_call call =
		node_call(node, pid, tid, "cudaStreamSynchronize", NT_LIBRARY_CUDART, ns);

	call.word[0] = stream;
	node_event(node, &call);
	node->now_ns += ns;
}

/* A data-parallel step: 2 ms host, 20 ms awaited kernels, a reduction that takes wait_ns. */
static void nccl_steps(struct node *node, uint32_t pid, uint64_t handle, bool check, int steps,
		       uint64_t wait_ns)
{
	for (int i = 0; i < steps; i++) {
		node->now_ns += 2 * MS;
		node->counters.calls[NT_COUNTER_LAUNCH] += 100;
		if (check)
			stream_sync(node, pid, pid, STREAM, 20 * MS);
		nccl_reduce(node, pid, pid, handle, 1 << 20, STREAM + 1);
		stream_sync(node, pid, pid, STREAM + 1, wait_ns);
	}
}

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
	(void)snprintf(key, sizeof(key), "id:%016llx", (unsigned long long)w->comm[0].id);
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
	assert_string_equal(w->key, "id:00000000feedface");
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
	assert_string_equal(node_last(&node)->key, "torch:h:1");
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

/* ---- Gloo ----------------------------------------------------------------------------------- */

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

/* ---- hostile and large ---------------------------------------------------------------------- */

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
			nt_tracker_discovered(node.tracker);
			nt_tracker_tick(node.tracker, node.now_ns);
		}
		if (i % 20000 == 0)
			nt_tracker_lost(node.tracker, seed % 3);
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
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nt_tracker_discovered(node.tracker);
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
	assert_string_equal(node_last(&node)->key, "mpi:77");
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
		cmocka_unit_test(an_mpi_job_is_measured_from_end_to_end),
		cmocka_unit_test(calls_and_bytes_of_all_windows_are_those_that_were_made),
		cmocka_unit_test(the_world_has_one_id_on_all_ranks_and_after_a_restart),
		cmocka_unit_test(split_communicators_have_one_id_per_colour),
		cmocka_unit_test(a_launcher_that_maps_the_libraries_is_no_rank),
		cmocka_unit_test(waiting_for_started_calls_is_communication),
		cmocka_unit_test(a_handle_of_mpich_is_a_number),
		cmocka_unit_test(memory_that_cannot_be_read_leaves_the_environment),
		cmocka_unit_test(a_rank_that_stands_still_tells_where_it_is_every_second),
		cmocka_unit_test(a_call_that_has_ended_is_not_told_as_going_on),
		cmocka_unit_test(a_job_with_nothing_to_say_has_a_heartbeat_for_a_minute),
		cmocka_unit_test(a_rank_that_said_goodbye_is_finalized),
		cmocka_unit_test(the_watermark_waits_for_the_slowest_rank),
		cmocka_unit_test(lost_events_are_told_and_change_the_epoch),
		cmocka_unit_test(what_the_thread_did_is_told_as_differences),
		cmocka_unit_test(short_synchronising_calls_count_as_blocked),
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
		cmocka_unit_test(a_pool_of_threads_is_measured_as_one_rank),
		cmocka_unit_test(events_that_make_no_sense_are_counted_and_left_out),
		cmocka_unit_test(random_events_do_no_harm),
		cmocka_unit_test(communicators_over_the_cap_are_counted),
		cmocka_unit_test(ranks_over_the_cap_are_counted),
		cmocka_unit_test(processes_over_the_cap_are_counted),
		cmocka_unit_test(threads_over_the_cap_are_counted_and_their_calls_are_not_lost),
		cmocka_unit_test(pending_communicators_over_the_cap_are_counted),
		cmocka_unit_test(events_before_discovery_are_kept_and_those_of_strangers_are_not),
		cmocka_unit_test(a_pid_that_comes_again_is_another_process),
		cmocka_unit_test(a_rank_is_described_by_the_program_that_makes_the_calls),
		cmocka_unit_test(bytes_that_would_overflow_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
