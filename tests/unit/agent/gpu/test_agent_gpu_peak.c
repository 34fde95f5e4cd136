/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The peaks of GPUs, by the names that NVML gives them. */
#include "agent/gpu/gpu_peak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
	F32 = 0,
	F64 = 1,
	F16 = 2,
	I8 = 3,
	C64 = 5,
	BF16 = 14,
	E4M3 = 28,
	E2M1 = 33,
	COMPUTE_16F = 64,
	COMPUTE_32F = 68,
	COMPUTE_32F_PEDANTIC = 69,
	COMPUTE_64F = 70,
	COMPUTE_FAST_16BF = 75,
	COMPUTE_TF32 = 77,
};

static void assert_peak(const char *model, uint32_t type, uint32_t compute, double tflops)
{
	const double peak = nt_gpu_peak(model, type, compute) / 1e12;

	if (peak < tflops - 1e-6 || peak > tflops + 1e-6)
		fail_msg("%s, type %u, mode %u: %g", model, type, compute, peak);
}

static void models_have_the_peaks_of_their_data_sheets(void **state)
{
	(void)state;
	assert_peak("NVIDIA H100 80GB HBM3", BF16, COMPUTE_32F, 989.4);
	assert_peak("NVIDIA H100 PCIe", BF16, COMPUTE_32F, 756);
	assert_peak("NVIDIA H100 NVL", F16, COMPUTE_32F, 835);
	assert_peak("NVIDIA H200", BF16, COMPUTE_32F, 989.4);
	assert_peak("NVIDIA GH200 480GB", BF16, COMPUTE_32F, 989.4);
	assert_peak("NVIDIA A100-SXM4-80GB", BF16, COMPUTE_32F, 312);
	assert_peak("NVIDIA A100 80GB PCIe", F64, COMPUTE_64F, 19.5);
	assert_peak("NVIDIA B200", E4M3, COMPUTE_32F, 4500);
	assert_peak("NVIDIA GB200", BF16, COMPUTE_32F, 2500);
	assert_peak("Tesla V100-SXM2-32GB", F16, COMPUTE_16F, 125);
	assert_peak("NVIDIA L40S", BF16, COMPUTE_32F, 362);
	assert_peak("NVIDIA L4", BF16, COMPUTE_32F, 121);
}

static void a_name_matches_by_whole_words(void **state)
{
	(void)state;
	assert_peak("NVIDIA A10", BF16, COMPUTE_32F, 125);
	assert_peak("NVIDIA A10G", BF16, COMPUTE_32F, 0);
	assert_peak("NVIDIA L40", BF16, COMPUTE_32F, 0);
	assert_peak("NVIDIA RTX A1000", BF16, COMPUTE_32F, 0);
	assert_peak("NVIDIA H20", BF16, COMPUTE_32F, 148);
	assert_peak("", BF16, COMPUTE_32F, 0);
	assert_peak("NVIDIA GeForce RTX 4090", BF16, COMPUTE_32F, 0);
}

static void the_type_and_the_mode_choose_the_peak(void **state)
{
	const char *h100 = "NVIDIA H100 80GB HBM3";

	(void)state;
	/* The mode of the library, which is not seen, may allow TF32. */
	assert_peak(h100, F32, COMPUTE_32F, 494.7);
	assert_peak(h100, F32, COMPUTE_TF32, 494.7);
	assert_peak(h100, F32, COMPUTE_FAST_16BF, 989.4);
	assert_peak(h100, F32, COMPUTE_32F_PEDANTIC, 0);
	assert_peak(h100, F64, COMPUTE_64F, 67);
	assert_peak(h100, C64, COMPUTE_64F, 67);
	assert_peak(h100, I8, 72, 1978.9);
	assert_peak(h100, E2M1, COMPUTE_32F, 0); /* it has no such units */
	assert_peak(h100, 63, COMPUTE_32F, 0);
	assert_peak(h100, UINT32_MAX, UINT32_MAX, 0);
}

static void a_figure_of_16_bits_gives_those_of_others(void **state)
{
	(void)state;
	assert_true(nt_gpu_peak_by_16_bits(100, BF16, COMPUTE_32F) == 100);
	assert_true(nt_gpu_peak_by_16_bits(100, F32, COMPUTE_32F) == 50);
	assert_true(nt_gpu_peak_by_16_bits(100, E4M3, COMPUTE_32F) == 200);
	assert_true(nt_gpu_peak_by_16_bits(100, E2M1, COMPUTE_32F) == 400);
	assert_true(nt_gpu_peak_by_16_bits(100, F64, COMPUTE_64F) == 0);
	assert_true(nt_gpu_peak_by_16_bits(100, 63, COMPUTE_32F) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_have_the_peaks_of_their_data_sheets),
		cmocka_unit_test(a_name_matches_by_whole_words),
		cmocka_unit_test(the_type_and_the_mode_choose_the_peak),
		cmocka_unit_test(a_figure_of_16_bits_gives_those_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
