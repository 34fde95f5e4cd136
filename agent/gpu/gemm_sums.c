/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gemm_sums.h"

#include <stddef.h>

static bool is_used(const struct nt_gemm_sum *sum)
{
	return sum->calls && sum->key;
}

bool nt_gemm_sums_are_empty(const struct nt_gemm_sum *sum)
{
	size_t i = 0;

	while (i < NT_GEMM_SUMS && !is_used(&sum[i]))
		i++;
	return i == NT_GEMM_SUMS;
}

bool nt_gemm_sums_add(struct nt_gemm_sum *to, const struct nt_gemm_sum *sum)
{
	bool fits = true;

	for (size_t i = 0; i < NT_GEMM_SUMS; i++) {
		size_t at = 0;

		if (!is_used(&sum[i]))
			continue;
		while (at < NT_GEMM_SUMS && to[at].key && to[at].key != sum[i].key)
			at++;
		if (at == NT_GEMM_SUMS) {
			fits = false;
			continue;
		}
		to[at].key = sum[i].key;
		to[at].calls += sum[i].calls;
		to[at].flops += sum[i].flops;
	}
	return fits;
}
