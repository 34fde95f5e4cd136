/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The part of the kernels' time that matrix multiplications are, in a rank's windows. */
#include "tests/unit/agent/device_job.h"

enum {
	THREAD = 0xf7d0a740,
	INSIDE_MS = 40, /* of a step */
	OUTSIDE_MS = 20,
	COPY_MS = 7,
};

struct job {
	struct device device;
	uint32_t correlation;
	uint64_t number; /* of the last record */
	uint32_t spans_lost;
	bool skips_number, is_silent;
	uint32_t graph; /* that its kernels are part of; 0: none */
};

static void add(struct nt_event_gpu *batch, enum nt_gpu_record_kind kind, uint32_t correlation,
		uint64_t start_ns, uint64_t end_ns, uint32_t stream)
{
	batch->record[batch->records++] = (struct nt_gpu_record){.start_ns = start_ns,
								 .end_ns = end_ns,
								 .correlation = correlation,
								 .stream = stream,
								 .kind = (uint16_t)kind};
}

static void hand_over(struct job *job, struct nt_event_gpu *batch)
{
	batch->h.pid = PID;
	batch->h.entry_ns = job->device.node.now_ns;
	batch->spans_lost = job->spans_lost;
	batch->number = job->number + 1 + job->skips_number;
	job->skips_number = false;
	job->number = batch->number + batch->records - 1;
	nt_tracker_gpu_batch(job->device.node.tracker, batch);
}

static void open_measurement(struct job *job)
{
	static struct nt_event_gpu batch;

	batch.records = 0;
	add(&batch, NT_GPU_RECORD_OPEN, 0, job->device.node.now_ns, job->device.node.now_ns, 0);
	hand_over(job, &batch);
}

static void launch(struct job *job, struct nt_event_gpu *batch, enum nt_gpu_record_kind kind,
		   uint64_t at_ns, uint64_t ms)
{
	const uint32_t correlation = ++job->correlation;

	add(batch, NT_GPU_RECORD_LAUNCH, correlation, at_ns, at_ns + 1000, THREAD);
	add(batch, kind, correlation, at_ns + 2000, at_ns + 2000 + ms * MS, 7);
	batch->record[batch->records - 1].graph = job->graph;
}

/* Each with a kernel inside of a multiplication, one outside, one of NCCL and a copy. */
static void run_steps(struct job *job, int steps)
{
	static struct nt_event_gpu batch;
	struct node *node = &job->device.node;

	for (int i = 0; i < steps; i++) {
		const uint64_t start_ns = node->now_ns + MS;
		const struct nt_event_gemm gemm = {
			.h = {.pid = PID, .tid = PID, .entry_ns = start_ns},
			.ret_ns = start_ns + 10000,
			.thread = THREAD,
		};

		node->counters.calls[NT_COUNTER_LAUNCH] += 2;
		node->gemms.sum[0].key = NT_GEMM_KEY(14, 68);
		node->gemms.sum[0].calls++;
		node->now_ns += 2 * MS;
		nccl_reduce(node, PID, PID, 0x5000, 1 << 20, STREAM + 1);
		node->now_ns += (STEP_MS - 2) * MS;
		nt_tracker_tick(node->tracker, node->now_ns);
		if (job->is_silent)
			continue;
		nt_tracker_gemm(node->tracker, &gemm);
		batch.records = 0;
		launch(job, &batch, NT_GPU_RECORD_KERNEL, start_ns + 5000, INSIDE_MS);
		launch(job, &batch, NT_GPU_RECORD_KERNEL, start_ns + 20000, OUTSIDE_MS);
		launch(job, &batch, NT_GPU_RECORD_COMMUNICATION, start_ns + 30000, COPY_MS);
		launch(job, &batch, NT_GPU_RECORD_COPY, start_ns + 40000, COPY_MS);
		hand_over(job, &batch);
	}
}

static void begin(struct job *job)
{
	memset(job, 0, sizeof(*job));
	start(&job->device);
	job->device.node.has_gemms = true;
	job->is_silent = true;
	run_steps(job, 20); /* until it is a rank with windows */
	job->is_silent = false;
}

/* Of all windows so far. */
static struct nt_gemm_time sums_of(const struct job *job, size_t first)
{
	const struct node *node = &job->device.node;
	struct nt_gemm_time sums = {0};

	for (size_t i = first; i < node->windows; i++) {
		sums.own_ns += node->window[i].window.gemms.gpu_ns;
		sums.inside_ns += node->window[i].window.gemms.gpu_inside_ns;
	}
	return sums;
}

static void windows_have_the_time_of_kernels_inside_and_of_all(void **state)
{
	struct nt_gemm_time sums;
	struct job job;

	(void)state;
	begin(&job);
	open_measurement(&job);
	run_steps(&job, 30);
	nt_tracker_gpu_closed_all(job.device.node.tracker);
	job.is_silent = true;
	run_steps(&job, 30);
	sums = sums_of(&job, 0);
	assert_int_equal(sums.own_ns, 30 * (INSIDE_MS + OUTSIDE_MS) * MS);
	assert_int_equal(sums.inside_ns, 30 * INSIDE_MS * MS);
	assert_int_equal(node_last(&job.device.node)->window.gemms.gpu_ns, 0);
	assert_int_equal(stats_of(&job.device).gemm_windows_partial, 0);
	node_stop(&job.device.node);
}

/* A window's figures are whole, or there are none. */
static void a_window_with_losses_states_no_time(void **state)
{
	struct nt_gemm_time sums;
	struct job job;
	size_t first;

	(void)state;
	begin(&job);
	open_measurement(&job);
	run_steps(&job, 10);
	for (int i = 0; i < 2; i++) {
		first = job.device.node.windows;
		job.skips_number = i == 0;
		job.spans_lost += i == 1;
		run_steps(&job, 1);
		assert_int_equal(stats_of(&job.device).gemm_windows_partial, i);
		run_steps(&job, 30);
		sums = sums_of(&job, first);
		assert_in_range(sums.own_ns, 1, 30 * (INSIDE_MS + OUTSIDE_MS) * MS);
		assert_int_equal(sums.inside_ns * (INSIDE_MS + OUTSIDE_MS),
				 sums.own_ns * INSIDE_MS);
		assert_int_equal(stats_of(&job.device).gemm_windows_partial, i + 1);
	}
	node_stop(&job.device.node);
}

/* It keeps no time back until it multiplies. */
static void a_process_that_multiplies_nothing_states_no_time(void **state)
{
	struct nt_gemm_time sums;
	struct job job;

	(void)state;
	begin(&job);
	job.device.node.has_gemms = false;
	open_measurement(&job);
	run_steps(&job, 60);
	assert_int_equal(sums_of(&job, 0).own_ns, 0);
	job.device.node.has_gemms = true;
	run_steps(&job, 20);
	sums = sums_of(&job, 0);
	assert_in_range(sums.own_ns, 1, 40 * (INSIDE_MS + OUTSIDE_MS) * MS);
	node_stop(&job.device.node);
}

/* Its multiplications are not observed then, but its kernels are reported. */
static void time_in_which_calls_are_not_observed_is_in_neither_sum(void **state)
{
	struct node *node;
	struct nt_gemm_time sums;
	struct job job;

	(void)state;
	begin(&job);
	node = &job.device.node;
	open_measurement(&job);
	run_steps(&job, 10);
	nt_tracker_paused(node->tracker, PID, node->now_ns);
	run_steps(&job, 10);
	nt_tracker_resumed(node->tracker, PID, node->now_ns);
	run_steps(&job, 10);
	nt_tracker_tick(node->tracker, node->now_ns += 8 * SECOND);
	sums = sums_of(&job, 0);
	assert_int_equal(sums.own_ns, 20 * (INSIDE_MS + OUTSIDE_MS) * MS);
	assert_int_equal(sums.inside_ns, 20 * INSIDE_MS * MS);
	node_stop(&job.device.node);
}

/* Until a kernel comes whose multiplications are forgotten. */
static void more_multiplications_than_are_kept_are_counted(void **state)
{
	struct job job;

	(void)state;
	begin(&job);
	open_measurement(&job);
	for (uint64_t i = 0; i < NT_GEMM_SPANS + 1; i++) {
		const struct nt_event_gemm gemm = {
			.h = {.pid = PID, .tid = PID, .entry_ns = job.device.node.now_ns},
			.ret_ns = job.device.node.now_ns + 50 * MS,
			.thread = THREAD,
		};

		nt_tracker_gemm(job.device.node.tracker, &gemm);
	}
	run_steps(&job, 1);
	assert_int_equal(stats_of(&job.device).gemm_spans_over_cap, 2);
	run_steps(&job, 30);
	assert_int_equal(stats_of(&job.device).gemm_windows_partial, 1);
	node_stop(&job.device.node);
}

static void cuda(struct node *node, const char *symbol, uint64_t first, uint64_t deref, uint64_t ns)
{
	struct nt_event_call call = node_call(node, PID, PID, symbol, NT_LIBRARY_CUDART, ns);
	struct nt_event_capture capture = {
		.h = {.pid = PID, .tid = PID, .entry_ns = call.h.entry_ns},
		.sum = {{.key = NT_GEMM_KEY(14, 68), .calls = 1, .flops = 1}},
	};

	if (strcmp(symbol, "cudaStreamEndCapture") == 0)
		nt_tracker_capture(node->tracker, &capture);
	call.word[0] = first;
	call.word[1] = STREAM;
	call.deref = deref;
	node_event(node, &call);
}

/* Which of its kernels are multiplications is not known. */
static void a_graph_that_multiplies_leaves_the_time_unknown(void **state)
{
	enum { GRAPH = 0x6600 };
	struct nt_gemm_time sums;
	struct node *node;
	struct job job;
	size_t first;

	(void)state;
	begin(&job);
	node = &job.device.node;
	open_measurement(&job);
	job.graph = 3;
	run_steps(&job, 20);
	sums = sums_of(&job, 0);
	assert_true(sums.inside_ns > 0 && sums.own_ns > sums.inside_ns);
	cuda(node, "cudaStreamBeginCapture", STREAM, 0, 1);
	cuda(node, "cudaStreamEndCapture", STREAM, GRAPH, 1);
	cuda(node, "cudaGraphLaunch", GRAPH, 0, 0);
	run_steps(&job, 10);
	first = node->windows;
	run_steps(&job, 30);
	assert_int_equal(sums_of(&job, first).own_ns, 0);
	/* Other kernels of such a process are known. */
	job.graph = 0;
	run_steps(&job, 10);
	first = node->windows;
	run_steps(&job, 30);
	assert_true(sums_of(&job, first).inside_ns > 0);
	node_stop(node);
}

static void what_belongs_to_nobody_is_ignored(void **state)
{
	struct nt_event_gemm gemm = {.h = {.pid = PID, .tid = PID, .entry_ns = 1}, .ret_ns = 2};
	struct job job;

	(void)state;
	begin(&job);
	nt_tracker_gemm(job.device.node.tracker, &gemm); /* it is not measured */
	gemm.h.pid = PID + 77;
	nt_tracker_gemm(job.device.node.tracker, &gemm);
	assert_int_equal(sums_of(&job, 0).own_ns, 0);
	node_stop(&job.device.node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_have_the_time_of_kernels_inside_and_of_all),
		cmocka_unit_test(a_window_with_losses_states_no_time),
		cmocka_unit_test(a_process_that_multiplies_nothing_states_no_time),
		cmocka_unit_test(time_in_which_calls_are_not_observed_is_in_neither_sum),
		cmocka_unit_test(more_multiplications_than_are_kept_are_counted),
		cmocka_unit_test(a_graph_that_multiplies_leaves_the_time_unknown),
		cmocka_unit_test(what_belongs_to_nobody_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
