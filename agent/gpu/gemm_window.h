/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The matrix multiplications of a process in one window: what its totals grew by. */
#ifndef NT_AGENT_GPU_GEMM_WINDOW_H
#define NT_AGENT_GPU_GEMM_WINDOW_H

#include <stdbool.h>

#include "agent/host/gpu_total.h"
#include "bpf/event.h"
#include "proto/wire.h"

struct nt_gemm_window {
	struct nt_gemm gemm[NT_WIRE_MAX_GEMMS];
	struct nt_gemms gemms; /* points there */
	uint64_t unread, over_cap; /* of gemms.unread */
};

/*
 * by_runtime: the launches of the window are the CUDA runtime's, else the driver's. peak_16_bits: in
 * FLOP/s, in place of what is known of the GPU's model; 0: none. gpu: of the process; NULL: unknown.
 */
void nt_gemm_window_fill(const struct nt_gemm_totals *before, const struct nt_gemm_totals *now,
			 bool by_runtime, double peak_16_bits, const struct nt_gpu_total *gpu,
			 struct nt_gemm_window *ret_window);

/*
 * Adds what launches of graphs multiplied to the filled window, and takes away what was captured, as far
 * as the window has that much: the rest stays in `captured` for the next. Clears both else. False: a
 * type found no place.
 */
bool nt_gemm_window_replay(struct nt_gemm_sum *replayed, struct nt_gemm_sum *captured,
			   double peak_16_bits, const struct nt_gpu_total *gpu,
			   struct nt_gemm_window *window);

#endif
