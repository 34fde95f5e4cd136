/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the totals of matrix multiplications grew by in a window. */
#include "agent/gpu/gemm_window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
	F64 = 1,
	BF16 = 14,
	COMPUTE_32F = 68,
	COMPUTE_64F = 70,
};

static const struct nt_gpu_total h100 = {.cards = 1, .model = "NVIDIA H100 80GB HBM3"};

static struct nt_gemm_totals totals(uint64_t calls, uint64_t flops)
{
	return (struct nt_gemm_totals){
		.sum = {{.key = NT_GEMM_KEY(BF16, COMPUTE_32F), .calls = calls, .flops = flops},
			{.key = NT_GEMM_KEY(F64, COMPUTE_64F), .calls = 7, .flops = 70}},
		.unread = 3,
		.over_cap = 2,
		.launches = calls,
		.driver_launches = 2 * calls,
	};
}

static void a_window_has_what_the_totals_grew_by(void **state)
{
	const struct nt_gemm_totals before = totals(10, 1000);
	struct nt_gemm_totals now = totals(25, 4000);
	struct nt_gemm_window window;

	(void)state;
	now.unread += 5;
	now.over_cap += 1;
	nt_gemm_window_fill(&before, &now, false, 0, &h100, &window);
	assert_int_equal(window.gemms.gemms, 1); /* the other has no calls since */
	assert_ptr_equal(window.gemms.gemm, window.gemm);
	assert_int_equal(window.gemm[0].type, BF16);
	assert_int_equal(window.gemm[0].compute, COMPUTE_32F);
	assert_int_equal(window.gemm[0].calls, 15);
	assert_int_equal(window.gemm[0].flops, 3000);
	assert_true(window.gemm[0].peak_flops == 989.4e12);
	assert_int_equal(window.gemms.unread, 6);
	assert_int_equal(window.unread, 5);
	assert_int_equal(window.over_cap, 1);
	assert_int_equal(window.gemms.launches, 30);
	nt_gemm_window_fill(&before, &now, true, 0, &h100, &window);
	assert_int_equal(window.gemms.launches, 15);
}

/* Another program in the same process: its totals are its own, and their places as well. */
static void totals_that_began_anew_are_no_differences(void **state)
{
	const struct nt_gemm_totals before = totals(10, 1000);
	struct nt_gemm_totals now = totals(4, 400);
	struct nt_gemm_window window;

	(void)state;
	now.sum[1] = (struct nt_gemm_sum){
		.key = NT_GEMM_KEY(BF16, COMPUTE_64F), .calls = 2, .flops = 20};
	nt_gemm_window_fill(&before, &now, true, 0, NULL, &window);
	assert_int_equal(window.gemms.gemms, 2);
	assert_int_equal(window.gemm[0].calls, 4);
	assert_int_equal(window.gemm[0].flops, 400);
	assert_int_equal(window.gemm[1].calls, 2);
	assert_int_equal(window.gemm[1].flops, 20);
}

static void operations_go_on_beyond_64_bits(void **state)
{
	const struct nt_gemm_totals before = totals(10, UINT64_MAX - 99);
	const struct nt_gemm_totals now = totals(12, 300);
	struct nt_gemm_window window;

	(void)state;
	nt_gemm_window_fill(&before, &now, true, 0, NULL, &window);
	assert_int_equal(window.gemm[0].calls, 2);
	assert_int_equal(window.gemm[0].flops, 400);
}

static void the_peak_is_that_of_all_cards_of_the_process(void **state)
{
	const struct nt_gemm_totals before = {0}, now = totals(1, 1);
	struct nt_gpu_total gpu = h100;
	struct nt_gemm_window window;

	(void)state;
	gpu.cards = 2;
	nt_gemm_window_fill(&before, &now, true, 0, &gpu, &window);
	assert_true(window.gemm[0].peak_flops == 2 * 989.4e12);
	*gpu.model = '\0';
	nt_gemm_window_fill(&before, &now, true, 0, &gpu, &window);
	assert_true(window.gemm[0].peak_flops == 0);
	nt_gemm_window_fill(&before, &now, true, 1e14, &gpu, &window);
	assert_true(window.gemm[0].peak_flops == 2e14);
	/* Where nothing is known of the cards, it is one. */
	nt_gemm_window_fill(&before, &now, true, 1e14, NULL, &window);
	assert_true(window.gemm[0].peak_flops == 1e14);
	nt_gemm_window_fill(&before, &now, true, 0, NULL, &window);
	assert_true(window.gemm[0].peak_flops == 0);
}

static void a_full_table_fits(void **state)
{
	struct nt_gemm_totals before = {0}, now = {0};
	struct nt_gemm_window window;

	(void)state;
	for (uint32_t i = 0; i < NT_GEMM_SUMS; i++)
		now.sum[i] = (struct nt_gemm_sum){
			.key = NT_GEMM_KEY(i, COMPUTE_32F), .calls = i + 1, .flops = UINT64_MAX};
	nt_gemm_window_fill(&before, &now, true, 0, NULL, &window);
	assert_int_equal(window.gemms.gemms, NT_WIRE_MAX_GEMMS);
	assert_int_equal(window.gemm[NT_GEMM_SUMS - 1].calls, NT_GEMM_SUMS);
}

static void launches_of_graphs_add_and_captured_calls_do_not_count(void **state)
{
	const struct nt_gemm_totals before = totals(10, 1000);
	struct nt_gemm_sum replayed[NT_GEMM_SUMS] = {
		{.key = NT_GEMM_KEY(BF16, COMPUTE_32F), .calls = 100, .flops = 20000},
		{.key = NT_GEMM_KEY(F64, COMPUTE_64F), .calls = 1, .flops = 10},
	};
	struct nt_gemm_sum captured[NT_GEMM_SUMS] = {
		{.key = NT_GEMM_KEY(BF16, COMPUTE_32F), .calls = 4, .flops = 800}};
	struct nt_gemm_totals now = totals(25, 4000);
	struct nt_gemm_window window;

	(void)state;
	nt_gemm_window_fill(&before, &now, false, 0, &h100, &window);
	assert_true(nt_gemm_window_replay(replayed, captured, 0, &h100, &window));
	assert_int_equal(window.gemms.gemms, 2);
	assert_int_equal(window.gemm[0].calls, 15 + 100 - 4);
	assert_int_equal(window.gemm[0].flops, 3000 + 20000 - 800);
	assert_int_equal(window.gemm[1].type, F64);
	assert_int_equal(window.gemm[1].calls, 1);
	assert_true(window.gemm[1].peak_flops == 67e12);
	/* Once. */
	nt_gemm_window_fill(&before, &now, false, 0, &h100, &window);
	assert_true(nt_gemm_window_replay(replayed, captured, 0, &h100, &window));
	assert_int_equal(window.gemms.gemms, 1);
	assert_int_equal(window.gemm[0].calls, 15);
	assert_int_equal(window.gemm[0].flops, 3000);
}

/* They may be read after the totals that have them. */
static void captured_calls_that_a_window_has_not_wait_for_the_next(void **state)
{
	const struct nt_gemm_totals before = totals(10, 1000);
	struct nt_gemm_sum replayed[NT_GEMM_SUMS] = {0};
	struct nt_gemm_sum captured[NT_GEMM_SUMS] = {
		{.key = NT_GEMM_KEY(BF16, COMPUTE_32F), .calls = 20, .flops = 3100}};
	struct nt_gemm_totals now = totals(25, 4000);
	struct nt_gemm_window window;

	(void)state;
	nt_gemm_window_fill(&before, &now, false, 0, &h100, &window);
	assert_true(nt_gemm_window_replay(replayed, captured, 0, &h100, &window));
	assert_int_equal(window.gemms.gemms, 0);
	nt_gemm_window_fill(&before, &now, false, 0, &h100, &window);
	assert_true(nt_gemm_window_replay(replayed, captured, 0, &h100, &window));
	assert_int_equal(window.gemm[0].calls, 10);
	assert_int_equal(window.gemm[0].flops, 2900);
}

static void graphs_with_more_types_than_a_window_has_are_told(void **state)
{
	struct nt_gemm_sum replayed[NT_GEMM_SUMS], captured[NT_GEMM_SUMS] = {0};
	const struct nt_gemm_totals before = totals(10, 1000);
	struct nt_gemm_totals now = totals(25, 4000);
	struct nt_gemm_window window;

	(void)state;
	for (uint32_t i = 0; i < NT_GEMM_SUMS; i++)
		replayed[i] = (struct nt_gemm_sum){
			.key = NT_GEMM_KEY(20 + i, COMPUTE_32F), .calls = 1, .flops = 1};
	nt_gemm_window_fill(&before, &now, false, 0, &h100, &window);
	assert_false(nt_gemm_window_replay(replayed, captured, 0, &h100, &window));
	assert_int_equal(window.gemms.gemms, NT_WIRE_MAX_GEMMS);
	assert_int_equal(replayed[NT_GEMM_SUMS - 1].key, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_has_what_the_totals_grew_by),
		cmocka_unit_test(totals_that_began_anew_are_no_differences),
		cmocka_unit_test(operations_go_on_beyond_64_bits),
		cmocka_unit_test(the_peak_is_that_of_all_cards_of_the_process),
		cmocka_unit_test(a_full_table_fits),
		cmocka_unit_test(launches_of_graphs_add_and_captured_calls_do_not_count),
		cmocka_unit_test(captured_calls_that_a_window_has_not_wait_for_the_next),
		cmocka_unit_test(graphs_with_more_types_than_a_window_has_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
