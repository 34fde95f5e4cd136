/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stand-in for cuBLAS and cuBLASLt: names, arguments, versions and descriptors are those of the
 * real libraries of CUDA 12. A multiplication enqueues a kernel through libcuda, as the real library
 * does, whose runtime is linked statically. What it computes is nothing but its own count.
 */
#ifndef NT_SIM_CUBLAS_H
#define NT_SIM_CUBLAS_H

#include <stddef.h>
#include <stdint.h>

/* cublasStatus_t. */
enum {
	SIM_CUBLAS_SUCCESS = 0,
	SIM_CUBLAS_NOT_INITIALIZED = 1,
	SIM_CUBLAS_ALLOC_FAILED = 3,
	SIM_CUBLAS_INVALID_VALUE = 7,
	SIM_CUBLAS_EXECUTION_FAILED = 13,
};

/* cudaDataType. */
enum {
	SIM_TYPE_F32 = 0,
	SIM_TYPE_F64 = 1,
	SIM_TYPE_F16 = 2,
	SIM_TYPE_I8 = 3,
	SIM_TYPE_C32 = 4,
	SIM_TYPE_C64 = 5,
	SIM_TYPE_BF16 = 14,
	SIM_TYPE_E4M3 = 28,
};

/* cublasComputeType_t. */
enum {
	SIM_COMPUTE_16F = 64,
	SIM_COMPUTE_32F = 68,
	SIM_COMPUTE_64F = 70,
	SIM_COMPUTE_32I = 72,
	SIM_COMPUTE_TF32 = 77,
};

/* Attributes: cublasLtMatmulDescAttributes_t and cublasLtMatrixLayoutAttribute_t. */
enum {
	SIM_LT_TRANSA = 3,
	SIM_LT_TRANSB = 4,
	SIM_LT_BATCH = 5,
};

struct sim_multiplication {
	uint32_t type, compute;
	int64_t m, n, k, batch;
};

/* What this process has computed, by type and compute mode. */
struct sim_ledger_row {
	uint32_t type, compute;
	uint64_t calls, flops;
};

enum {
	SIM_LEDGER_ROWS = 64,
};

/* Exported by libcublasLt: enqueues the kernel, and counts. A cublasStatus_t. */
int cublasSimRun(const struct sim_multiplication *multiplication, void *stream);
/* Exported by libcublasLt: a kernel that computes nothing, such as one that adds up partial results. */
int cublasSimLaunch(uint64_t ns, void *stream);
/* Exported by libcublasLt. Returns how many rows there are. */
size_t cublasSimLedger(const struct sim_ledger_row **ret_row);

/* cublasLt.h */
int cublasLtCreate(void **handle);
int cublasLtDestroy(void *handle);
int cublasLtMatmulDescCreate(void **operation, int compute, int scale_type);
int cublasLtMatmulDescDestroy(void *operation);
int cublasLtMatmulDescSetAttribute(void *operation, int attribute, const void *value, size_t bytes);
int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
			       int64_t ld);
int cublasLtMatrixLayoutDestroy(void *layout);
int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes);
int cublasLtMatmul(void *handle, const void *operation, const void *alpha, const void *a,
		   const void *a_layout, const void *b, const void *b_layout, const void *beta,
		   const void *c, const void *c_layout, void *d, const void *d_layout,
		   const void *algorithm, void *workspace, size_t workspace_bytes, void *stream);

/* cublas_v2.h */
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetStream_v2(void *handle, void *stream);

#endif
