/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rate of a rank's matrix multiplications in the windows of one frame, and how much of the
 * process's work on its GPU they are. A figure that what was not observed would change is unknown.
 */
#ifndef NT_ENGINE_RATES_GEMM_RATE_H
#define NT_ENGINE_RATES_GEMM_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

enum nt_gemm_coverage {
	NT_GEMM_COVERAGE_UNKNOWN,
	NT_GEMM_COVERAGE_LAUNCHES, /* `coverage` is a share of the kernel launches that are seen */
};

/*
 * The part of its kernels' time that these calls are, in the last measurement: the frames in a row in
 * which kernels were reported. Of a long one, the last minute or so.
 */
struct nt_gemm_gpu_share {
	double ns, inside_ns; /* of kernels that do not communicate; 0: never measured */
	uint64_t end_ns; /* of its last window, real time */
	bool is_open; /* the last frame was part of it */
};

struct nt_gemm_rate_row {
	uint32_t type, compute; /* cudaDataType, cublasComputeType_t */
	uint64_t calls; /* in the frame */
	double flops, peak_flops; /* in a second; peak 0: unknown */
};

struct nt_gemm_rate {
	double flops; /* in a second; negative: unknown */
	double mfu; /* share of the peak of its GPUs; negative: unknown */
	double coverage;
	struct nt_gemm_gpu_share gpu;
	enum nt_gemm_coverage coverage_of;
	uint64_t unread; /* calls whose operations are not known */
	uint64_t graph_launches; /* whose operations are not known */
	struct nt_gemm_rate_row row[NT_WIRE_MAX_GEMMS];
	size_t rows;
	/* While windows are added. */
	uint64_t observed_ns, launches, launches_inside, captures, lost;
	uint64_t gpu_ns, gpu_inside_ns, gpu_end_ns, all_graph_launches;
	uint32_t shed;
	bool is_capped; /* there are more types and modes than rows */
};

/* Before the first window of a frame. A new rate is zeroed. */
void nt_gemm_rate_begin(struct nt_gemm_rate *rate);
/* Adds a window, which ended at end_ns, real time. */
void nt_gemm_rate_add(struct nt_gemm_rate *rate, const struct nt_window *window, uint64_t end_ns);
/* After the last window. */
void nt_gemm_rate_finish(struct nt_gemm_rate *rate);

/* "bf16", "e4m3"; NULL: a number without a name. */
const char *nt_gemm_type_name(uint32_t type);
/* "32f", "32f-fast-tf32"; NULL: as above. */
const char *nt_gemm_compute_name(uint32_t compute);

#endif
