/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rate of matrix multiplications, and what makes it unknown. */
#include "engine/gpu/gemm_rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND 1000000000ULL
#define END_NS (1763700012 * SECOND)

enum {
	F64 = 1,
	BF16 = 14,
	COMPUTE_32F = 68,
	COMPUTE_64F = 70,
};

static struct nt_gemm gemm[NT_WIRE_MAX_GEMMS + 1];
static struct nt_window window;

/* A second with 100 calls of 10^10 operations each, and 300 other launches. */
static void begin(void)
{
	gemm[0] = (struct nt_gemm){BF16, COMPUTE_32F, 100, 1000000000000, 4e12};
	window = (struct nt_window){
		.start_boot_ns = 5 * SECOND,
		.end_boot_ns = 6 * SECOND,
		.launches = 300,
		.gemms = {.gemm = gemm, .gemms = 1},
	};
}

static struct nt_gemm_rate rate_of(size_t windows)
{
	struct nt_gemm_rate rate = {0};

	for (size_t i = 0; i < windows; i++)
		nt_gemm_rate_add(&rate, &window, END_NS);
	nt_gemm_rate_finish(&rate);
	return rate;
}

static void assert_near(double value, double wanted)
{
	if (value < wanted - 1e-9 * wanted || value > wanted + 1e-9 * wanted)
		fail_msg("%g, not %g", value, wanted);
}

static void a_rate_is_by_the_time_of_all_windows(void **state)
{
	struct nt_gemm_rate rate;

	(void)state;
	begin();
	rate = rate_of(3);
	assert_near(rate.flops, 1e12);
	assert_near(rate.mfu, 0.25);
	assert_int_equal(rate.rows, 1);
	assert_int_equal(rate.row[0].calls, 300);
	assert_near(rate.row[0].flops, 1e12);
	assert_near(rate.row[0].peak_flops, 4e12);
}

static void each_type_has_its_own_peak(void **state)
{
	(void)state;
	begin();
	gemm[1] = (struct nt_gemm){F64, COMPUTE_64F, 10, 100000000000, 1e12};
	window.gemms.gemms = 2;
	assert_near(rate_of(2).flops, 1.1e12);
	assert_near(rate_of(2).mfu, 0.25 + 0.1);
	/* The share of a peak that is not known is not known. */
	gemm[1].peak_flops = 0;
	assert_near(rate_of(2).flops, 1.1e12);
	assert_true(rate_of(2).mfu < 0);
}

static void time_that_was_not_observed_has_no_part(void **state)
{
	struct nt_gemm_rate rate;

	(void)state;
	begin();
	window.unobserved_ns = SECOND / 2;
	assert_near(rate_of(1).flops, 2e12);
	window.unobserved_ns = SECOND;
	rate = rate_of(1);
	assert_true(rate.flops < 0 && rate.mfu < 0);
	window.unobserved_ns = UINT64_MAX;
	assert_true(rate_of(1).flops < 0);
	begin();
	window.end_boot_ns = window.start_boot_ns - 1;
	assert_true(rate_of(1).flops < 0);
	assert_true(rate_of(0).flops < 0);
}

static void calls_that_are_shed_or_captured_leave_the_rate_unknown(void **state)
{
	(void)state;
	begin();
	window.shed = NT_WIRE_SHED_GEMMS;
	assert_true(rate_of(1).flops < 0 && rate_of(1).mfu < 0);
	assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_UNKNOWN);
	begin();
	window.gemms.captures = 1;
	assert_true(rate_of(1).flops < 0 && rate_of(1).mfu < 0);
	assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_UNKNOWN);
	/* Other calls are no part of it. */
	begin();
	window.shed = NT_WIRE_SHED_COPIES;
	assert_near(rate_of(1).flops, 1e12);
	assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_LAUNCHES);
}

/* cuBLAS's launches are the driver's, which are not seen beside a runtime. */
static void a_call_is_a_launch_where_its_launches_are_not_seen(void **state)
{
	(void)state;
	begin();
	assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_LAUNCHES);
	assert_near(rate_of(1).coverage, 0.25);
	/* They are among those of the process: two each, and 100 others. */
	window.gemms.launches = 200;
	assert_near(rate_of(1).coverage, 2.0 / 3);
	/* More inside than there are: counters are read one after the other. */
	window.gemms.launches = 301;
	assert_near(rate_of(1).coverage, 1);
	begin();
	window.gemms.unread = 100;
	assert_near(rate_of(1).coverage, 0.2);
	assert_int_equal(rate_of(1).unread, 100);
	begin();
	window.launches = 0;
	window.gemms.gemms = 0;
	assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_UNKNOWN);
}

static void what_hides_launches_hides_the_coverage(void **state)
{
	static const uint32_t shed[] = {NT_WIRE_SHED_LAUNCHES, NT_WIRE_SHED_FUNCTIONS};

	(void)state;
	for (size_t i = 0; i < sizeof(shed) / sizeof(shed[0]); i++) {
		begin();
		window.shed = shed[i];
		assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_UNKNOWN);
		assert_near(rate_of(1).flops, 1e12);
	}
	begin();
	window.gemms.graph_launches = 1;
	assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_UNKNOWN);
	assert_int_equal(rate_of(2).graph_launches, 2);
	/* What they multiply is known, but not what else they launch. */
	window.gemms.graph_launches = 5;
	window.gemms.graph_launches_read = 4;
	assert_int_equal(rate_of(2).graph_launches, 2);
	window.gemms.graph_launches_read = 5;
	assert_int_equal(rate_of(2).graph_launches, 0);
	assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_UNKNOWN);
	window.gemms.graph_launches_read = 6;
	assert_int_equal(rate_of(1).graph_launches, 0);
	assert_near(rate_of(1).flops, 1e12);
	begin();
	window.lost = 1;
	assert_int_equal(rate_of(1).coverage_of, NT_GEMM_COVERAGE_UNKNOWN);
}

/* A message has no more, but the windows of a frame may differ. */
static void more_types_than_rows_leave_the_sum_unknown(void **state)
{
	struct nt_gemm_rate rate = {0};

	(void)state;
	begin();
	window.gemms.gemms = NT_WIRE_MAX_GEMMS;
	for (uint32_t i = 0; i < NT_WIRE_MAX_GEMMS + 1; i++)
		gemm[i] = (struct nt_gemm){i, COMPUTE_32F, 1, 1, 1};
	nt_gemm_rate_add(&rate, &window, END_NS);
	nt_gemm_rate_finish(&rate);
	assert_near(rate.flops, 16);
	rate = (struct nt_gemm_rate){0};
	nt_gemm_rate_add(&rate, &window, END_NS);
	window.gemms.gemm = gemm + 1;
	nt_gemm_rate_add(&rate, &window, END_NS);
	nt_gemm_rate_finish(&rate);
	assert_int_equal(rate.rows, NT_WIRE_MAX_GEMMS);
	assert_true(rate.flops < 0 && rate.mfu < 0);
}

/* A frame of one such window that ended at end_ns. */
static void add_frame(struct nt_gemm_rate *rate, uint64_t gpu_ns, uint64_t inside_ns,
		      uint64_t end_ns)
{
	window.gemms.gpu_ns = gpu_ns;
	window.gemms.gpu_inside_ns = inside_ns;
	nt_gemm_rate_begin(rate);
	nt_gemm_rate_add(rate, &window, end_ns);
	nt_gemm_rate_finish(rate);
}

static void the_share_of_gpu_time_is_that_of_the_last_measurement(void **state)
{
	struct nt_gemm_rate rate = {0};

	(void)state;
	begin();
	add_frame(&rate, 0, 0, END_NS);
	assert_true(rate.gpu.ns == 0);
	/* Three seconds in a row are one measurement. */
	for (uint64_t i = 1; i <= 3; i++)
		add_frame(&rate, 1000, 200 * i, END_NS + i * SECOND);
	assert_near(rate.gpu.ns, 3000);
	assert_near(rate.gpu.inside_ns, 1200);
	assert_int_equal(rate.gpu.end_ns, END_NS + 3 * SECOND);
	/* It stays until the next one, which begins anew. The rate is that of the frame. */
	add_frame(&rate, 0, 0, END_NS + 4 * SECOND);
	assert_near(rate.gpu.ns, 3000);
	assert_int_equal(rate.gpu.end_ns, END_NS + 3 * SECOND);
	assert_near(rate.flops, 1e12);
	add_frame(&rate, 500, 100, END_NS + 30 * SECOND);
	assert_near(rate.gpu.ns, 500);
	assert_near(rate.gpu.inside_ns, 100);
	assert_int_equal(rate.gpu.end_ns, END_NS + 30 * SECOND);
	/* It needs neither launches nor graphs. */
	window.gemms.captures = window.gemms.graph_launches = window.lost = 1;
	add_frame(&rate, 500, 300, END_NS + 31 * SECOND);
	assert_near(rate.gpu.inside_ns, 400);
}

static void calls_that_are_not_observed_leave_the_share_of_gpu_time_as_it_was(void **state)
{
	static const uint32_t shed[] = {NT_WIRE_SHED_GEMMS, NT_WIRE_SHED_FUNCTIONS};

	(void)state;
	for (size_t i = 0; i < sizeof(shed) / sizeof(shed[0]); i++) {
		struct nt_gemm_rate rate = {0};

		begin();
		window.shed = shed[i];
		add_frame(&rate, 1000, 100, END_NS);
		assert_true(rate.gpu.ns == 0);
		begin();
		add_frame(&rate, 1000, 100, END_NS);
		window.shed = shed[i];
		add_frame(&rate, 1000, 900, END_NS + SECOND);
		assert_near(rate.gpu.inside_ns, 100);
		assert_int_equal(rate.gpu.end_ns, END_NS);
		/* A part is no more than the whole. */
		begin();
		add_frame(&rate, 1000, 1001, END_NS + 2 * SECOND);
		assert_near(rate.gpu.inside_ns, 100);
	}
}

/* A program that changes shows after a minute or two of the same measurement. */
static void a_long_measurement_forgets(void **state)
{
	struct nt_gemm_rate rate = {0};

	(void)state;
	begin();
	for (int i = 0; i < 1000; i++)
		add_frame(&rate, SECOND, SECOND, END_NS);
	for (int i = 0; i < 200; i++)
		add_frame(&rate, SECOND, 0, END_NS);
	assert_true(rate.gpu.inside_ns < 0.1 * rate.gpu.ns);
	assert_true(rate.gpu.ns > 30e9 && rate.gpu.ns < 62e9);
}

static void types_and_modes_have_the_names_of_their_header(void **state)
{
	(void)state;
	assert_string_equal(nt_gemm_type_name(0), "f32");
	assert_string_equal(nt_gemm_type_name(BF16), "bf16");
	assert_string_equal(nt_gemm_type_name(28), "e4m3");
	assert_string_equal(nt_gemm_type_name(33), "e2m1");
	assert_null(nt_gemm_type_name(27));
	assert_null(nt_gemm_type_name(34));
	assert_null(nt_gemm_type_name(UINT32_MAX));
	assert_string_equal(nt_gemm_compute_name(64), "16f");
	assert_string_equal(nt_gemm_compute_name(68), "32f");
	assert_string_equal(nt_gemm_compute_name(70), "64f");
	assert_string_equal(nt_gemm_compute_name(72), "32i");
	assert_string_equal(nt_gemm_compute_name(74), "32f-fast-16f");
	assert_string_equal(nt_gemm_compute_name(77), "32f-fast-tf32");
	assert_null(nt_gemm_compute_name(76));
	assert_null(nt_gemm_compute_name(78));
	assert_null(nt_gemm_compute_name(63));
	assert_null(nt_gemm_compute_name(UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_is_by_the_time_of_all_windows),
		cmocka_unit_test(each_type_has_its_own_peak),
		cmocka_unit_test(time_that_was_not_observed_has_no_part),
		cmocka_unit_test(calls_that_are_shed_or_captured_leave_the_rate_unknown),
		cmocka_unit_test(a_call_is_a_launch_where_its_launches_are_not_seen),
		cmocka_unit_test(what_hides_launches_hides_the_coverage),
		cmocka_unit_test(more_types_than_rows_leave_the_sum_unknown),
		cmocka_unit_test(the_share_of_gpu_time_is_that_of_the_last_measurement),
		cmocka_unit_test(calls_that_are_not_observed_leave_the_share_of_gpu_time_as_it_was),
		cmocka_unit_test(a_long_measurement_forgets),
		cmocka_unit_test(types_and_modes_have_the_names_of_their_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
