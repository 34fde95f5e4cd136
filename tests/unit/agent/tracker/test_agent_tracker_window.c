/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When windows, heartbeats and watermarks come, and what a window tells of its thread. */
#include "agent/tracker/tracker_impl.h"
#include "tests/unit/agent/agent_job.h"

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
	w = node_last(&node);
	assert_int_not_equal(w->window.steps, 0);
	for (size_t i = 0; i < w->comm[0].recents; i++)
		assert_int_equal(w->comm[0].recent[i].entry_boot_ns, 0);
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
	/* Times of calls that everybody makes are bytes for nothing; the last one before a stand is not. */
	w = node_last(&node);
	assert_int_equal(w->window.steps, 0);
	assert_int_equal(w->comm[0].recent[NT_WIRE_MAX_RECENT - 2].entry_boot_ns, 0);
	assert_int_not_equal(w->comm[0].recent[NT_WIRE_MAX_RECENT - 1].entry_boot_ns, 0);
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

/* ---- calls that are not all seen ------------------------------------------------------------ */

static void look(struct node *node, uint64_t entry_ns)
{
	struct nt_inside inside = {.entry_ns = entry_ns};

	inside.word[2] = 1000;
	inside.word[5] = WORLD;
	inside.deref = 8;
	nt_tracker_look(node->tracker);
	nt_tracker_inside(node->tracker, PID, PID, node_row("MPI_Allreduce", NT_LIBRARY_MPI),
			  &inside, node->now_ns);
}

/* The window that comes for nothing has happened. */
static const struct nt_window *stand_still(struct node *node, uint64_t entry_ns)
{
	const size_t before = node->windows;

	while (node->windows == before) {
		if (entry_ns)
			look(node, entry_ns);
		nt_tracker_tick(node->tracker, node->now_ns += SECOND);
	}
	return &node_last(node)->window;
}

static void where_a_rank_is_that_is_seen_in_slices_is_not_known_between_them(void **state)
{
	const struct nt_window *w;
	uint64_t entry_ns;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	assert_false(stand_still(&node, 0)->whereabouts_unknown);
	/* It entered before, and its return is not seen. */
	entry_ns = node.now_ns;
	nt_tracker_paused(node.tracker, PID, node.now_ns += MS);
	w = stand_still(&node, entry_ns);
	assert_true(w->whereabouts_unknown);
	assert_false(w->inside.in_call);
	nt_tracker_resumed(node.tracker, PID, node.now_ns);
	w = stand_still(&node, entry_ns);
	assert_true(w->whereabouts_unknown);
	assert_false(w->inside.in_call);
	/* What it enters from now on is seen. */
	w = stand_still(&node, node.now_ns);
	assert_false(w->whereabouts_unknown);
	assert_true(w->inside.in_call);
	mpi_steps(&node, PID, 40);
	w = stand_still(&node, 0);
	assert_false(w->whereabouts_unknown);
	assert_false(w->inside.in_call);
	node_stop(&node);
}

static void where_a_rank_is_whose_calls_are_hot_is_not_known(void **state)
{
	const uint32_t shed = NT_WIRE_SHED_FUNCTIONS | NT_WIRE_SHED_COMMUNICATION;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_FUNCTIONS);
	assert_false(stand_still(&node, 0)->whereabouts_unknown);
	nt_tracker_shed(node.tracker, PID, shed);
	assert_true(stand_still(&node, 0)->whereabouts_unknown);
	assert_true(stand_still(&node, node.now_ns)->whereabouts_unknown);
	assert_false(node_last(&node)->window.inside.in_call);
	/* It may still be inside one that was not seen. */
	nt_tracker_shed(node.tracker, PID, 0);
	assert_true(stand_still(&node, 0)->whereabouts_unknown);
	mpi_steps(&node, PID, 40);
	assert_false(stand_still(&node, 0)->whereabouts_unknown);
	node_stop(&node);
}

static void where_a_rank_is_that_is_given_up_is_not_known(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	assert_false(node_last(&node)->window.whereabouts_unknown);
	look(&node, node.now_ns);
	nt_tracker_give_up(node.tracker, nt_tracker_process(node.tracker, PID));
	assert_true(node_last(&node)->window.whereabouts_unknown);
	assert_false(node_last(&node)->window.inside.in_call);
	assert_false(node_last(&node)->window.ended);
	node_stop(&node);
}

/* Time in them would be work. */
static void work_beside_calls_that_are_not_seen_is_not_observable(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	assert_int_equal(node_last(&node)->window.own_tier, NT_TIER_T2);
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_FUNCTIONS);
	mpi_steps(&node, PID, 60);
	assert_int_equal(node_last(&node)->window.own_tier, NT_TIER_T2);
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_FUNCTIONS | NT_WIRE_SHED_COMMUNICATION);
	mpi_steps(&node, PID, 60);
	assert_int_not_equal(node_last(&node)->window.steps, 0);
	assert_int_equal(node_last(&node)->window.own_tier, NT_TIER_T0);
	assert_int_equal(node_last(&node)->window.own_ns, 0);
	node_stop(&node);
}

/* A slice of ten steps and as long again, in which no step ends. Returns own work of its window. */
static uint64_t own_of_slice(uint64_t outside_ns)
{
	const struct nt_window *w;
	struct node node;
	uint64_t own_ns;

	node_start_with(&node, outside_ns);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	for (int i = 0; i < 4; i++) {
		nt_tracker_paused(node.tracker, PID, node.now_ns);
		nt_tracker_resumed(node.tracker, PID, node.now_ns += SECOND);
		mpi_steps(&node, PID, 11);
		node.now_ns += 225 * MS;
	}
	nt_tracker_paused(node.tracker, PID, node.now_ns);
	w = &node_last(&node)->window;
	assert_int_equal(w->unobserved_ns, SECOND);
	assert_int_equal(w->steps, 10);
	own_ns = w->own_ns;
	node_stop(&node);
	return own_ns;
}

static void what_probes_cost_in_cut_steps_is_not_taken_off_whole_ones(void **state)
{
	(void)state;
	assert_int_equal(own_of_slice(0), 200 * MS);
	/* Of eleven calls, 10 of 20 steps' time. */
	assert_int_equal(own_of_slice(2 * MS), 189 * MS);
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
	const struct nt_window *last;
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
	mpi_steps(&node, PID, 30);
	assert_true(node_last(&node)->comm[0].epoch == epoch);
	nt_tracker_lost_of(node.tracker, PID, 5);
	mpi_steps(&node, PID, 30);
	assert_int_equal(node.window[node.windows - 1].window.lost +
				 node.window[node.windows - 2].window.lost,
			 5);
	assert_true(node_last(&node)->comm[0].epoch != epoch);
	/* And with them how many came, of which the calls are a part. */
	last = &node.window[node.windows - (node_last(&node)->window.lost ? 1 : 2)].window;
	assert_in_range(last->taken, node_last(&node)->comm[0].op[0].calls, 60);
	mpi_steps(&node, PID, 60);
	assert_int_equal(node_last(&node)->window.lost, 0);
	assert_int_equal(node_last(&node)->window.taken, 0);
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
	node.host.io_wait_ns += 20 * MS;
	node.host.read_bytes += 4096;
	node.host.read_chars += 100;
	node.host.write_chars += 8192;
	node.host.state = 'D';
	mpi_steps(&node, PID, 21);
	assert_int_equal(node.windows, 2);
	assert_int_equal(node_last(&node)->window.host.on_cpu_ns, 30 * MS);
	assert_int_equal(node_last(&node)->window.host.run_queue_ns, 3 * MS);
	assert_int_equal(node_last(&node)->window.host.off_cpu_io_ns, 20 * MS);
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

static void collections_of_garbage_are_told_with_their_time(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	node.counters.calls[NT_COUNTER_GC] = 5;
	node.counters.bytes[NT_COUNTER_GC] = 70 * MS;
	mpi_steps(&node, PID, 30);
	node.counters.calls[NT_COUNTER_GC] = 8;
	node.counters.bytes[NT_COUNTER_GC] = 100 * MS;
	mpi_steps(&node, PID, 20);
	assert_int_equal(node_last(&node)->window.host.gc_ns, 30 * MS);
	assert_int_equal(node_last(&node)->window.host.gc_count, 3);
	node_stop(&node);
}

static void a_process_that_becomes_a_rank_is_told_once(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	assert_int_equal(node.ranked, 0); /* it only maps a library */
	mpi_steps(&node, PID, 50);
	assert_int_equal(node.ranked, 1);
	assert_int_equal(node.ranked_pid, PID);
	node_stop(&node);
}

static void names_that_are_learned_late_are_in_the_next_window(void **state)
{
	const struct nt_placement placement = {
		.namespace = "ml",
		.pod = "train-3",
		.pod_uid = "12345678-90ab-cdef-1234-567890abcdef",
		.container = "main",
		.workload = {.kind = "Job", .job = "train", .replica = "3"},
		.gpu = "GPU-5f",
	};
	const struct nt_rank_id *id;
	struct node node;
	char key[128];

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	id = &node_last(&node)->window.rank;
	assert_string_equal(id->pod, "");
	assert_memory_equal(node_last(&node)->job, "prog-", 5);
	(void)snprintf(key, sizeof(key), "%s", node_last(&node)->key);
	node.placement = &placement;
	mpi_steps(&node, PID, 40);
	id = &node_last(&node)->window.rank;
	assert_string_equal(id->namespace, "ml");
	assert_string_equal(id->pod, "train-3");
	assert_string_equal(id->pod_uid, placement.pod_uid);
	assert_string_equal(id->container, "main");
	assert_string_equal(id->replica, "3");
	assert_string_equal(id->gpu, "GPU-5f");
	assert_string_equal(node_last(&node)->job, "train");
	assert_string_equal(node_last(&node)->key, key); /* labels name, they never key */
	node_stop(&node);
}

enum {
	PEER = 1, /* the other rank of the two */
};

/* A blocking call to or from a rank; word 8 is the source of a send-receive. */
static void mpi_pass(struct node *node, const char *symbol, uint64_t count, uint64_t peer,
		     uint64_t source, uint64_t ns)
{
	struct nt_event_call call = node_call(node, PID, PID, symbol, NT_LIBRARY_MPI, ns);
	const struct nt_probe *probe = nt_probe_row(call.h.row);

	call.word[1] = count;
	call.word[2] = DOUBLE + (1ULL << 40);
	call.word[3] = peer;
	call.word[8] = source;
	call.word[probe->comm] = WORLD;
	call.deref = 8;
	node_event(node, &call);
	node->now_ns += 10 * MS;
}

static const struct nt_transfer *find_transfer(const struct node_window *w, enum nt_op op)
{
	for (size_t i = 0; i < w->window.transfers; i++)
		if (w->window.transfer[i].op == op)
			return &w->window.transfer[i];
	return NULL;
}

static void a_window_tells_how_long_sends_and_receives_took_by_peer(void **state)
{
	/* Above an int lies whatever was there. */
	const uint64_t peer = PEER | 7ULL << 32;
	const struct nt_transfer *transfer;
	const struct node_window *w;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	for (int i = 0; i < 100; i++) {
		mpi_pass(&node, "MPI_Send", 100000, peer, 0, (i % 3 + 2) * MS);
		mpi_pass(&node, "MPI_Send", 10, peer, 0, MS / 100); /* small: goes at once */
		mpi_pass(&node, "MPI_Recv", 200000, peer, 0, (i % 3 + 4) * MS);
		mpi_pass(&node, "MPI_Recv", 200000, 0xffffffff, 0, MS); /* from anybody */
		mpi_steps(&node, PID, 1);
	}
	w = node_last(&node);
	assert_int_equal(w->window.transfers, 2);
	transfer = find_transfer(w, NT_OP_SEND);
	assert_non_null(transfer);
	assert_true(transfer->comm == w->comm[0].id);
	assert_int_equal(transfer->peer, PEER);
	assert_int_equal(transfer->bytes, 800000);
	assert_int_equal(transfer->min_ns, 2 * MS);
	assert_in_range(transfer->calls, w->window.steps - 1, w->window.steps + 1);
	transfer = find_transfer(w, NT_OP_RECV);
	assert_non_null(transfer);
	assert_int_equal(transfer->bytes, 1600000);
	assert_int_equal(transfer->min_ns, 4 * MS);
	node_stop(&node);
}

static void a_send_receive_is_both(void **state)
{
	const struct nt_transfer *sent, *received;
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	for (int i = 0; i < 100; i++) {
		mpi_pass(&node, "MPI_Sendrecv", 100000, PEER, PEER, 3 * MS);
		mpi_steps(&node, PID, 1);
	}
	sent = find_transfer(node_last(&node), NT_OP_SEND);
	received = find_transfer(node_last(&node), NT_OP_RECV);
	assert_non_null(sent);
	assert_non_null(received);
	assert_int_equal(sent->min_ns, 3 * MS);
	assert_int_equal(received->min_ns, 3 * MS);
	node_stop(&node);
}

/* It tells how long the peer was awaited by MPI_Wait, not by this. */
static void a_send_that_only_starts_is_not_timed(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	for (int i = 0; i < 100; i++) {
		mpi_pass(&node, "MPI_Isend", 100000, PEER, 0, 0);
		mpi_steps(&node, PID, 1);
	}
	assert_int_equal(node_last(&node)->window.transfers, 0);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_tells_how_long_sends_and_receives_took_by_peer),
		cmocka_unit_test(a_send_receive_is_both),
		cmocka_unit_test(a_send_that_only_starts_is_not_timed),
		cmocka_unit_test(a_rank_that_stands_still_tells_where_it_is_every_second),
		cmocka_unit_test(a_call_that_has_ended_is_not_told_as_going_on),
		cmocka_unit_test(where_a_rank_is_that_is_seen_in_slices_is_not_known_between_them),
		cmocka_unit_test(where_a_rank_is_whose_calls_are_hot_is_not_known),
		cmocka_unit_test(where_a_rank_is_that_is_given_up_is_not_known),
		cmocka_unit_test(work_beside_calls_that_are_not_seen_is_not_observable),
		cmocka_unit_test(what_probes_cost_in_cut_steps_is_not_taken_off_whole_ones),
		cmocka_unit_test(a_job_with_nothing_to_say_has_a_heartbeat_for_a_minute),
		cmocka_unit_test(a_rank_that_said_goodbye_is_finalized),
		cmocka_unit_test(the_watermark_waits_for_the_slowest_rank),
		cmocka_unit_test(lost_events_are_told_and_change_the_epoch),
		cmocka_unit_test(what_the_thread_did_is_told_as_differences),
		cmocka_unit_test(short_synchronising_calls_count_as_blocked),
		cmocka_unit_test(collections_of_garbage_are_told_with_their_time),
		cmocka_unit_test(a_process_that_becomes_a_rank_is_told_once),
		cmocka_unit_test(names_that_are_learned_late_are_in_the_next_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
