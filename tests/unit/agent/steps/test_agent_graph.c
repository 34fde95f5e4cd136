/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	MAIN = 0x100, /* streams */
	SIDE = 0x200,
	EVENT = 0x1000,
	GRAPH = 0x8000,
	EXEC = 0x9000,
};

static struct nt_graph_stats stats;

static struct nt_graph *start(void)
{
	struct nt_graph *graph = NULL;

	stats = (struct nt_graph_stats){0};
	assert_int_equal(nt_graph_new(&stats, &graph), 0);
	return graph;
}

static void call(struct nt_graph *graph, uint64_t stream, uint64_t bytes)
{
	struct nt_graph_call made = {.comm = 0x5000, .bytes = bytes, .times = 1};

	nt_graph_call(graph, stream, &made);
}

/* What it holds, as one number per call: its bytes, times 1000, and how often in a row. */
static void expect(const struct nt_graph *graph, uint64_t handle, size_t count, const int *calls)
{
	const struct nt_graph_call *held;
	size_t n;

	assert_true(nt_graph_find(graph, handle, &held, &n));
	assert_int_equal(n, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(held[i].bytes * 1000 + held[i].times, calls[i]);
}

#define EXPECT(graph, handle, ...)                                                                 \
	expect(graph, handle, sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__})

static bool is_known(const struct nt_graph *graph, uint64_t handle)
{
	const struct nt_graph_call *held;
	size_t n;

	return nt_graph_find(graph, handle, &held, &n);
}

static void a_graph_holds_the_calls_of_its_stream_in_order(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	assert_true(nt_graph_captures(graph, MAIN));
	assert_false(nt_graph_captures(graph, SIDE));
	call(graph, MAIN, 7);
	call(graph, MAIN, 7);
	call(graph, SIDE, 8);
	call(graph, MAIN, 9);
	call(graph, MAIN, 7);
	assert_false(is_known(graph, GRAPH));
	nt_graph_end(graph, MAIN, GRAPH);
	assert_false(nt_graph_captures(graph, MAIN));
	EXPECT(graph, GRAPH, 7002, 9001, 7001);
	nt_graph_free(graph);
}

static void an_executable_graph_outlives_what_it_was_made_of(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 7);
	nt_graph_end(graph, MAIN, GRAPH);
	nt_graph_copy(graph, EXEC, GRAPH);
	nt_graph_drop(graph, GRAPH);
	assert_false(is_known(graph, GRAPH));
	EXPECT(graph, EXEC, 7001);
	/* An update replaces what it held. */
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 8);
	nt_graph_end(graph, MAIN, GRAPH);
	nt_graph_copy(graph, EXEC, GRAPH);
	EXPECT(graph, EXEC, 8001);
	nt_graph_copy(graph, EXEC, EXEC);
	EXPECT(graph, EXEC, 8001);
	/* A graph of which nothing is known makes one of which nothing is. */
	nt_graph_copy(graph, EXEC, 0xdead);
	assert_false(is_known(graph, EXEC));
	nt_graph_free(graph);
}

static void a_graph_of_kernels_alone_is_known_to_hold_no_call(void **state)
{
	struct nt_graph *graph = start();
	const struct nt_graph_call *held;
	size_t n = 1;

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	nt_graph_end(graph, MAIN, GRAPH);
	assert_true(nt_graph_find(graph, GRAPH, &held, &n));
	assert_int_equal(n, 0);
	nt_graph_free(graph);
}

static void a_stream_joins_a_capture_by_waiting_for_it(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	assert_false(nt_graph_record(graph, EVENT, MAIN));
	assert_false(nt_graph_wait(graph, SIDE, EVENT));
	nt_graph_begin(graph, MAIN, 0);
	/* An event of before the capture takes nobody into it. */
	assert_false(nt_graph_wait(graph, SIDE, EVENT));
	assert_true(nt_graph_record(graph, EVENT, MAIN));
	assert_true(nt_graph_wait(graph, SIDE, EVENT));
	call(graph, SIDE, 7);
	/* And back. */
	assert_true(nt_graph_record(graph, EVENT + 1, SIDE));
	assert_true(nt_graph_wait(graph, MAIN, EVENT + 1));
	/* Only the stream on which it began ends it. */
	nt_graph_end(graph, SIDE, 0);
	assert_true(nt_graph_captures(graph, SIDE));
	nt_graph_end(graph, MAIN, GRAPH);
	assert_false(nt_graph_captures(graph, SIDE));
	/* The event was the capture's, which has ended. */
	assert_false(nt_graph_wait(graph, SIDE, EVENT));
	assert_false(nt_graph_captures(graph, SIDE));
	EXPECT(graph, GRAPH, 7001);
	nt_graph_free(graph);
}

static void an_event_recorded_anew_leads_into_no_capture(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	assert_true(nt_graph_record(graph, EVENT, MAIN));
	assert_false(nt_graph_record(graph, EVENT, SIDE));
	assert_false(nt_graph_wait(graph, SIDE + 1, EVENT));
	nt_graph_free(graph);
}

static void two_captures_at_a_time_are_two_graphs(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	nt_graph_begin(graph, SIDE, 0);
	call(graph, MAIN, 7);
	call(graph, SIDE, 8);
	nt_graph_end(graph, MAIN, GRAPH);
	call(graph, SIDE, 9);
	nt_graph_end(graph, SIDE, GRAPH + 1);
	EXPECT(graph, GRAPH, 7001);
	EXPECT(graph, GRAPH + 1, 8001, 9001);
	nt_graph_free(graph);
}

static void a_capture_into_a_graph_comes_behind_what_it_holds(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, GRAPH);
	call(graph, MAIN, 7);
	nt_graph_end(graph, MAIN, GRAPH);
	nt_graph_begin(graph, MAIN, GRAPH);
	call(graph, MAIN, 8);
	nt_graph_end(graph, MAIN, GRAPH);
	EXPECT(graph, GRAPH, 7001, 8001);
	/* A new graph at the address of an old one is another. */
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 9);
	nt_graph_end(graph, MAIN, GRAPH);
	EXPECT(graph, GRAPH, 9001);
	nt_graph_free(graph);
}

static void a_child_and_a_captured_launch_bring_their_calls(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 7);
	nt_graph_end(graph, MAIN, GRAPH);
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 8);
	nt_graph_nest(graph, MAIN, GRAPH);
	nt_graph_end(graph, MAIN, EXEC);
	EXPECT(graph, EXEC, 8001, 7001);
	nt_graph_add(graph, EXEC, GRAPH);
	EXPECT(graph, EXEC, 8001, 7002);
	nt_graph_add(graph, EXEC, EXEC);
	EXPECT(graph, EXEC, 8001, 7002, 8001, 7002);
	/* Of a child that is not known nobody knows what it brings. */
	nt_graph_add(graph, EXEC, 0xdead);
	assert_false(is_known(graph, EXEC));
	nt_graph_free(graph);
}

static void a_capture_that_fails_or_whose_begin_was_missed_makes_nothing(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 7);
	nt_graph_end(graph, MAIN, 0);
	assert_false(nt_graph_captures(graph, MAIN));
	nt_graph_begin(graph, MAIN, 0);
	nt_graph_end(graph, MAIN, GRAPH);
	nt_graph_end(graph, MAIN, GRAPH);
	assert_false(is_known(graph, GRAPH));
	nt_graph_free(graph);
}

static void captures_in_doubt_are_given_up_and_graphs_are_kept(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 7);
	nt_graph_end(graph, MAIN, GRAPH);
	nt_graph_begin(graph, MAIN, 0);
	nt_graph_begin(graph, SIDE, 0);
	nt_graph_lose(graph);
	assert_false(nt_graph_captures(graph, MAIN));
	assert_false(nt_graph_captures(graph, SIDE));
	EXPECT(graph, GRAPH, 7001);
	nt_graph_free(graph);
}

/* ---- at the caps ----------------------------------------------------------------------------- */

static void a_graph_makes_so_many_calls_and_no_more(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	for (int i = 0; i < NT_GRAPH_CALLS + 5; i++)
		call(graph, MAIN, 7);
	nt_graph_end(graph, MAIN, GRAPH);
	EXPECT(graph, GRAPH, 7000 + NT_GRAPH_CALLS);
	assert_int_equal(stats.calls_over_cap, 5);
	/* Nor by being added to itself. */
	nt_graph_add(graph, GRAPH, GRAPH);
	EXPECT(graph, GRAPH, 7000 + NT_GRAPH_CALLS);
	assert_int_equal(stats.calls_over_cap, 5 + NT_GRAPH_CALLS);
	nt_graph_free(graph);
}

static void a_process_has_so_many_calls_remembered(void **state)
{
	struct nt_graph *graph = start();
	const struct nt_graph_call *held;
	uint64_t bytes = 0;
	size_t n;

	(void)state;
	for (uint64_t handle = 1; handle <= 2; handle++) {
		nt_graph_begin(graph, MAIN, 0);
		for (int i = 0; i < NT_GRAPH_CALLS; i++)
			call(graph, MAIN, ++bytes);
		nt_graph_end(graph, MAIN, handle);
	}
	assert_true(nt_graph_find(graph, 1, &held, &n));
	assert_int_equal(n, NT_GRAPH_CALLS);
	assert_true(nt_graph_find(graph, 2, &held, &n));
	assert_int_equal(n, NT_GRAPH_KEPT - NT_GRAPH_CALLS);
	assert_int_equal(stats.calls_over_cap, 0);
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 1);
	nt_graph_end(graph, MAIN, GRAPH);
	assert_int_equal(stats.calls_over_cap, 1);
	/* What is dropped makes room. */
	nt_graph_drop(graph, 1);
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 1);
	nt_graph_end(graph, MAIN, GRAPH);
	EXPECT(graph, GRAPH, 1001);
	nt_graph_free(graph);
}

static void handles_have_a_cap(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	for (uint64_t handle = 1; handle <= NT_GRAPH_HANDLES + 3; handle++) {
		nt_graph_begin(graph, MAIN, 0);
		nt_graph_end(graph, MAIN, handle);
	}
	assert_int_equal(stats.handles_over_cap, 3);
	assert_true(is_known(graph, NT_GRAPH_HANDLES));
	assert_false(is_known(graph, NT_GRAPH_HANDLES + 1));
	nt_graph_drop(graph, 1);
	nt_graph_begin(graph, MAIN, 0);
	nt_graph_end(graph, MAIN, NT_GRAPH_HANDLES + 1);
	assert_true(is_known(graph, NT_GRAPH_HANDLES + 1));
	nt_graph_free(graph);
}

static void the_oldest_capture_makes_room_for_a_new_one(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	for (uint64_t i = 0; i < NT_GRAPH_STREAMS + 2; i++)
		nt_graph_begin(graph, MAIN + i, 0);
	assert_int_equal(stats.streams_over_cap, 2);
	assert_false(nt_graph_captures(graph, MAIN + 1));
	assert_true(nt_graph_captures(graph, MAIN + 2));
	call(graph, MAIN + NT_GRAPH_STREAMS + 1, 7);
	nt_graph_end(graph, MAIN + NT_GRAPH_STREAMS + 1, GRAPH);
	EXPECT(graph, GRAPH, 7001);
	nt_graph_free(graph);
}

static void a_capture_never_makes_room_for_its_own_streams(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	assert_true(nt_graph_record(graph, EVENT, MAIN));
	for (uint64_t i = 1; i <= NT_GRAPH_STREAMS; i++)
		assert_true(nt_graph_wait(graph, MAIN + i, EVENT));
	assert_int_equal(stats.streams_over_cap, 1);
	assert_true(nt_graph_captures(graph, MAIN));
	assert_false(nt_graph_captures(graph, MAIN + NT_GRAPH_STREAMS));
	nt_graph_free(graph);
}

static void events_have_a_cap(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_begin(graph, MAIN, 0);
	for (uint64_t i = 0; i <= NT_GRAPH_EVENTS; i++)
		assert_true(nt_graph_record(graph, EVENT + i, MAIN));
	assert_true(stats.events_over_cap > 0);
	/* Those of captures that have ended are in nobody's way. */
	nt_graph_end(graph, MAIN, GRAPH);
	stats.events_over_cap = 0;
	nt_graph_begin(graph, MAIN, 0);
	assert_true(nt_graph_record(graph, 0x777, MAIN));
	assert_int_equal(stats.events_over_cap, 0);
	nt_graph_free(graph);
}

/* ---- any order of anything -------------------------------------------------------------------- */

static void change(struct nt_graph *graph, uint64_t what, uint64_t a, uint64_t b)
{
	switch (what) {
	case 0:
		nt_graph_begin(graph, a, b % 3 ? 0 : b + 1);
		break;
	case 1:
		nt_graph_end(graph, a, b);
		break;
	case 2:
		(void)nt_graph_record(graph, a, b);
		break;
	case 3:
		(void)nt_graph_wait(graph, a, b);
		break;
	case 4:
		nt_graph_copy(graph, a + 1, b + 1);
		break;
	case 5:
		nt_graph_add(graph, a + 1, b + 1);
		break;
	case 6:
		nt_graph_nest(graph, a, b + 1);
		break;
	case 7:
		nt_graph_drop(graph, b + 1);
		break;
	default:
		call(graph, a, b);
		break;
	}
}

static void whatever_happened_all_room_comes_back(void **state)
{
	struct nt_graph *graph = start();
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		change(graph, (seed >> 33) % 20, (seed >> 40) % 8, (seed >> 50) % 8);
		if (i % 10000 == 0)
			nt_graph_lose(graph);
	}
	nt_graph_lose(graph);
	for (uint64_t handle = 0; handle <= 8; handle++)
		nt_graph_drop(graph, handle);
	stats = (struct nt_graph_stats){0};
	for (uint64_t handle = 1; handle <= NT_GRAPH_KEPT / NT_GRAPH_CALLS; handle++) {
		nt_graph_begin(graph, MAIN, 0);
		for (uint64_t i = 0; i < NT_GRAPH_CALLS; i++)
			call(graph, MAIN, i);
		nt_graph_end(graph, MAIN, handle);
	}
	assert_int_equal(stats.calls_over_cap, 0);
	nt_graph_begin(graph, MAIN, 0);
	call(graph, MAIN, 1);
	assert_int_equal(stats.calls_over_cap, 1);
	nt_graph_free(graph);
}

/* ---- multiplications ------------------------------------------------------------------------ */

enum {
	BF16 = 14,
	F16 = 2,
	MODE = 68,
};

static void capture_sum(struct nt_graph *graph, uint64_t into, uint64_t handle, uint32_t type,
			uint64_t calls)
{
	const struct nt_gemm_sum sum[NT_GEMM_SUMS] = {
		{.key = NT_GEMM_KEY(1, MODE)}, /* a type without calls meanwhile */
		{.key = NT_GEMM_KEY(type, MODE), .calls = calls, .flops = 10 * calls},
	};

	nt_graph_begin(graph, MAIN, into);
	nt_graph_end(graph, MAIN, handle);
	nt_graph_multiply(graph, handle, sum);
}

static void expect_sum(const struct nt_graph *graph, uint64_t handle, uint32_t type, uint64_t calls)
{
	struct nt_gemm_sum sum[NT_GEMM_SUMS];
	uint64_t all = 0;

	assert_true(nt_graph_multiplies(graph, handle, sum));
	for (size_t i = 0; i < NT_GEMM_SUMS; i++) {
		if (sum[i].key != NT_GEMM_KEY(type, MODE))
			continue;
		all += sum[i].calls;
		assert_int_equal(sum[i].flops, 10 * sum[i].calls);
	}
	assert_int_equal(all, calls);
}

static bool is_summed(const struct nt_graph *graph, uint64_t handle)
{
	struct nt_gemm_sum sum[NT_GEMM_SUMS];

	return nt_graph_multiplies(graph, handle, sum);
}

static void a_graph_multiplies_what_its_captures_did(void **state)
{
	struct nt_graph *graph = start();
	const size_t bytes = nt_graph_bytes(graph);

	(void)state;
	capture_sum(graph, 0, GRAPH, BF16, 5);
	expect_sum(graph, GRAPH, BF16, 5);
	assert_true(nt_graph_bytes(graph) > bytes + NT_GEMM_SUMS * sizeof(struct nt_gemm_sum));
	/* Instantiated, and captured into again. */
	nt_graph_copy(graph, EXEC, GRAPH);
	capture_sum(graph, GRAPH, GRAPH, BF16, 2);
	capture_sum(graph, GRAPH, GRAPH, F16, 3);
	expect_sum(graph, GRAPH, BF16, 7);
	expect_sum(graph, GRAPH, F16, 3);
	nt_graph_add(graph, EXEC, GRAPH);
	expect_sum(graph, EXEC, BF16, 12);
	nt_graph_drop(graph, GRAPH);
	assert_false(is_summed(graph, GRAPH));
	expect_sum(graph, EXEC, F16, 3);
	nt_graph_drop(graph, EXEC);
	assert_int_equal(nt_graph_bytes(graph), bytes);
	/* Another capture of this handle is another graph. */
	capture_sum(graph, 0, GRAPH, BF16, 5);
	capture_sum(graph, 0, GRAPH, BF16, 1);
	expect_sum(graph, GRAPH, BF16, 1);
	capture_sum(graph, 0, GRAPH, BF16, 0);
	expect_sum(graph, GRAPH, BF16, 0);
	nt_graph_free(graph);
}

static void what_one_capture_multiplied_may_be_unknown(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	nt_graph_multiply(graph, GRAPH, NULL); /* no such graph */
	nt_graph_begin(graph, MAIN, 0);
	nt_graph_end(graph, MAIN, GRAPH);
	assert_false(is_summed(graph, GRAPH)); /* nobody said */
	nt_graph_copy(graph, EXEC, GRAPH);
	assert_false(is_summed(graph, EXEC));
	capture_sum(graph, 0, GRAPH, BF16, 5);
	nt_graph_begin(graph, MAIN, GRAPH);
	nt_graph_end(graph, MAIN, GRAPH);
	nt_graph_multiply(graph, GRAPH, NULL);
	assert_false(is_summed(graph, GRAPH));
	/* For good. */
	capture_sum(graph, GRAPH, GRAPH, BF16, 5);
	assert_false(is_summed(graph, GRAPH));
	capture_sum(graph, 0, EXEC, BF16, 5);
	nt_graph_add(graph, EXEC, GRAPH);
	assert_false(is_summed(graph, EXEC));
	nt_graph_free(graph);
}

/* What it multiplies is in no total of the capture. */
static void a_graph_launched_in_a_capture_leaves_it_unknown(void **state)
{
	struct nt_graph *graph = start();
	static const struct nt_gemm_sum none[NT_GEMM_SUMS];

	(void)state;
	capture_sum(graph, 0, EXEC, BF16, 5);
	nt_graph_begin(graph, MAIN, 0);
	nt_graph_nest(graph, MAIN, EXEC);
	nt_graph_end(graph, MAIN, GRAPH);
	nt_graph_multiply(graph, GRAPH, none);
	assert_false(is_summed(graph, GRAPH));
	nt_graph_free(graph);
}

static void more_types_than_the_cap_leave_it_unknown(void **state)
{
	struct nt_graph *graph = start();

	(void)state;
	capture_sum(graph, 0, GRAPH, 0, 1);
	for (uint32_t type = 1; type < NT_GEMM_SUMS; type++)
		capture_sum(graph, GRAPH, GRAPH, type, 1);
	assert_true(is_summed(graph, GRAPH));
	capture_sum(graph, GRAPH, GRAPH, 3, 1);
	expect_sum(graph, GRAPH, 3, 2);
	capture_sum(graph, GRAPH, GRAPH, NT_GEMM_SUMS, 1);
	assert_false(is_summed(graph, GRAPH));
	nt_graph_free(graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_graph_holds_the_calls_of_its_stream_in_order),
		cmocka_unit_test(an_executable_graph_outlives_what_it_was_made_of),
		cmocka_unit_test(a_graph_of_kernels_alone_is_known_to_hold_no_call),
		cmocka_unit_test(a_stream_joins_a_capture_by_waiting_for_it),
		cmocka_unit_test(an_event_recorded_anew_leads_into_no_capture),
		cmocka_unit_test(two_captures_at_a_time_are_two_graphs),
		cmocka_unit_test(a_capture_into_a_graph_comes_behind_what_it_holds),
		cmocka_unit_test(a_child_and_a_captured_launch_bring_their_calls),
		cmocka_unit_test(a_capture_that_fails_or_whose_begin_was_missed_makes_nothing),
		cmocka_unit_test(captures_in_doubt_are_given_up_and_graphs_are_kept),
		cmocka_unit_test(a_graph_makes_so_many_calls_and_no_more),
		cmocka_unit_test(a_process_has_so_many_calls_remembered),
		cmocka_unit_test(handles_have_a_cap),
		cmocka_unit_test(the_oldest_capture_makes_room_for_a_new_one),
		cmocka_unit_test(a_capture_never_makes_room_for_its_own_streams),
		cmocka_unit_test(events_have_a_cap),
		cmocka_unit_test(whatever_happened_all_room_comes_back),
		cmocka_unit_test(a_graph_multiplies_what_its_captures_did),
		cmocka_unit_test(what_one_capture_multiplied_may_be_unknown),
		cmocka_unit_test(a_graph_launched_in_a_capture_leaves_it_unknown),
		cmocka_unit_test(more_types_than_the_cap_leave_it_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
