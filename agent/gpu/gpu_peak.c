/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_peak.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum peak_kind {
	KIND_64,
	KIND_32, /* TF32, where the GPU has it */
	KIND_16,
	KIND_8, /* floating-point or integer */
	KIND_4,
	KINDS,
	KIND_UNKNOWN = KINDS,
};

/* In TFLOP/s; 0: the GPU has no such units, or the figure is not published. */
struct peak {
	const char *model; /* a word, or words, of the name; the first that matches is used */
	double tflops[KINDS];
};

/* NVIDIA's data sheets. They print figures with sparsity from the H100 on; these are half of them. */
static const struct peak peaks[] = {
	{"GB200", {40, 1250, 2500, 5000, 10000}}, /* GB200 NVL72, a 72nd of the rack */
	{"B200", {37, 1125, 2250, 4500, 9000}}, /* HGX B200, an eighth of the board */
	{"H200 NVL", {60, 417.5, 835, 1670, 0}},
	{"H200", {67, 494.7, 989.4, 1978.9, 0}},
	{"GH200", {67, 494.7, 989.4, 1978.9, 0}},
	{"H100 PCIe", {51, 378, 756, 1513, 0}},
	{"H100 NVL", {60, 417.5, 835, 1670, 0}},
	{"H100", {67, 494.7, 989.4, 1978.9, 0}}, /* SXM */
	{"H20", {1, 74, 148, 296, 0}},
	{"L40S", {0, 183, 362, 733, 0}},
	{"L4", {0, 60, 121, 242, 0}},
	{"A100", {19.5, 156, 312, 624, 0}},
	{"A800", {9.7, 156, 312, 624, 0}},
	{"A30", {10.3, 82, 165, 330, 0}},
	{"A10", {0, 62.5, 125, 250, 0}},
	{"V100", {7.8, 15.7, 125, 0, 0}}, /* SXM2 */
};

/* library_types.h and cublas_api.h. */
enum {
	TYPE_F32 = 0,
	TYPE_F64 = 1,
	TYPE_F16 = 2,
	TYPE_I8 = 3,
	TYPE_C32 = 4,
	TYPE_C64 = 5,
	TYPE_BF16 = 14,
	TYPE_E4M3 = 28,
	TYPE_E5M2 = 29,
	TYPE_E2M1 = 33,
	COMPUTE_32F = 68,
	COMPUTE_32F_FAST_16F = 74,
	COMPUTE_32F_FAST_16BF = 75,
	COMPUTE_32F_FAST_TF32 = 77,
};

static enum peak_kind kind_of(uint32_t type, uint32_t compute)
{
	switch (type) {
	case TYPE_F64:
	case TYPE_C64:
		return KIND_64;
	case TYPE_F32:
	case TYPE_C32:
		if (compute == COMPUTE_32F || compute == COMPUTE_32F_FAST_TF32)
			return KIND_32;
		return compute == COMPUTE_32F_FAST_16F || compute == COMPUTE_32F_FAST_16BF
			       ? KIND_16
			       : KIND_UNKNOWN;
	case TYPE_F16:
	case TYPE_BF16:
		return KIND_16;
	case TYPE_I8:
	case TYPE_E4M3:
	case TYPE_E5M2:
		return KIND_8;
	case TYPE_E2M1:
		return KIND_4;
	default:
		return KIND_UNKNOWN;
	}
}

/* True if the words stand in the name by themselves: "A10" is not in "A100". */
static bool has_words(const char *name, const char *words)
{
	const size_t len = strlen(words);

	for (const char *at = strstr(name, words); at; at = strstr(at + 1, words))
		if ((at == name || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[len]))
			return true;
	return false;
}

double nt_gpu_peak(const char *model, uint32_t type, uint32_t compute)
{
	const enum peak_kind kind = kind_of(type, compute);

	for (size_t i = 0; kind != KIND_UNKNOWN && i < sizeof(peaks) / sizeof(peaks[0]); i++)
		if (has_words(model, peaks[i].model))
			return peaks[i].tflops[kind] * 1e12;
	return 0;
}

double nt_gpu_peak_by_16_bits(double flops, uint32_t type, uint32_t compute)
{
	static const double factor[KINDS] = {
		[KIND_32] = 0.5, [KIND_16] = 1, [KIND_8] = 2, [KIND_4] = 4};
	const enum peak_kind kind = kind_of(type, compute);

	return kind == KIND_UNKNOWN ? 0 : flops * factor[kind];
}
