/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libcublasLt: descriptors, the multiplication by them, and the ledger. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/cublas/cublas.h"
#include "tests/sim/lib/cuda.h"
#include "tests/sim/lib/standin.h"

/* As the real library lays them out, from 11.11 to 13.10. */
struct layout {
	uint32_t type, order;
	uint64_t rows, columns, ld;
	uint32_t batch, mode;
	uint64_t stride, reserved[2];
};

struct operation {
	uint64_t version;
	uint32_t compute, scale_type;
	uint32_t pointer_mode, transposes_a;
	uint32_t transposes_b, transposes_c;
	uint64_t reserved[28];
};

static const struct sim_function timed = {.magic = SIM_FUNCTION_MAGIC,
					  .kind = SIM_FUNCTION_TIMED,
					  .name = "sim_gemm_kernel(unsigned long)"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_ledger_row ledger[SIM_LEDGER_ROWS];
static size_t rows;

enum {
	FLOPS_A_NS = 400000, /* 400 TFLOP/s */
	LEAST_NS = 2000,
	VERSION = 5,
};

static bool is_complex(uint32_t type)
{
	return type == SIM_TYPE_C32 || type == SIM_TYPE_C64;
}

static void write_down(const struct sim_multiplication *made, uint64_t flops)
{
	size_t i = 0;

	(void)pthread_mutex_lock(&lock);
	while (i < rows && (ledger[i].type != made->type || ledger[i].compute != made->compute))
		i++;
	if (i < SIM_LEDGER_ROWS) {
		rows += i == rows;
		ledger[i].type = made->type;
		ledger[i].compute = made->compute;
		ledger[i].calls++;
		ledger[i].flops += flops;
	}
	(void)pthread_mutex_unlock(&lock);
}

size_t cublasSimLedger(const struct sim_ledger_row **ret_row)
{
	*ret_row = ledger;
	return rows;
}

int cublasSimLaunch(uint64_t ns, void *stream)
{
	void *params[] = {&ns};

	return cuLaunchKernel((CUfunction)(uintptr_t)&timed, 1, 1, 1, 1, 1, 1, 0, stream, params,
			      NULL) == CUDA_SUCCESS
		       ? SIM_CUBLAS_SUCCESS
		       : SIM_CUBLAS_EXECUTION_FAILED;
}

int cublasSimRun(const struct sim_multiplication *made, void *stream)
{
	uint64_t flops;
	int status;

	if (made->m < 0 || made->n < 0 || made->k < 0 || made->batch < 0)
		return SIM_CUBLAS_INVALID_VALUE;
	flops = 2 * (uint64_t)made->m * (uint64_t)made->n * (uint64_t)made->k *
		(uint64_t)made->batch * (is_complex(made->type) ? 4 : 1);
	if (!flops)
		return SIM_CUBLAS_SUCCESS;
	status = cublasSimLaunch(flops / FLOPS_A_NS + LEAST_NS, stream);
	if (status == SIM_CUBLAS_SUCCESS)
		write_down(made, flops);
	return status;
}

int cublasLtCreate(void **handle)
{
	*handle = calloc(1, sizeof(uint64_t));
	return *handle ? SIM_CUBLAS_SUCCESS : SIM_CUBLAS_ALLOC_FAILED;
}

int cublasLtDestroy(void *handle)
{
	free(handle);
	return SIM_CUBLAS_SUCCESS;
}

int cublasLtMatmulDescCreate(void **ret_operation, int compute, int scale_type)
{
	struct operation *operation = calloc(1, sizeof(*operation));

	if (!operation)
		return SIM_CUBLAS_ALLOC_FAILED;
	operation->version = VERSION;
	operation->compute = (uint32_t)compute;
	operation->scale_type = (uint32_t)scale_type;
	*ret_operation = operation;
	return SIM_CUBLAS_SUCCESS;
}

int cublasLtMatmulDescDestroy(void *operation)
{
	free(operation);
	return SIM_CUBLAS_SUCCESS;
}

int cublasLtMatmulDescSetAttribute(void *at, int attribute, const void *value, size_t bytes)
{
	struct operation *operation = at;

	if (bytes != sizeof(uint32_t) || (attribute != SIM_LT_TRANSA && attribute != SIM_LT_TRANSB))
		return SIM_CUBLAS_INVALID_VALUE;
	memcpy(attribute == SIM_LT_TRANSA ? &operation->transposes_a : &operation->transposes_b,
	       value, bytes);
	return SIM_CUBLAS_SUCCESS;
}

int cublasLtMatrixLayoutCreate(void **ret_layout, int type, uint64_t matrix_rows, uint64_t columns,
			       int64_t ld)
{
	struct layout *layout = calloc(1, sizeof(*layout));

	if (!layout)
		return SIM_CUBLAS_ALLOC_FAILED;
	*layout = (struct layout){.type = (uint32_t)type,
				  .rows = matrix_rows,
				  .columns = columns,
				  .ld = (uint64_t)ld,
				  .batch = 1};
	*ret_layout = layout;
	return SIM_CUBLAS_SUCCESS;
}

int cublasLtMatrixLayoutDestroy(void *layout)
{
	free(layout);
	return SIM_CUBLAS_SUCCESS;
}

int cublasLtMatrixLayoutSetAttribute(void *at, int attribute, const void *value, size_t bytes)
{
	struct layout *layout = at;

	if (attribute != SIM_LT_BATCH || bytes != sizeof(layout->batch))
		return SIM_CUBLAS_INVALID_VALUE;
	memcpy(&layout->batch, value, bytes);
	return SIM_CUBLAS_SUCCESS;
}

int cublasLtMatmul(void *handle, const void *operation_at, const void *alpha, const void *a,
		   const void *a_layout, const void *b, const void *b_layout, const void *beta,
		   const void *c, const void *c_layout, void *d, const void *d_layout,
		   const void *algorithm, void *workspace, size_t workspace_bytes, void *stream)
{
	const struct operation *operation = operation_at;
	const struct layout *of_a = a_layout, *of_d = d_layout;
	struct sim_multiplication made;

	(void)alpha, (void)a, (void)b, (void)b_layout, (void)beta, (void)c, (void)c_layout, (void)d;
	(void)algorithm, (void)workspace, (void)workspace_bytes;
	if (!handle)
		return SIM_CUBLAS_NOT_INITIALIZED;
	made = (struct sim_multiplication){
		.type = of_a->type,
		.compute = operation->compute,
		.m = (int64_t)of_d->rows,
		.n = (int64_t)of_d->columns,
		.k = (int64_t)(operation->transposes_a ? of_a->rows : of_a->columns),
		.batch = of_d->batch,
	};
	return cublasSimRun(&made, stream);
}
