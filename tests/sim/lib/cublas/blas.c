/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libcublas: the multiplications of cublas_v2.h and cublas_api.h, each with its sibling of 64-bit
 * sizes. cublasGemmEx multiplies through cublasLtMatmul, as the real library may, and then adds up.
 */
#include <stdlib.h>

#include "tests/sim/lib/cublas/cublas.h"

enum {
	ADD_UP_NS = 2000,
};

struct handle {
	void *stream, *lt;
};

int cublasCreate_v2(void **ret_handle)
{
	struct handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return SIM_CUBLAS_ALLOC_FAILED;
	if (cublasLtCreate(&handle->lt) != SIM_CUBLAS_SUCCESS) {
		free(handle);
		return SIM_CUBLAS_ALLOC_FAILED;
	}
	*ret_handle = handle;
	return SIM_CUBLAS_SUCCESS;
}

int cublasDestroy_v2(void *at)
{
	struct handle *handle = at;

	(void)cublasLtDestroy(handle->lt);
	free(handle);
	return SIM_CUBLAS_SUCCESS;
}

int cublasSetStream_v2(void *at, void *stream)
{
	((struct handle *)at)->stream = stream;
	return SIM_CUBLAS_SUCCESS;
}

static int run(void *at, int type, int compute, int64_t m, int64_t n, int64_t k, int64_t batch)
{
	const struct handle *handle = at;
	const struct sim_multiplication made = {
		.type = (uint32_t)type,
		.compute = (uint32_t)compute,
		.m = m,
		.n = n,
		.k = k,
		.batch = batch,
	};

	return handle ? cublasSimRun(&made, handle->stream) : SIM_CUBLAS_NOT_INITIALIZED;
}

static int run_lt(void *at, int type, int compute, int64_t m, int64_t n, int64_t k)
{
	const struct handle *handle = at;
	void *operation = NULL, *a = NULL, *b = NULL, *d = NULL;
	int status;

	if (!handle)
		return SIM_CUBLAS_NOT_INITIALIZED;
	if (m < 0 || n < 0 || k < 0)
		return SIM_CUBLAS_INVALID_VALUE;
	if (cublasLtMatmulDescCreate(&operation, compute, SIM_TYPE_F32) ||
	    cublasLtMatrixLayoutCreate(&a, type, (uint64_t)m, (uint64_t)k, m) ||
	    cublasLtMatrixLayoutCreate(&b, type, (uint64_t)k, (uint64_t)n, k) ||
	    cublasLtMatrixLayoutCreate(&d, type, (uint64_t)m, (uint64_t)n, m))
		abort();
	status = cublasLtMatmul(handle->lt, operation, NULL, NULL, a, NULL, b, NULL, NULL, d, NULL,
				d, NULL, NULL, 0, handle->stream);
	if (status == SIM_CUBLAS_SUCCESS)
		status = cublasSimLaunch(ADD_UP_NS, handle->stream);
	(void)cublasLtMatmulDescDestroy(operation);
	(void)cublasLtMatrixLayoutDestroy(a);
	(void)cublasLtMatrixLayoutDestroy(b);
	(void)cublasLtMatrixLayoutDestroy(d);
	return status;
}

/* Arguments that matter to no count. */
#define IGNORE(...)                                                                                \
	(void)(const void *[])                                                                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

#define PLAIN(name, size, type, compute)                                                           \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, size lda, const void *b, size ldb, const void *beta, void *c,      \
		 size ldc);                                                                        \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, size lda, const void *b, size ldb, const void *beta, void *c,      \
		 size ldc)                                                                         \
	{                                                                                          \
		(void)ta, (void)tb, (void)lda, (void)ldb, (void)ldc;                               \
		IGNORE(alpha, a, b, beta, c);                                                      \
		return run(handle, type, compute, m, n, k, 1);                                     \
	}

#define BATCHED(name, size, type, compute)                                                         \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, size lda, const void *b, size ldb, const void *beta, void *c,      \
		 size ldc, size batch);                                                            \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, size lda, const void *b, size ldb, const void *beta, void *c,      \
		 size ldc, size batch)                                                             \
	{                                                                                          \
		(void)ta, (void)tb, (void)lda, (void)ldb, (void)ldc;                               \
		IGNORE(alpha, a, b, beta, c);                                                      \
		return run(handle, type, compute, m, n, k, batch);                                 \
	}

#define STRIDED(name, size, type, compute)                                                         \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, size lda, long long stride_a, const void *b, size ldb,             \
		 long long stride_b, const void *beta, void *c, size ldc, long long stride_c,      \
		 size batch);                                                                      \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, size lda, long long stride_a, const void *b, size ldb,             \
		 long long stride_b, const void *beta, void *c, size ldc, long long stride_c,      \
		 size batch)                                                                       \
	{                                                                                          \
		(void)ta, (void)tb, (void)lda, (void)ldb, (void)ldc;                               \
		(void)stride_a, (void)stride_b, (void)stride_c;                                    \
		IGNORE(alpha, a, b, beta, c);                                                      \
		return run(handle, type, compute, m, n, k, batch);                                 \
	}

#define EACH_TYPE(form, before, after, size)                                                       \
	form(cublasS##before##after, size, SIM_TYPE_F32, SIM_COMPUTE_32F)                          \
		form(cublasD##before##after, size, SIM_TYPE_F64, SIM_COMPUTE_64F)                  \
			form(cublasC##before##after, size, SIM_TYPE_C32, SIM_COMPUTE_32F)          \
				form(cublasZ##before##after, size, SIM_TYPE_C64, SIM_COMPUTE_64F)

/* clang-format off */
#define OF_SIZE(size, _64)                                                                         \
	EACH_TYPE(PLAIN, gemm_v2, _64, size)                                                       \
	PLAIN(cublasHgemm##_64, size, SIM_TYPE_F16, SIM_COMPUTE_16F)                               \
	EACH_TYPE(BATCHED, gemmBatched, _64, size)                                                 \
	BATCHED(cublasHgemmBatched##_64, size, SIM_TYPE_F16, SIM_COMPUTE_16F)                      \
	EACH_TYPE(STRIDED, gemmStridedBatched, _64, size)                                          \
	STRIDED(cublasHgemmStridedBatched##_64, size, SIM_TYPE_F16, SIM_COMPUTE_16F)               \
	TYPED(cublasSgemmEx##_64, size)                                                            \
	EX(cublasGemmEx##_64, size)                                                                \
	BATCHED_EX(cublasGemmBatchedEx##_64, size)                                                 \
	STRIDED_EX(cublasGemmStridedBatchedEx##_64, size)
/* clang-format on */

#define TYPED(name, size)                                                                          \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, int type_a, size lda, const void *b, int type_b, size ldb,         \
		 const void *beta, void *c, int type_c, size ldc);                                 \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, int type_a, size lda, const void *b, int type_b, size ldb,         \
		 const void *beta, void *c, int type_c, size ldc)                                  \
	{                                                                                          \
		(void)ta, (void)tb, (void)lda, (void)ldb, (void)ldc, (void)type_b, (void)type_c;   \
		IGNORE(alpha, a, b, beta, c);                                                      \
		return run(handle, type_a, SIM_COMPUTE_32F, m, n, k, 1);                           \
	}

#define EX(name, size)                                                                             \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, int type_a, size lda, const void *b, int type_b, size ldb,         \
		 const void *beta, void *c, int type_c, size ldc, int compute, int algorithm);     \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, int type_a, size lda, const void *b, int type_b, size ldb,         \
		 const void *beta, void *c, int type_c, size ldc, int compute, int algorithm)      \
	{                                                                                          \
		(void)ta, (void)tb, (void)lda, (void)ldb, (void)ldc, (void)type_b, (void)type_c;   \
		(void)algorithm;                                                                   \
		IGNORE(alpha, a, b, beta, c);                                                      \
		return run_lt(handle, type_a, compute, m, n, k);                                   \
	}

#define BATCHED_EX(name, size)                                                                     \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, int type_a, size lda, const void *b, int type_b, size ldb,         \
		 const void *beta, void *c, int type_c, size ldc, size batch, int compute,         \
		 int algorithm);                                                                   \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, int type_a, size lda, const void *b, int type_b, size ldb,         \
		 const void *beta, void *c, int type_c, size ldc, size batch, int compute,         \
		 int algorithm)                                                                    \
	{                                                                                          \
		(void)ta, (void)tb, (void)lda, (void)ldb, (void)ldc, (void)type_b, (void)type_c;   \
		(void)algorithm;                                                                   \
		IGNORE(alpha, a, b, beta, c);                                                      \
		return run(handle, type_a, compute, m, n, k, batch);                               \
	}

#define STRIDED_EX(name, size)                                                                     \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, int type_a, size lda, long long stride_a, const void *b,           \
		 int type_b, size ldb, long long stride_b, const void *beta, void *c, int type_c,  \
		 size ldc, long long stride_c, size batch, int compute, int algorithm);            \
	int name(void *handle, int ta, int tb, size m, size n, size k, const void *alpha,          \
		 const void *a, int type_a, size lda, long long stride_a, const void *b,           \
		 int type_b, size ldb, long long stride_b, const void *beta, void *c, int type_c,  \
		 size ldc, long long stride_c, size batch, int compute, int algorithm)             \
	{                                                                                          \
		(void)ta, (void)tb, (void)lda, (void)ldb, (void)ldc, (void)type_b, (void)type_c;   \
		(void)algorithm, (void)stride_a, (void)stride_b, (void)stride_c;                   \
		IGNORE(alpha, a, b, beta, c);                                                      \
		return run(handle, type_a, compute, m, n, k, batch);                               \
	}

OF_SIZE(int, )
OF_SIZE(int64_t, _64)
