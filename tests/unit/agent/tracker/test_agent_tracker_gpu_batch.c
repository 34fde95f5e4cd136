/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batches of records that a library inside the process hands over. */
#include "tests/unit/agent/device_job.h"

/* The same steps, in records. They come for seconds out of many. */
static void run_records(struct device *device, int steps)
{
	struct node *node = &device->node;
	static struct nt_event_gpu batch;

	for (int i = 0; i < steps; i++) {
		const uint64_t start_ns = node->now_ns + MS;

		node->counters.calls[NT_COUNTER_LAUNCH]++;
		node->now_ns += 2 * MS;
		nccl_reduce(node, PID, PID, 0x5000, 1 << 20, STREAM + 1);
		node->now_ns += (STEP_MS - 2) * MS;
		nt_tracker_tick(node->tracker, node->now_ns);
		if (device->silent)
			continue;
		batch.h.pid = PID;
		batch.h.row = device->row;
		batch.h.entry_ns = node->now_ns;
		batch.number = 2 * device->kernels++ + 2;
		batch.records = 2;
		batch.record[0] = (struct nt_gpu_record){.start_ns = start_ns - MS / 2,
							 .end_ns = start_ns,
							 .correlation = (uint32_t)device->kernels,
							 .kind = NT_GPU_RECORD_LAUNCH};
		batch.record[1] = (struct nt_gpu_record){.start_ns = start_ns,
							 .end_ns = start_ns + device->work_ms * MS,
							 .correlation = (uint32_t)device->kernels,
							 .stream = 7,
							 .kind = NT_GPU_RECORD_KERNEL};
		if (device->row) {
			batch.record[1].kind = NT_GPU_RECORD_COMMUNICATION;
			batch.record[1].start_ns = batch.record[1].end_ns;
			batch.record[1].end_ns = node->now_ns;
		}
		nt_tracker_gpu_batch(node->tracker, &batch);
	}
}

static void open_records(struct device *device)
{
	struct nt_event_gpu batch = {
		.h = {.pid = PID, .row = device->row, .entry_ns = device->node.now_ns},
		.number = 1,
		.records = 1};

	device->kernels = 0;
	batch.record[0] = (struct nt_gpu_record){.start_ns = device->node.now_ns,
						 .end_ns = device->node.now_ns,
						 .kind = NT_GPU_RECORD_OPEN};
	nt_tracker_gpu_batch(device->node.tracker, &batch);
}

static void own_work_is_known_while_it_is_measured(void **state)
{
	const struct nt_window *window;
	struct device device;
	size_t windows;

	(void)state;
	start(&device);
	device.silent = true;
	run_records(&device, 60);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T1);
	for (int i = 0; i < 3; i++) {
		device.silent = false;
		open_records(&device);
		run_records(&device, 30);
		window = &last_with_steps(&device.node)->window;
		assert_int_equal(window->own_tier, NT_TIER_T3);
		assert_int_equal(window->own_source, NT_OWN_SOURCE_CUPTI);
		assert_int_equal(window->own_ns, window->steps * WORK_MS * MS);
		nt_tracker_gpu_closed_all(device.node.tracker);
		windows = device.node.windows;
		device.silent = true;
		run_records(&device, 60);
		/* No window waits for what does not come. */
		assert_true(device.node.windows >= windows + 9);
		assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T1);
	}
	assert_int_equal(stats_of(&device).gpu_records.records, 3 * (1 + 2 * 30));
	assert_int_equal(stats_of(&device).gpu_records.lost, 0);
	assert_int_equal(stats_of(&device).gpu.steps_unknown, 0);
	node_stop(&device.node);
}

/* Another client of CUPTI ends everybody's tracing, and says nothing. */
static void a_process_that_launches_and_reports_nothing_is_counted_once(void **state)
{
	struct device device;

	(void)state;
	start(&device);
	device.silent = true;
	for (int i = 0; i < 3; i++) {
		open_records(&device);
		run_records(&device, 30);
		nt_tracker_gpu_closed_all(device.node.tracker);
	}
	assert_int_equal(stats_of(&device).gpu_silent, 1);
	device.silent = false;
	open_records(&device);
	run_records(&device, 30);
	nt_tracker_gpu_closed_all(device.node.tracker);
	assert_int_equal(stats_of(&device).gpu_silent, 1);
	node_stop(&device.node);
}

static uint16_t row_of(int library)
{
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *probe = nt_probe_row(row);

		if (probe->batched && (int)probe->library == library)
			return row;
	}
	fail();
	return 0;
}

/* The rest of the step, of which the host had enqueued the end. */
static void own_work_is_what_communication_leaves(void **state)
{
	const struct nt_window *window;
	struct device device;

	(void)state;
	start(&device);
	device.row = row_of(NT_LIBRARY_NCCL_PROFILER);
	device.silent = true;
	run_records(&device, 30);
	device.silent = false;
	open_records(&device);
	run_records(&device, 60);
	window = &last_with_steps(&device.node)->window;
	assert_int_equal(window->own_tier, NT_TIER_T2);
	assert_int_equal(window->own_source, NT_OWN_SOURCE_NCCL);
	/* A millisecond of each step is between the end of the last kernel and its begin. */
	assert_int_equal(window->own_ns, window->steps * (WORK_MS + 1) * MS);
	assert_true(window->own_blocked_ns > 0);
	assert_true(window->own_blocked_ns <= window->own_ns);
	assert_int_equal(window->step_ns, window->steps * STEP_MS * MS);
	nt_tracker_gpu_closed_all(device.node.tracker);
	device.silent = true;
	run_records(&device, 60);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T1);
	/* A program that launches kernels and does not communicate is none whose tracing ended. */
	open_records(&device);
	run_records(&device, 60);
	nt_tracker_gpu_closed_all(device.node.tracker);
	assert_int_equal(stats_of(&device).gpu_silent, 0);
	node_stop(&device.node);
}

static void send(struct device *device, struct nt_gpu_transfer transfer)
{
	struct nt_event_gpu batch = {.h = {.pid = PID,
					   .row = row_of(NT_LIBRARY_NCCL_SENDS),
					   .entry_ns = device->node.now_ns},
				     .number = 1,
				     .records = 2};

	memcpy(&batch.record[0], &transfer, sizeof(transfer));
	batch.record[1] = batch.record[0];
	nt_tracker_gpu_batch(device->node.tracker, &batch);
}

static const struct node_window *first_with_transfers(const struct node *node)
{
	size_t first = 0;

	while (first + 1 < node->windows && !node->window[first].window.transfers)
		first++;
	return &node->window[first];
}

static void what_proxies_sent_is_a_transfer_that_waits_for_nobody(void **state)
{
	struct nt_gpu_transfer transfer = {.peer = 1, .bytes = 1 << 19, .shortest_ns = 100000};
	const struct node_window *window;
	struct device device;
	uint64_t id;

	(void)state;
	/* Beside CUPTI's library, too. */
	start(&device);
	open_records(&device);
	run_records(&device, 30);
	id = transfer.comm = last_with_steps(&device.node)->comm[0].id;
	/* Four under way at a time. */
	transfer.sends = 40;
	transfer.busy_ns = 10 * transfer.shortest_ns;
	send(&device, transfer);
	/* Of no communicator, of another rank, to itself, to none, to more than are measured. */
	transfer.comm++;
	send(&device, transfer);
	transfer.comm = id;
	transfer.rank = 1;
	send(&device, transfer);
	transfer.rank = 0;
	transfer.peer = 0;
	send(&device, transfer);
	transfer.peer = 2;
	send(&device, transfer);
	transfer.peer = NT_GPU_NO_PEER;
	send(&device, transfer);
	assert_int_equal(stats_of(&device).gpu_transfers, 2 + 4);
	assert_int_equal(stats_of(&device).gpu_transfers_unowned, 4);
	assert_int_equal(stats_of(&device).gpu_transfers_over_cap, 80);
	assert_int_equal(stats_of(&device).gpu_records.malformed, 0);
	assert_int_equal(stats_of(&device).gpu_records.lost, 0);
	run_records(&device, 30);
	window = first_with_transfers(&device.node);
	assert_int_equal(window->window.transfers, 1);
	assert_true(window->window.transfer[0].comm == id);
	assert_int_equal(window->window.transfer[0].op, NT_OP_PUT);
	assert_int_equal(window->window.transfer[0].peer, 1);
	assert_int_equal(window->window.transfer[0].calls, 20);
	assert_int_equal(window->window.transfer[0].bytes, 1 << 19);
	assert_int_equal(window->window.transfer[0].min_ns, 100000);
	assert_int_equal(last_with_steps(&device.node)->window.transfers, 0);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T3);
	node_stop(&device.node);
}

static void peers_that_a_window_has_no_room_for_are_counted(void **state)
{
	struct nt_gpu_transfer transfer = {.bytes = 1 << 19, .shortest_ns = 100000, .sends = 1};
	struct device device;

	(void)state;
	start(&device);
	for (int i = 1; i <= 3; i++)
		nccl_init(&device.node, PID, PID, 0x5000 + 0x100 * (uint64_t)i, 0, 40, 0x11 + i);
	device.row = row_of(NT_LIBRARY_NCCL_PROFILER);
	open_records(&device);
	for (int i = 0; i < 30; i++) {
		for (uint64_t j = 1; j <= 3; j++)
			nccl_reduce(&device.node, PID, PID, 0x5000 + 0x100 * j, 1 << 20,
				    STREAM + 1);
		run_records(&device, 1);
	}
	for (size_t i = 0; i < 4; i++) {
		const struct nt_comm_window *comm = &last_with_steps(&device.node)->comm[i];

		transfer.comm = comm->id;
		for (transfer.peer = 1; comm->size == 40 && transfer.peer <= 30; transfer.peer++)
			send(&device, transfer);
	}
	assert_int_equal(stats_of(&device).gpu_transfers, 3 * 30 * 2);
	assert_int_equal(stats_of(&device).peers_over_cap, 0);
	run_records(&device, 30);
	assert_int_equal(first_with_transfers(&device.node)->window.transfers, 64);
	assert_int_equal(stats_of(&device).peers_over_cap, 3 * 30 - 64);
	node_stop(&device.node);
}

/* The second is attached when the first has given up, and is not disturbed by it. */
static void of_two_libraries_one_is_used(void **state)
{
	struct nt_event_gpu batch = {.h = {.pid = PID}, .number = 1, .records = 1};
	const uint16_t nccl = row_of(NT_LIBRARY_NCCL_PROFILER);
	struct device device;

	(void)state;
	start(&device);
	device.silent = true;
	run_records(&device, 30);
	device.silent = false;
	/* While the first measures, the second is not looked at. */
	open_records(&device);
	run_records(&device, 30);
	batch.h.row = nccl;
	batch.h.entry_ns = device.node.now_ns;
	batch.record[0] = (struct nt_gpu_record){.start_ns = device.node.now_ns,
						 .end_ns = device.node.now_ns,
						 .kind = NT_GPU_RECORD_OPEN};
	assert_int_equal(nt_tracker_gpu_batch(device.node.tracker, &batch), NT_GPU_BATCH_TAKEN);
	run_records(&device, 30);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T3);
	nt_tracker_gpu_closed_all(device.node.tracker);
	/* The first gives up. */
	batch.h.row = row_of(NT_LIBRARY_GPU);
	batch.h.entry_ns = device.node.now_ns;
	batch.record[0].kind = NT_GPU_RECORD_GIVEN_UP;
	assert_int_equal(nt_tracker_gpu_batch(device.node.tracker, &batch), NT_GPU_BATCH_GIVEN_UP);
	device.row = nccl;
	open_records(&device);
	run_records(&device, 30);
	assert_int_equal(nt_tracker_gpu_batch(device.node.tracker, &batch), NT_GPU_BATCH_TAKEN);
	run_records(&device, 30);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T2);
	node_stop(&device.node);
}

static void a_process_that_cannot_be_measured_is_counted_once(void **state)
{
	struct nt_event_gpu batch = {.h = {.pid = PID}, .number = 1, .records = 1};
	struct device device;

	(void)state;
	start(&device);
	device.silent = true;
	run_records(&device, 5);
	for (int i = 0; i < 3; i++) {
		batch.h.entry_ns = device.node.now_ns;
		batch.record[0] = (struct nt_gpu_record){.start_ns = device.node.now_ns,
							 .end_ns = device.node.now_ns,
							 .stream = 39,
							 .kind = NT_GPU_RECORD_GIVEN_UP};
		nt_tracker_gpu_batch(device.node.tracker, &batch);
		run_records(&device, 30);
		nt_tracker_gpu_closed_all(device.node.tracker);
	}
	assert_int_equal(stats_of(&device).gpu_refused, 1);
	assert_int_equal(stats_of(&device).gpu_silent, 0);
	/* Two libraries repeat in turn that they cannot measure. */
	for (int i = 0; i < 6; i++) {
		batch.h.row = row_of(i % 2 ? NT_LIBRARY_NCCL_PROFILER : NT_LIBRARY_GPU);
		batch.h.entry_ns = device.node.now_ns;
		nt_tracker_gpu_batch(device.node.tracker, &batch);
	}
	assert_int_equal(stats_of(&device).gpu_refused, 2);
	node_stop(&device.node);
}

static void a_flood_of_batches_is_dropped_and_counted(void **state)
{
	struct nt_event_gpu batch = {.h = {.pid = PID}, .number = 1, .records = 1};
	struct device device;

	(void)state;
	start(&device);
	device.silent = true;
	run_records(&device, 5);
	for (int i = 0; i < 3; i++) {
		batch.h.entry_ns = (1000 + (uint64_t)i) * NT_SECOND;
		for (int j = 0; j < 5000; j++) {
			batch.number++;
			assert_int_equal(nt_tracker_gpu_batch(device.node.tracker, &batch),
					 i < 2 || j < 1000 ? NT_GPU_BATCH_TAKEN
							   : NT_GPU_BATCH_FLOOD);
		}
	}
	assert_int_equal(stats_of(&device).gpu_over_rate, 3 * (5000 - 1000));
	assert_int_equal(stats_of(&device).gpu_records.records, 3 * 1000);
	assert_int_equal(stats_of(&device).gpu_records.lost, 2 * (5000 - 1000));
	node_stop(&device.node);
}

/* Its kernels cannot be attributed, and its windows do not wait for them. */
static void a_second_rank_of_the_process_ends_the_wait_for_the_device(void **state)
{
	struct device device;
	size_t windows;

	(void)state;
	start(&device);
	open_records(&device);
	run_records(&device, 30);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T3);
	nccl_init(&device.node, PID, PID + 1, 0x6000, 1, 2, 0x11);
	nccl_reduce(&device.node, PID, PID + 1, 0x6000, 1 << 20, STREAM);
	run_records(&device, 1);
	assert_int_equal(stats_of(&device).ranks, 2);
	windows = device.node.windows;
	run_records(&device, 10);
	assert_true(device.node.windows > windows);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T1);
	node_stop(&device.node);
}

static void records_of_a_process_that_is_no_rank_are_counted(void **state)
{
	struct nt_event_gpu batch = {
		.h = {.pid = PID + 9, .entry_ns = MS}, .number = 1, .records = 5};
	struct device device;

	(void)state;
	start(&device);
	nt_tracker_gpu_batch(device.node.tracker, &batch);
	assert_int_equal(stats_of(&device).gpu_unowned, 5);
	node_stop(&device.node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_work_is_known_while_it_is_measured),
		cmocka_unit_test(a_process_that_launches_and_reports_nothing_is_counted_once),
		cmocka_unit_test(own_work_is_what_communication_leaves),
		cmocka_unit_test(what_proxies_sent_is_a_transfer_that_waits_for_nobody),
		cmocka_unit_test(peers_that_a_window_has_no_room_for_are_counted),
		cmocka_unit_test(of_two_libraries_one_is_used),
		cmocka_unit_test(a_process_that_cannot_be_measured_is_counted_once),
		cmocka_unit_test(a_flood_of_batches_is_dropped_and_counted),
		cmocka_unit_test(a_second_rank_of_the_process_ends_the_wait_for_the_device),
		cmocka_unit_test(records_of_a_process_that_is_no_rank_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
