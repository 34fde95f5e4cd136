/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix multiplications that are captured into graphs, and made with every launch of these. */
#include "tests/unit/agent/agent_job.h"

enum {
	COMM = 0x5000,
	GRAPH = 0x6600,
	EXEC = 0x7700,
	TYPE = 14,
	MODE = 68,
	FLOPS = 10, /* of a call */
};

static void start(struct node *node)
{
	node_start(node);
	ENVIRON(node, PID, "PATH=/bin\0");
	node_map(node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(node, PID, PID, COMM, 0, 2, 0x11);
	node->has_gemms = true;
	nccl_reduce(node, PID, PID, COMM, 1 << 20, STREAM);
	nt_tracker_tick(node->tracker, node->now_ns += 2 * SECOND);
}

static struct nt_event_call cuda(struct node *node, const char *symbol, uint64_t first,
				 uint64_t second, uint64_t deref)
{
	struct nt_event_call call = node_call(node, PID, PID, symbol, NT_LIBRARY_CUDART, 1);

	call.word[0] = first;
	call.word[1] = second;
	call.deref = deref;
	return call;
}

static void multiply(struct node *node, uint64_t calls)
{
	node->gemms.sum[0].key = NT_GEMM_KEY(TYPE, MODE);
	node->gemms.sum[0].calls += calls;
	node->gemms.sum[0].flops += FLOPS * calls;
}

static void capture_begins(struct node *node)
{
	const struct nt_event_call call = cuda(node, "cudaStreamBeginCapture", STREAM, 0, 0);

	node_event(node, &call);
}

/* What the kernel side sends of such a capture. */
static struct nt_event_capture event_of(const struct nt_event_call *end, uint64_t calls)
{
	return (struct nt_event_capture){
		.h = {.pid = PID, .tid = end->h.tid, .entry_ns = end->h.entry_ns},
		.sum = {{.key = NT_GEMM_KEY(TYPE, MODE), .calls = calls, .flops = FLOPS * calls}},
	};
}

static void capture_ended(struct node *node, const struct nt_event_call *end)
{
	struct nt_event_call call;

	node_event(node, end);
	call = cuda(node, "cudaGraphInstantiate", 0x7fff0008, GRAPH, EXEC);
	node_event(node, &call);
	call = cuda(node, "cudaGraphDestroy", GRAPH, 0, 0);
	node_event(node, &call);
}

static void capture_ends(struct node *node, uint64_t calls)
{
	const struct nt_event_call end =
		cuda(node, "cudaStreamEndCapture", STREAM, 0x7fff0000, GRAPH);
	const struct nt_event_capture capture = event_of(&end, calls);

	nt_tracker_capture(node->tracker, &capture);
	capture_ended(node, &end);
}

static void launch(struct node *node, int times)
{
	for (int i = 0; i < times; i++) {
		struct nt_event_call call =
			node_call(node, PID, PID, "cudaGraphLaunch", NT_LIBRARY_CUDART, 0);

		call.word[0] = EXEC;
		call.word[1] = STREAM;
		node_event(node, &call);
	}
}

static const struct nt_gemms *next_window(struct node *node)
{
	nt_tracker_tick(node->tracker, node->now_ns += 2 * SECOND);
	return &node_last(node)->window.gemms;
}

static void a_launch_multiplies_what_was_captured(void **state)
{
	const struct nt_gemms *gemms;
	struct node node;

	(void)state;
	start(&node);
	multiply(&node, 3);
	capture_begins(&node);
	multiply(&node, 5);
	capture_ends(&node, 5);
	multiply(&node, 1);
	launch(&node, 7);
	gemms = next_window(&node);
	assert_int_equal(gemms->gemms, 1);
	assert_int_equal(gemms->gemm[0].calls, 3 + 1 + 7 * 5);
	assert_int_equal(gemms->gemm[0].flops, FLOPS * (3 + 1 + 7 * 5));
	assert_int_equal(gemms->graph_launches, 7);
	assert_int_equal(gemms->graph_launches_read, 7);
	assert_int_equal(gemms->captures, 0);
	launch(&node, 2);
	gemms = next_window(&node);
	assert_int_equal(gemms->gemm[0].calls, 2 * 5);
	assert_int_equal(gemms->graph_launches_read, 2);
	gemms = next_window(&node);
	assert_int_equal(gemms->gemms, 0);
	assert_int_equal(gemms->graph_launches, 0);
	node_stop(&node);
}

/* It goes on where a window ends, which has what was captured so far. */
static void a_capture_in_two_windows_leaves_both_uncertain(void **state)
{
	const struct nt_gemms *gemms;
	struct node node;

	(void)state;
	start(&node);
	capture_begins(&node);
	multiply(&node, 5);
	assert_int_equal(next_window(&node)->captures, 1);
	multiply(&node, 5);
	capture_ends(&node, 10);
	multiply(&node, 1);
	gemms = next_window(&node);
	assert_int_equal(gemms->captures, 1);
	launch(&node, 1);
	multiply(&node, 6);
	gemms = next_window(&node);
	assert_int_equal(gemms->captures, 0);
	assert_int_equal(gemms->graph_launches_read, 1);
	node_stop(&node);
}

enum doubt {
	LOST,
	OF_ANOTHER_CALL,
	OF_ANOTHER_THREAD,
	MIXED,
	UNREAD,
	DOUBTS,
};

static void doubt(struct node *node, enum doubt why)
{
	const struct nt_event_call end =
		cuda(node, "cudaStreamEndCapture", STREAM, 0x7fff0000, GRAPH);
	struct nt_event_capture capture = event_of(&end, 5);

	capture.h.entry_ns -= why == OF_ANOTHER_CALL;
	capture.h.tid += why == OF_ANOTHER_THREAD;
	capture.h.flags = why == MIXED ? NT_CAPTURE_MIXED : 0;
	capture.unread = why == UNREAD;
	if (why != LOST)
		nt_tracker_capture(node->tracker, &capture);
	capture_ended(node, &end);
}

static void what_a_capture_multiplied_may_be_unknown(void **state)
{
	(void)state;
	for (int why = 0; why < DOUBTS; why++) {
		const struct nt_gemms *gemms;
		struct node node;

		start(&node);
		multiply(&node, 20);
		capture_begins(&node);
		multiply(&node, 5);
		doubt(&node, why);
		launch(&node, 3);
		gemms = next_window(&node);
		assert_int_equal(gemms->captures, 1);
		assert_int_equal(gemms->graph_launches, 3);
		assert_int_equal(gemms->graph_launches_read, 0);
		assert_in_range(gemms->gemm[0].calls, 20, 25);
		/* The next one is known. */
		capture_begins(&node);
		multiply(&node, 2);
		capture_ends(&node, 2);
		launch(&node, 3);
		gemms = next_window(&node);
		assert_int_equal(gemms->captures, 0);
		assert_int_equal(gemms->graph_launches_read, 3);
		assert_int_equal(gemms->gemm[0].calls, 3 * 2);
		node_stop(&node);
	}
}

/* One captures while the others multiply: the totals are those of the process. */
static void captures_of_several_ranks_are_not_told_apart(void **state)
{
	const struct nt_gemms *gemms;
	struct node node;

	(void)state;
	start(&node);
	nccl_init(&node, PID, PID + 1, COMM + 0x1000, 1, 2, 0x11);
	nccl_reduce(&node, PID, PID + 1, COMM + 0x1000, 1 << 20, STREAM + 1);
	capture_begins(&node);
	multiply(&node, 5);
	capture_ends(&node, 5);
	launch(&node, 1);
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	assert_true(node.windows >= 2);
	for (size_t i = node.windows - 2; i < node.windows; i++) {
		gemms = &node.window[i].window.gemms;
		assert_int_equal(gemms->graph_launches_read, 0);
		if (gemms->gemms)
			assert_int_equal(gemms->gemm[0].calls, 5);
	}
	node_stop(&node);
}

/* As one may make it up. */
static void more_types_than_there_are_places_for_are_unknown(void **state)
{
	const struct nt_gemms *gemms;
	struct node node;

	(void)state;
	start(&node);
	for (uint32_t from = 0; from <= 16; from += 16) {
		const struct nt_event_call end =
			cuda(&node, "cudaStreamEndCapture", STREAM, 0x7fff0000, GRAPH);
		struct nt_event_capture capture = event_of(&end, 1);

		for (uint32_t i = 0; i < NT_GEMM_SUMS; i++)
			capture.sum[i] = (struct nt_gemm_sum){
				.key = NT_GEMM_KEY(from + i, MODE), .calls = 1, .flops = 1};
		capture_begins(&node);
		nt_tracker_capture(node.tracker, &capture);
		capture_ended(&node, &end);
		launch(&node, 1);
	}
	gemms = next_window(&node);
	assert_int_equal(gemms->captures, 1);
	assert_int_equal(gemms->graph_launches, 2);
	assert_int_equal(gemms->graph_launches_read, 1);
	assert_in_range(gemms->gemms, 0, NT_WIRE_MAX_GEMMS);
	node_stop(&node);
}

static void a_capture_of_a_process_that_is_not_watched_is_ignored(void **state)
{
	struct nt_event_capture capture = {.h = {.pid = PID + 77}};
	struct node node;

	(void)state;
	start(&node);
	nt_tracker_capture(node.tracker, &capture);
	assert_int_equal(next_window(&node)->gemms, 0);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_multiplies_what_was_captured),
		cmocka_unit_test(a_capture_in_two_windows_leaves_both_uncertain),
		cmocka_unit_test(what_a_capture_multiplied_may_be_unknown),
		cmocka_unit_test(captures_of_several_ranks_are_not_told_apart),
		cmocka_unit_test(more_types_than_there_are_places_for_are_unknown),
		cmocka_unit_test(a_capture_of_a_process_that_is_not_watched_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
