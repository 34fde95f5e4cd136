/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The most floating-point operations that a GPU can do in a second, by the name of its model and the
 * type of the operands. Dense figures, without structured sparsity.
 */
#ifndef NT_AGENT_GPU_GPU_PEAK_H
#define NT_AGENT_GPU_GPU_PEAK_H

#include <stdint.h>

/*
 * model: as NVML names it. type, compute: cudaDataType and cublasComputeType_t. 0: unknown.
 *
 * Single precision (CUBLAS_COMPUTE_32F) may run as TF32, which the library's math mode decides and
 * its arguments do not show. Its peak is the higher one.
 */
double nt_gpu_peak(const char *model, uint32_t type, uint32_t compute);

/*
 * The same from the figure of 16-bit types alone: half of it for TF32, twice for 8 bits and four times
 * for 4 bits, as on NVIDIA's GPUs since the A100.
 */
double nt_gpu_peak_by_16_bits(double flops, uint32_t type, uint32_t compute);

#endif
