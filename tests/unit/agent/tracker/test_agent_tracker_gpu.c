/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks of NCCL jobs whose devices tell of themselves. */
#include "tests/unit/agent/device_job.h"

static struct nt_gpu_interval interval_of(const struct device *device, uint64_t entry_ns,
					  uint64_t start_ns, uint64_t end_ns)
{
	return (struct nt_gpu_interval){
		.pid = PID,
		.kernels = 100,
		.number = device->kernels,
		.entry_ns = entry_ns,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.stream = STREAM,
	};
}

static void report_call(struct device *device, uint64_t nth, uint64_t start_ns, uint64_t end_ns)
{
	struct nt_gpu_interval interval = interval_of(device, start_ns, start_ns, end_ns);
	uint8_t id[NT_ID_BYTES];

	memset(id, 0x11, sizeof(id));
	interval.number = ++device->calls;
	interval.stream = STREAM + 1;
	interval.communicates = true;
	interval.comm = nt_comm_layout_nccl_hash(id, sizeof(id));
	interval.op = NT_OP_ALL_REDUCE;
	interval.nth = nth;
	nt_tracker_gpu(device->node.tracker, &interval);
}

/* Hosts enqueue and go on; the device works for work_ms of each step, and then reduces for 7 ms. */
static void run_steps(struct device *device, int steps)
{
	struct node *node = &device->node;

	for (int i = 0; i < steps; i++) {
		uint64_t start_ns = node->now_ns + MS, end_ns = start_ns + device->work_ms * MS;
		struct nt_gpu_interval interval;

		node->counters.calls[NT_COUNTER_LAUNCH] += 100;
		node->now_ns += 2 * MS;
		nccl_reduce(node, PID, PID, 0x5000, 1 << 20, STREAM + 1);
		node->now_ns += (STEP_MS - 2) * MS;
		nt_tracker_tick(node->tracker, node->now_ns);
		if (device->silent)
			continue;
		device->kernels++;
		interval = interval_of(device, start_ns - MS / 2, start_ns, end_ns);
		nt_tracker_gpu(node->tracker, &interval);
		report_call(device, device->calls + 1, end_ns, end_ns + 7 * MS);
	}
}

static void a_rank_that_only_enqueues_has_own_work_by_its_device(void **state)
{
	const struct nt_window *window;
	struct device device;

	(void)state;
	start(&device);
	run_steps(&device, 60);
	window = &last_with_steps(&device.node)->window;
	assert_int_equal(window->own_tier, NT_TIER_T3);
	assert_int_equal(window->own_ns, window->steps * WORK_MS * MS);
	assert_int_equal(window->own_blocked_ns, 0);
	assert_int_equal(window->gpu_lag_ns, window->steps * MS / 2);
	assert_true(window->steps >= 5);
	device.work_ms = 80;
	run_steps(&device, 30);
	window = &last_with_steps(&device.node)->window;
	assert_int_equal(window->own_tier, NT_TIER_T3);
	assert_int_equal(window->own_ns, window->steps * 80 * MS);
	node_stop(&device.node);
}

static void windows_end_with_a_step_although_the_device_is_behind(void **state)
{
	struct device device;

	(void)state;
	start(&device);
	run_steps(&device, 100);
	for (size_t i = device.node.windows / 2; i < device.node.windows; i++) {
		const struct nt_window *window = &device.node.window[i].window;

		assert_int_equal(window->steps * STEP_MS * MS,
				 window->end_boot_ns - window->start_boot_ns);
		/* No more is promised than was handed out. */
		assert_true(device.node.window[i].watermark_ns <= window->end_boot_ns);
	}
	node_stop(&device.node);
}

static void a_device_that_falls_silent_leaves_the_tier_of_the_calls(void **state)
{
	struct device device;

	(void)state;
	start(&device);
	run_steps(&device, 60);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T3);
	device.silent = true;
	run_steps(&device, 60);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T1);
	assert_int_equal(last_with_steps(&device.node)->window.own_ns, 0);
	assert_int_equal(last_with_steps(&device.node)->window.gpu_lag_ns, 0);
	assert_true(stats_of(&device).gpu.steps_unknown > 0);
	device.silent = false;
	run_steps(&device, 60);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T3);
	node_stop(&device.node);
}

static void lost_intervals_are_counted_and_told_and_never_thin_the_work_out(void **state)
{
	struct device device;
	uint64_t lost = 0;
	int fallen = 0;

	(void)state;
	start(&device);
	run_steps(&device, 60);
	for (int i = 0; i < 20; i++) {
		device.kernels += 3;
		run_steps(&device, 4);
	}
	assert_int_equal(stats_of(&device).gpu_lost, 60);
	for (size_t i = 0; i < device.node.windows; i++) {
		const struct nt_window *window = &device.node.window[i].window;

		lost += window->lost;
		/* How many came is told where some did not. */
		assert_int_equal(window->taken > 0, window->lost > 0);
		if (window->lost)
			assert_in_range(window->taken, window->steps, 3 * window->steps + 6);
		fallen += window->steps && window->own_tier == NT_TIER_T1;
		if (window->own_tier == NT_TIER_T3)
			assert_int_equal(window->own_ns, window->steps * WORK_MS * MS);
	}
	assert_true(fallen > 0);
	assert_true(lost >= 50 && lost <= 60);
	node_stop(&device.node);
}

static void calls_carry_the_times_of_the_device(void **state)
{
	const struct node_window *w;
	struct device device;
	size_t timed = 0, samples = 0;

	(void)state;
	start(&device);
	run_steps(&device, 60);
	w = last_with_steps(&device.node);
	assert_int_equal(w->comm[0].op[0].op, NT_OP_ALL_REDUCE);
	assert_int_equal(w->comm[0].op[0].duration.buckets, 0);
	assert_true(w->comm[0].op[0].gpu_duration.buckets > 0);
	assert_int_equal(w->comm[0].op[0].gpu_duration.min_ns, 7 * MS);
	assert_int_equal(w->comm[0].op[0].gpu_duration.max_ns, 7 * MS);
	for (size_t i = device.node.windows / 2; i < device.node.windows; i++) {
		w = &device.node.window[i];
		for (size_t j = 0; j < w->window.samples; j++) {
			const struct nt_sample *sample = &w->window.sample[j];

			samples++;
			timed += sample->gpu_end_boot_ns != 0;
			if (!sample->gpu_end_boot_ns)
				continue;
			assert_int_equal(sample->gpu_end_boot_ns - sample->gpu_start_boot_ns,
					 7 * MS);
			/* It is that call's: the device is 59 ms behind the host. */
			assert_int_equal(sample->gpu_start_boot_ns - sample->arrive_boot_ns,
					 (WORK_MS - 1) * MS);
		}
	}
	assert_true(timed * 2 > samples);
	node_stop(&device.node);
}

static void calls_are_timed_though_nothing_tells_of_kernels(void **state)
{
	const struct node_window *w;
	struct device device;

	(void)state;
	start(&device);
	device.silent = true;
	for (int i = 0; i < 60; i++) {
		run_steps(&device, 1);
		report_call(&device, device.calls + 1, device.node.now_ns - 9 * MS,
			    device.node.now_ns - 2 * MS);
	}
	w = last_with_steps(&device.node);
	assert_int_equal(w->window.own_tier, NT_TIER_T1);
	assert_true(w->comm[0].op[0].gpu_duration.buckets > 0);
	node_stop(&device.node);
}

static void what_makes_no_sense_or_is_nobodys_is_left_out_and_counted(void **state)
{
	struct nt_gpu_interval good, bad;
	struct device device;

	(void)state;
	start(&device);
	run_steps(&device, 10);
	good = interval_of(&device, device.node.now_ns, device.node.now_ns, device.node.now_ns);
	bad = good;
	bad.end_ns--;
	nt_tracker_gpu(device.node.tracker, &bad);
	bad = good;
	bad.entry_ns++;
	nt_tracker_gpu(device.node.tracker, &bad);
	bad = good;
	bad.end_ns += 2 * SECOND; /* it has not happened yet */
	nt_tracker_gpu(device.node.tracker, &bad);
	bad = good;
	bad.entry_ns = bad.start_ns = 0;
	nt_tracker_gpu(device.node.tracker, &bad);
	assert_int_equal(stats_of(&device).gpu_malformed, 4);
	bad = good;
	bad.pid++;
	nt_tracker_gpu(device.node.tracker, &bad);
	bad = good;
	bad.communicates = true;
	bad.comm = 0xdead;
	nt_tracker_gpu(device.node.tracker, &bad);
	assert_int_equal(stats_of(&device).gpu_unowned, 2);
	node_stop(&device.node);
}

static void of_several_ranks_in_a_process_no_kernel_is_anybodys(void **state)
{
	struct device device;

	(void)state;
	start(&device);
	nccl_init(&device.node, PID, PID + 1, 0x6000, 1, 2, 0x11);
	nccl_reduce(&device.node, PID, PID, 0x5000, 1 << 20, STREAM);
	nccl_reduce(&device.node, PID, PID + 1, 0x6000, 1 << 20, STREAM);
	device.silent = true;
	run_steps(&device, 1);
	device.silent = false;
	run_steps(&device, 10);
	assert_int_equal(stats_of(&device).ranks, 2);
	assert_int_equal(stats_of(&device).gpu_unowned, 10);
	node_stop(&device.node);
}

static void no_interval_that_a_process_makes_up_does_harm(void **state)
{
	struct device device;
	uint64_t random = 1;

	(void)state;
	start(&device);
	for (int i = 0; i < 3000; i++) {
		struct nt_gpu_interval interval;
		uint64_t word[8];

		for (int j = 0; j < 8; j++) {
			random = nt_hash_mix(random + 0x9e3779b97f4a7c15ULL);
			word[j] = random >> (random % 64);
			if (random & 1)
				word[j] = device.node.now_ns - (word[j] & 0xfffffff);
		}
		interval = (struct nt_gpu_interval){
			.pid = PID,
			.kernels = (uint32_t)word[0],
			.number = word[1],
			.entry_ns = word[2],
			.start_ns = word[3],
			.end_ns = word[4],
			.stream = word[5],
			.communicates = word[6] & 1,
			.comm = word[7],
			.comm_rank = (uint32_t)word[6],
			.op = (enum nt_op)(word[6] >> 1),
			.nth = word[0],
		};
		nt_tracker_gpu(device.node.tracker, &interval);
		if (i % 10 == 0)
			run_steps(&device, 1);
	}
	run_steps(&device, 60);
	assert_int_equal(last_with_steps(&device.node)->window.own_tier, NT_TIER_T3);
	node_stop(&device.node);
}

/* What the driver states of the GPUs of the process. A GPU that is known late has no past. */
static void what_held_the_gpu_down_is_told_as_differences(void **state)
{
	const struct nt_host_evidence *host;
	struct node node;

	(void)state;
	node_start(&node);
	node.has_host = true;
	node.host = (struct nt_host_sample){.state = 'S'};
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 21);
	assert_int_equal(node_last(&node)->window.host.gpu_clock_mhz, 0);
	node.host.has_gpu = true;
	node.host.gpu = (struct nt_gpu_total){
		.thermal_ns = 5 * SECOND, .clock_mhz = 990, .most_clock_mhz = 1980, .celsius = 91};
	mpi_steps(&node, PID, 21);
	host = &node_last(&node)->window.host;
	assert_int_equal(host->gpu_clock_mhz, 990);
	assert_int_equal(host->gpu_most_clock_mhz, 1980);
	assert_int_equal(host->gpu_celsius, 91);
	assert_int_equal(host->gpu_thermal_ns, 0);
	node.host.gpu.thermal_ns += 700 * MS;
	node.host.gpu.power_ns += 1;
	node.host.gpu.hardware_ns += 2;
	node.host.gpu.uncorrected += 3;
	node.host.gpu.xids += 4;
	node.host.gpu.last_xid = 94;
	node.host.gpu.activity_ns += 5;
	node.host.gpu.sm_ns += 6;
	node.host.gpu.occupancy_ns += 7;
	node.host.gpu.tensor_ns += 8;
	node.host.gpu.dram_ns += 9;
	node.host.gpu.nvlink_bytes += 10;
	node.host.gpu.pcie_bytes += 11;
	mpi_steps(&node, PID, 21);
	host = &node_last(&node)->window.host;
	assert_int_equal(host->gpu_thermal_ns, 700 * MS);
	assert_int_equal(host->gpu_power_ns, 1);
	assert_int_equal(host->gpu_hardware_ns, 2);
	assert_int_equal(host->gpu_uncorrected, 3);
	assert_int_equal(host->gpu_xids, 4);
	assert_int_equal(host->gpu_last_xid, 94);
	assert_int_equal(host->gpu_activity_ns, 5);
	assert_int_equal(host->gpu_sm_ns, 6);
	assert_int_equal(host->gpu_occupancy_ns, 7);
	assert_int_equal(host->gpu_tensor_ns, 8);
	assert_int_equal(host->gpu_dram_ns, 9);
	assert_int_equal(host->gpu_nvlink_bytes, 10);
	assert_int_equal(host->gpu_pcie_bytes, 11);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_only_enqueues_has_own_work_by_its_device),
		cmocka_unit_test(windows_end_with_a_step_although_the_device_is_behind),
		cmocka_unit_test(a_device_that_falls_silent_leaves_the_tier_of_the_calls),
		cmocka_unit_test(lost_intervals_are_counted_and_told_and_never_thin_the_work_out),
		cmocka_unit_test(calls_carry_the_times_of_the_device),
		cmocka_unit_test(calls_are_timed_though_nothing_tells_of_kernels),
		cmocka_unit_test(what_makes_no_sense_or_is_nobodys_is_left_out_and_counted),
		cmocka_unit_test(of_several_ranks_in_a_process_no_kernel_is_anybodys),
		cmocka_unit_test(no_interval_that_a_process_makes_up_does_harm),
		cmocka_unit_test(what_held_the_gpu_down_is_told_as_differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
