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

/* NULL: there is no place left. */
static struct nt_gemm *row_of(struct nt_gemm_window *window, uint32_t key, double peak_16_bits,
			      const struct nt_gpu_total *gpu)
{
	const uint32_t type = NT_GEMM_TYPE(key), compute = NT_GEMM_COMPUTE(key);
	size_t i = 0;

	while (i < window->gemms.gemms &&
	       (window->gemm[i].type != type || window->gemm[i].compute != compute))
		i++;
	if (i == NT_WIRE_MAX_GEMMS)
		return NULL;
	if (i == window->gemms.gemms) {
		window->gemm[i] = (struct nt_gemm){
			.type = type,
			.compute = compute,
			.peak_flops = peak_of(peak_16_bits, gpu, type, compute),
		};
		window->gemms.gemms++;
	}
	return &window->gemm[i];
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void take_away(struct nt_gemm *gemm, struct nt_gemm_sum *captured)
{
	const uint64_t calls = smaller(gemm->calls, captured->calls);
	const uint64_t flops = smaller(gemm->flops, captured->flops);

	gemm->calls -= calls;
	captured->calls -= calls;
	gemm->flops -= flops;
	captured->flops -= flops;
}

static void drop_empty(struct nt_gemm_window *window)
{
	size_t left = 0;

	for (size_t i = 0; i < window->gemms.gemms; i++)
		if (window->gemm[i].calls)
			window->gemm[left++] = window->gemm[i];
	window->gemms.gemms = left;
}

bool nt_gemm_window_replay(struct nt_gemm_sum *replayed, struct nt_gemm_sum *captured,
			   double peak_16_bits, const struct nt_gpu_total *gpu,
			   struct nt_gemm_window *window)
{
	bool fits = true;

	for (size_t i = 0; i < NT_GEMM_SUMS && replayed[i].key; i++) {
		struct nt_gemm *gemm = row_of(window, replayed[i].key, peak_16_bits, gpu);

		if (gemm) {
			gemm->calls += replayed[i].calls;
			gemm->flops += replayed[i].flops;
		}
		fits = fits && gemm;
		replayed[i] = (struct nt_gemm_sum){0};
	}
	for (size_t i = 0; i < NT_GEMM_SUMS && captured[i].key; i++)
		for (size_t j = 0; j < window->gemms.gemms; j++)
			if (NT_GEMM_KEY(window->gemm[j].type, window->gemm[j].compute) ==
			    captured[i].key)
				take_away(&window->gemm[j], &captured[i]);
	drop_empty(window);
	return fits;
}
