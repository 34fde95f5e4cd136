/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls that are captured once and made with every launch of their graph. */
#include "tests/unit/agent/agent_job.h"

enum {
	COMM = 0x5000,
	TENSOR = 0x9000,
	SIDE = STREAM + 7,
	EVENT = 0xe00,
	GRAPH = 0x6600,
	EXEC = 0x7700,
	BYTES = 1 << 20,
};

static void start(struct node *node)
{
	node_start(node);
	ENVIRON(node, PID, "PATH=/bin\0");
	node_map(node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(node, PID, PID, COMM, 0, 2, 0x11);
}

/* Words 0 and 1; deref: what was written to the output parameter. */
static void cuda(struct node *node, const char *symbol, uint64_t first, uint64_t second,
		 uint64_t deref, uint32_t result)
{
	struct nt_event_call call = node_call(node, PID, PID, symbol, NT_LIBRARY_CUDART, 1);

	call.word[0] = first;
	call.word[1] = second;
	call.deref = deref;
	call.ret = result;
	node_event(node, &call);
}

static void capture_begin(struct node *node)
{
	cuda(node, "cudaStreamBeginCapture", STREAM, 0, 0, 0);
}

static void capture_end(struct node *node)
{
	cuda(node, "cudaStreamEndCapture", STREAM, 0x7fff0000, GRAPH, 0);
	cuda(node, "cudaGraphInstantiate", 0x7fff0008, GRAPH, EXEC, 0);
	cuda(node, "cudaGraphDestroy", GRAPH, 0, 0, 0);
}

static void seen(struct node *node, const char *symbol, enum nt_library library, uint64_t first,
		 uint64_t second)
{
	struct nt_event_call call = node_call(node, PID, PID, symbol, library, 0);

	call.word[0] = first;
	call.word[1] = second;
	node_event(node, &call);
}

static void launch_on(struct node *node, uint64_t exec, uint64_t stream)
{
	node->counters.calls[NT_COUNTER_LAUNCH]++;
	seen(node, "cudaGraphLaunch", NT_LIBRARY_CUDART, exec, stream);
}

static void launch(struct node *node)
{
	launch_on(node, EXEC, STREAM);
}

static void reduce(struct node *node, uint64_t handle, uint64_t stream)
{
	nccl_reduce(node, PID, PID, handle, BYTES, stream);
}

struct sum {
	uint64_t calls, bytes, last;
};

/* Of all windows so far, of the communicators with this place in the window. */
static struct sum sum_of(struct node *node)
{
	struct sum sum = {0};

	nt_tracker_tick(node->tracker, node->now_ns += 2 * SECOND);
	for (size_t i = 0; i < node->windows; i++) {
		const struct node_window *w = &node->window[i];

		for (size_t c = 0; c < w->window.comms; c++) {
			for (size_t o = 0; o < w->comm[c].ops; o++) {
				sum.calls += w->op[c][o].calls;
				sum.bytes += w->op[c][o].bytes;
				if (w->op[c][o].last > sum.last)
					sum.last = w->op[c][o].last;
			}
		}
	}
	return sum;
}

static struct nt_tracker_stats stats_of(const struct node *node)
{
	struct nt_tracker_stats stats;

	nt_tracker_stats(node->tracker, &stats);
	return stats;
}

static void captured_calls_are_counted_with_each_launch_and_not_before(void **state)
{
	struct node node;
	struct sum sum;

	(void)state;
	start(&node);
	reduce(&node, COMM, STREAM);
	capture_begin(&node);
	reduce(&node, COMM, STREAM);
	reduce(&node, COMM, STREAM);
	capture_end(&node);
	sum = sum_of(&node);
	assert_int_equal(sum.calls, 1);
	for (int i = 0; i < 10; i++) {
		node.now_ns += 20 * MS;
		launch(&node);
	}
	sum = sum_of(&node);
	assert_int_equal(sum.calls, 21);
	assert_int_equal(sum.bytes, 21ULL * BYTES * 4);
	assert_int_equal(sum.last, 21);
	assert_int_equal(stats_of(&node).graphs.launches, 10);
	assert_int_equal(stats_of(&node).graphs.unknown, 0);
	node_stop(&node);
}

static void calls_beside_the_capture_are_made_when_they_are(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	capture_begin(&node);
	reduce(&node, COMM, SIDE); /* of no part in it */
	reduce(&node, COMM, STREAM);
	capture_end(&node);
	assert_int_equal(sum_of(&node).calls, 1);
	node_stop(&node);
}

/* A thread's default stream, which may capture, has the number of no stream at all. */
static void a_call_without_a_stream_is_never_captured(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	mpi_process(&node, PID, 0, false);
	cuda(&node, "cudaStreamBeginCapture_ptsz", 0, 0, 0, 0);
	mpi_reduce(&node, PID, WORLD, 1000, MS);
	reduce(&node, COMM, 0);
	assert_int_equal(sum_of(&node).calls, 1);
	node_stop(&node);
}

static void a_stream_that_joins_the_capture_makes_no_calls_either(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	capture_begin(&node);
	seen(&node, "cudaEventRecord", NT_LIBRARY_CUDART, EVENT, STREAM);
	seen(&node, "cudaStreamWaitEvent", NT_LIBRARY_CUDART, SIDE, EVENT);
	reduce(&node, COMM, SIDE);
	capture_end(&node);
	reduce(&node, COMM, SIDE); /* it has ended for this stream too */
	assert_int_equal(sum_of(&node).calls, 1);
	launch(&node);
	assert_int_equal(sum_of(&node).calls, 2);
	node_stop(&node);
}

/* Each step is one launch: a period of two calls, of which the first begins it. */
static void steps_are_found_in_what_graphs_make(void **state)
{
	const struct node_window *w;
	struct node node;

	(void)state;
	start(&node);
	nccl_init(&node, PID, PID, TENSOR, 0, 2, 0x22);
	capture_begin(&node);
	reduce(&node, TENSOR, STREAM);
	reduce(&node, COMM, STREAM);
	capture_end(&node);
	for (int i = 0; i < 100; i++) {
		node.now_ns += 2 * MS;
		launch(&node);
		stream_sync(&node, PID, PID, STREAM, 23 * MS);
	}
	w = node_last(&node);
	assert_true(w->window.steps > 0);
	assert_int_equal(w->window.step_ns, w->window.steps * 25 * MS);
	/* What the graph does by itself cannot be told from what it waits for. */
	assert_int_equal(w->window.own_tier, NT_TIER_T1);
	node_stop(&node);
}

static void a_known_graph_of_kernels_alone_is_own_work(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	nccl_init(&node, PID, PID, TENSOR, 0, 2, 0x22);
	/* Called once and never again: an unknown graph might hold it, this one does not. */
	reduce(&node, TENSOR, STREAM);
	capture_begin(&node);
	capture_end(&node);
	for (int i = 0; i < 60; i++) {
		node.now_ns += 2 * MS;
		node.counters.calls[NT_COUNTER_LAUNCH] += 10;
		launch(&node);
		stream_sync(&node, PID, PID, STREAM, 20 * MS);
		reduce(&node, COMM, STREAM + 1);
		stream_sync(&node, PID, PID, STREAM + 1, 5 * MS);
	}
	assert_int_equal(node_last(&node)->window.own_tier, NT_TIER_T2);
	node_stop(&node);
}

static void a_graph_captured_before_the_agent_came_is_counted_as_unknown(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	launch(&node);
	/* Nor is the end of a capture enough whose begin was not seen. */
	capture_end(&node);
	launch(&node);
	capture_begin(&node);
	capture_end(&node);
	launch_on(&node, EXEC + 1, STREAM);
	launch(&node);
	assert_int_equal(sum_of(&node).calls, 0);
	assert_int_equal(stats_of(&node).graphs.unknown, 3);
	node_stop(&node);
}

static void a_capture_that_did_not_begin_keeps_no_call_back(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	cuda(&node, "cudaStreamBeginCapture", STREAM, 0, 0, 900);
	reduce(&node, COMM, STREAM);
	capture_begin(&node);
	cuda(&node, "cudaStreamEndCapture", STREAM, 0, 0, 901);
	reduce(&node, COMM, STREAM);
	assert_int_equal(sum_of(&node).calls, 2);
	/* Ended on the wrong thread it goes on. */
	capture_begin(&node);
	cuda(&node, "cudaStreamEndCapture", STREAM, 0, 0, 908);
	reduce(&node, COMM, STREAM);
	assert_int_equal(sum_of(&node).calls, 2);
	node_stop(&node);
}

static void a_launch_that_is_captured_makes_its_calls_later(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	capture_begin(&node);
	reduce(&node, COMM, STREAM);
	capture_end(&node);
	capture_begin(&node);
	launch(&node);
	cuda(&node, "cudaStreamEndCapture", STREAM, 0, GRAPH, 0);
	cuda(&node, "cudaGraphInstantiate", 0, GRAPH, EXEC + 1, 0);
	assert_int_equal(sum_of(&node).calls, 0);
	launch_on(&node, EXEC + 1, SIDE);
	assert_int_equal(sum_of(&node).calls, 1);
	node_stop(&node);
}

static void the_driver_alone_tells_the_same_and_beside_the_runtime_nothing(void **state)
{
	struct nt_event_call call;
	struct node node;

	(void)state;
	start(&node);
	call = node_call(&node, PID, PID, "cuStreamBeginCapture_v2", NT_LIBRARY_CUDA, 1);
	call.word[0] = STREAM;
	node_event(&node, &call);
	reduce(&node, COMM, STREAM);
	call = node_call(&node, PID, PID, "cuStreamEndCapture", NT_LIBRARY_CUDA, 1);
	call.word[0] = STREAM;
	call.deref = GRAPH;
	node_event(&node, &call);
	call = node_call(&node, PID, PID, "cuGraphInstantiateWithFlags", NT_LIBRARY_CUDA, 1);
	call.word[1] = GRAPH;
	call.deref = EXEC;
	node_event(&node, &call);
	seen(&node, "cuGraphLaunch", NT_LIBRARY_CUDA, EXEC, STREAM);
	assert_int_equal(sum_of(&node).calls, 1);
	launch(&node);
	seen(&node, "cuGraphLaunch", NT_LIBRARY_CUDA, EXEC, STREAM);
	assert_int_equal(sum_of(&node).calls, 2);
	node_stop(&node);
}

static void a_communicator_that_is_gone_has_no_calls(void **state)
{
	struct nt_event_call call;
	struct node node;

	(void)state;
	start(&node);
	nccl_init(&node, PID, PID, TENSOR, 0, 2, 0x22);
	capture_begin(&node);
	reduce(&node, COMM, STREAM);
	reduce(&node, TENSOR, STREAM);
	capture_end(&node);
	call = node_call(&node, PID, PID, "ncclCommDestroy", NT_LIBRARY_NCCL, 1);
	call.word[0] = TENSOR;
	node_event(&node, &call);
	launch(&node);
	assert_int_equal(stats_of(&node).graphs.gone, 1);
	/* Another one at its address is another one. */
	nccl_init(&node, PID, PID, TENSOR, 0, 2, 0x33);
	launch(&node);
	assert_int_equal(stats_of(&node).graphs.gone, 2);
	assert_int_equal(sum_of(&node).calls, 2);
	node_stop(&node);
}

static void after_a_loss_no_stream_is_taken_to_capture(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	capture_begin(&node);
	nt_tracker_lost_of(node.tracker, PID, 1); /* perhaps the end of the capture */
	reduce(&node, COMM, STREAM);
	assert_int_equal(sum_of(&node).calls, 1);
	node_stop(&node);
}

/* Half a second with so many calls, in steps of their own. */
static const struct nt_gemms *gemms_of_next_window(struct node *node, uint64_t calls)
{
	node->gemms.sum[0].key = NT_GEMM_KEY(14, 68);
	node->gemms.sum[0].calls += calls;
	node->gemms.sum[0].flops += 10 * calls;
	nt_tracker_tick(node->tracker, node->now_ns += 2 * SECOND);
	return &node_last(node)->window.gemms;
}

static void what_is_multiplied_is_told_as_differences_with_the_graphs_beside_it(void **state)
{
	const struct nt_gemms *gemms;
	struct node node;

	(void)state;
	start(&node);
	reduce(&node, COMM, STREAM);
	assert_int_equal(gemms_of_next_window(&node, 0)->gemms, 0); /* it makes none so far */
	node.has_gemms = true;
	gemms = gemms_of_next_window(&node, 5);
	assert_int_equal(gemms->gemms, 1);
	assert_int_equal(gemms->gemm[0].calls, 5);
	assert_int_equal(gemms->gemm[0].flops, 50);
	assert_int_equal(gemms->captures, 0);
	capture_begin(&node);
	capture_end(&node);
	launch(&node);
	launch(&node);
	gemms = gemms_of_next_window(&node, 7);
	assert_int_equal(gemms->gemm[0].calls, 7);
	assert_int_equal(gemms->captures, 1);
	assert_int_equal(gemms->graph_launches, 2);
	node.gemms.unread = 3;
	node.gemms.over_cap = 1;
	gemms = gemms_of_next_window(&node, 0);
	assert_int_equal(gemms->gemms, 0);
	assert_int_equal(gemms->captures, 0);
	assert_int_equal(gemms->graph_launches, 0);
	assert_int_equal(gemms->unread, 4);
	assert_int_equal(stats_of(&node).gemms, 12);
	assert_int_equal(stats_of(&node).gemms_unread, 3);
	assert_int_equal(stats_of(&node).gemms_over_cap, 1);
	node_stop(&node);
}

/* A process may have multiplied for an hour before it became a rank. */
static void what_was_multiplied_before_the_first_window_is_in_none(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	node.has_gemms = true;
	reduce(&node, COMM, STREAM);
	assert_int_equal(gemms_of_next_window(&node, 1000000)->gemms, 0);
	assert_int_equal(gemms_of_next_window(&node, 3)->gemm[0].calls, 3);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captured_calls_are_counted_with_each_launch_and_not_before),
		cmocka_unit_test(calls_beside_the_capture_are_made_when_they_are),
		cmocka_unit_test(a_call_without_a_stream_is_never_captured),
		cmocka_unit_test(a_stream_that_joins_the_capture_makes_no_calls_either),
		cmocka_unit_test(steps_are_found_in_what_graphs_make),
		cmocka_unit_test(a_known_graph_of_kernels_alone_is_own_work),
		cmocka_unit_test(a_graph_captured_before_the_agent_came_is_counted_as_unknown),
		cmocka_unit_test(a_capture_that_did_not_begin_keeps_no_call_back),
		cmocka_unit_test(a_launch_that_is_captured_makes_its_calls_later),
		cmocka_unit_test(the_driver_alone_tells_the_same_and_beside_the_runtime_nothing),
		cmocka_unit_test(a_communicator_that_is_gone_has_no_calls),
		cmocka_unit_test(after_a_loss_no_stream_is_taken_to_capture),
		cmocka_unit_test(
			what_is_multiplied_is_told_as_differences_with_the_graphs_beside_it),
		cmocka_unit_test(what_was_multiplied_before_the_first_window_is_in_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
