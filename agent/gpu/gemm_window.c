/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gemm_window.h"

#include "agent/gpu/gpu_peak.h"

_Static_assert((int)NT_GEMM_SUMS == (int)NT_WIRE_MAX_GEMMS, "all of them fit into a message");

/* Of a process that runs another program by now, the totals are smaller. */
static uint64_t grown(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

static double peak_of(double peak_16_bits, const struct nt_gpu_total *gpu, uint32_t type,
		      uint32_t compute)
{
	const double cards = gpu && gpu->cards ? gpu->cards : 1;

	if (peak_16_bits > 0)
		return cards * nt_gpu_peak_by_16_bits(peak_16_bits, type, compute);
	return gpu ? cards * nt_gpu_peak(gpu->model, type, compute) : 0;
}

void nt_gemm_window_fill(const struct nt_gemm_totals *before, const struct nt_gemm_totals *now,
			 bool by_runtime, double peak_16_bits, const struct nt_gpu_total *gpu,
			 struct nt_gemm_window *ret_window)
{
	struct nt_gemms *gemms = &ret_window->gemms;

	*gemms = (struct nt_gemms){.gemm = ret_window->gemm};
	for (size_t i = 0; i < NT_GEMM_SUMS && now->sum[i].key; i++) {
		const struct nt_gemm_sum *sum = &now->sum[i];
		const bool is_same = before->sum[i].key == sum->key;
		struct nt_gemm gemm = {
			.type = NT_GEMM_TYPE(sum->key),
			.compute = NT_GEMM_COMPUTE(sum->key),
			.calls = grown(is_same ? before->sum[i].calls : 0, sum->calls),
			.flops = sum->flops,
		};

		/* They exceed 64 bits after hours; calls do not. */
		if (is_same && sum->calls >= before->sum[i].calls)
			gemm.flops -= before->sum[i].flops;
		if (!gemm.calls)
			continue;
		gemm.peak_flops = peak_of(peak_16_bits, gpu, gemm.type, gemm.compute);
		ret_window->gemm[gemms->gemms++] = gemm;
	}
	gemms->launches = by_runtime ? grown(before->launches, now->launches)
				     : grown(before->driver_launches, now->driver_launches);
	ret_window->unread = grown(before->unread, now->unread);
	ret_window->over_cap = grown(before->over_cap, now->over_cap);
	gemms->unread = ret_window->unread + ret_window->over_cap;
}
