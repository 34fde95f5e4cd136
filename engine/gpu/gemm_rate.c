/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gpu/gemm_rate.h"

static const double FORGET_NS =
	60e9; /* of kernels, after which a measurement forgets half of them */

static struct nt_gemm_rate_row *row_of(struct nt_gemm_rate *rate, const struct nt_gemm *gemm)
{
	size_t i = 0;

	while (i < rate->rows &&
	       (rate->row[i].type != gemm->type || rate->row[i].compute != gemm->compute))
		i++;
	if (i == NT_WIRE_MAX_GEMMS)
		return NULL;
	if (i == rate->rows)
		rate->row[rate->rows++] = (struct nt_gemm_rate_row){
			.type = gemm->type,
			.compute = gemm->compute,
		};
	return &rate->row[i];
}

void nt_gemm_rate_begin(struct nt_gemm_rate *rate)
{
	*rate = (struct nt_gemm_rate){.gpu = rate->gpu};
}

void nt_gemm_rate_add(struct nt_gemm_rate *rate, const struct nt_window *window, uint64_t end_ns)
{
	const struct nt_gemms *gemms = &window->gemms;
	const uint64_t length_ns = window->end_boot_ns - window->start_boot_ns;

	if (window->end_boot_ns <= window->start_boot_ns)
		return;
	if (window->unobserved_ns < length_ns)
		rate->observed_ns += length_ns - window->unobserved_ns;
	rate->launches += window->launches;
	rate->launches_inside += gemms->launches;
	rate->captures += gemms->captures;
	rate->all_graph_launches += gemms->graph_launches;
	if (gemms->graph_launches_read < gemms->graph_launches)
		rate->graph_launches += gemms->graph_launches - gemms->graph_launches_read;
	rate->unread += gemms->unread;
	rate->lost += window->lost;
	rate->shed |= window->shed;
	rate->gpu_ns += gemms->gpu_ns;
	rate->gpu_inside_ns += gemms->gpu_inside_ns;
	rate->gpu_end_ns = gemms->gpu_ns ? end_ns : rate->gpu_end_ns;
	for (size_t i = 0; i < gemms->gemms; i++) {
		struct nt_gemm_rate_row *row = row_of(rate, &gemms->gemm[i]);

		if (!row) {
			rate->is_capped = true;
			continue;
		}
		row->calls += gemms->gemm[i].calls;
		row->flops += (double)gemms->gemm[i].flops;
		/* Of the last window: the driver may be read late. */
		row->peak_flops = gemms->gemm[i].peak_flops;
	}
}

/*
 * cuBLAS has a CUDA runtime of its own, so that its launches are seen as the driver's alone. Where they
 * are not seen, a call is one launch. What a graph launches, and whether it holds a call, is unknown.
 */
static void cover(struct nt_gemm_rate *rate)
{
	uint64_t covered = 0, others;

	if (rate->all_graph_launches || rate->captures || rate->lost ||
	    rate->shed & (NT_WIRE_SHED_LAUNCHES | NT_WIRE_SHED_GEMMS | NT_WIRE_SHED_FUNCTIONS))
		return;
	for (size_t i = 0; i < rate->rows; i++)
		covered += rate->row[i].calls;
	if (rate->launches_inside > covered)
		covered = rate->launches_inside;
	others =
		rate->launches > rate->launches_inside ? rate->launches - rate->launches_inside : 0;
	others += rate->unread;
	if (!covered && !others)
		return;
	rate->coverage = (double)covered / ((double)covered + (double)others);
	rate->coverage_of = NT_GEMM_COVERAGE_LAUNCHES;
}

/* Calls that are not observed have kernels as well. */
static void measure(struct nt_gemm_rate *rate)
{
	struct nt_gemm_gpu_share *gpu = &rate->gpu;

	if (!rate->gpu_ns || rate->gpu_inside_ns > rate->gpu_ns ||
	    rate->shed & (NT_WIRE_SHED_GEMMS | NT_WIRE_SHED_FUNCTIONS)) {
		gpu->is_open = false;
		return;
	}
	if (!gpu->is_open)
		*gpu = (struct nt_gemm_gpu_share){.is_open = true};
	if (gpu->ns > FORGET_NS) {
		gpu->ns /= 2;
		gpu->inside_ns /= 2;
	}
	gpu->ns += (double)rate->gpu_ns;
	gpu->inside_ns += (double)rate->gpu_inside_ns;
	gpu->end_ns = rate->gpu_end_ns;
}

void nt_gemm_rate_finish(struct nt_gemm_rate *rate)
{
	const double seconds = (double)rate->observed_ns / 1e9;
	/* Captured calls count without running; those that are not observed do not count. */
	const bool is_known = rate->observed_ns && !rate->captures && !rate->is_capped &&
			      !(rate->shed & NT_WIRE_SHED_GEMMS);
	bool has_peaks = rate->rows > 0;
	double flops = 0, share = 0;

	for (size_t i = 0; i < rate->rows && rate->observed_ns; i++) {
		struct nt_gemm_rate_row *row = &rate->row[i];

		row->flops /= seconds;
		flops += row->flops;
		has_peaks = has_peaks && row->peak_flops > 0;
		share += row->peak_flops > 0 ? row->flops / row->peak_flops : 0;
	}
	rate->flops = is_known ? flops : -1;
	rate->mfu = is_known && has_peaks ? share : -1;
	cover(rate);
	measure(rate);
}

const char *nt_gemm_type_name(uint32_t type)
{
	static const char *const names[] = {
		[0] = "f32",   [1] = "f64",   [2] = "f16",   [3] = "i8",    [4] = "c32",
		[5] = "c64",   [6] = "c16",   [8] = "u8",    [10] = "i32",  [14] = "bf16",
		[15] = "cb16", [28] = "e4m3", [29] = "e5m2", [33] = "e2m1",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

const char *nt_gemm_compute_name(uint32_t compute)
{
	enum { FIRST = 64 };
	static const char *const names[] = {
		"16f", "16f-pedantic",  NULL,  NULL,           "32f",          "32f-pedantic",
		"64f", "64f-pedantic",  "32i", "32i-pedantic", "32f-fast-16f", "32f-fast-16bf",
		NULL,  "32f-fast-tf32",
	};

	return compute >= FIRST && compute - FIRST < sizeof(names) / sizeof(names[0])
		       ? names[compute - FIRST]
		       : NULL;
}
