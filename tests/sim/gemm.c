/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/gemm.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/sim/lib/cublas/cublas.h"
#include "tests/sim/lib/cuda.h"
#include "tests/sim/world.h"

enum {
	SIZE = 1024,
	DEFAULT_ALGORITHM = -1,
	CAPTURED_STEP = 100, /* an agent that started before has probed the process by then */
};

struct sim_gemm {
	void *library, *handle;
	int (*create)(void **handle);
	int (*destroy)(void *handle);
	int (*set_stream)(void *handle, void *stream);
	int (*gemm_ex)(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
		       const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
		       const void *beta, void *c, int type_c, int ldc, int compute, int algorithm);
	uint32_t count; /* of a step */
	bool is_captured; /* from CAPTURED_STEP on */
	uint32_t steps;
	cudaStream_t stream;
	cudaGraphExec_t exec;
};

struct sim_gemm *sim_gemm_open(uint32_t count, bool is_captured)
{
	struct sim_gemm *gemm = calloc(1, sizeof(*gemm));

	sim_must(!gemm, "memory");
	gemm->count = count;
	gemm->is_captured = is_captured;
	gemm->library = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
	sim_must(!gemm->library, "libcublas");
	*(void **)&gemm->create = dlsym(gemm->library, "cublasCreate_v2");
	*(void **)&gemm->destroy = dlsym(gemm->library, "cublasDestroy_v2");
	*(void **)&gemm->set_stream = dlsym(gemm->library, "cublasSetStream_v2");
	*(void **)&gemm->gemm_ex = dlsym(gemm->library, "cublasGemmEx");
	sim_must(!gemm->create || !gemm->destroy || !gemm->set_stream || !gemm->gemm_ex,
		 "the functions of cuBLAS");
	sim_must(gemm->create(&gemm->handle), "cublasCreate");
	return gemm;
}

void sim_gemm_close(struct sim_gemm *gemm)
{
	if (!gemm)
		return;
	(void)gemm->destroy(gemm->handle);
	(void)dlclose(gemm->library);
	free(gemm);
}

static void multiply(struct sim_gemm *gemm)
{
	static const float one = 1;

	for (uint32_t i = 0; i < gemm->count; i++)
		sim_must(gemm->gemm_ex(gemm->handle, 0, 0, SIZE, SIZE, SIZE, &one, NULL,
				       SIM_TYPE_BF16, SIZE, NULL, SIM_TYPE_BF16, SIZE, &one, NULL,
				       SIM_TYPE_BF16, SIZE, SIM_COMPUTE_32F, DEFAULT_ALGORITHM),
			 "cublasGemmEx");
}

static void capture(struct sim_gemm *gemm)
{
	cudaGraph_t graph;

	sim_must(cudaStreamCreate(&gemm->stream), "cudaStreamCreate");
	sim_must(gemm->set_stream(gemm->handle, gemm->stream), "cublasSetStream");
	sim_must(cudaStreamBeginCapture(gemm->stream, 0), "cudaStreamBeginCapture");
	multiply(gemm);
	sim_must(cudaStreamEndCapture(gemm->stream, &graph), "cudaStreamEndCapture");
	sim_must(cudaGraphInstantiate(&gemm->exec, graph, 0), "cudaGraphInstantiate");
	sim_must(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

void sim_gemm_enqueue(struct sim_gemm *gemm)
{
	if (gemm->is_captured && ++gemm->steps == CAPTURED_STEP)
		capture(gemm);
	if (gemm->exec)
		sim_must(cudaGraphLaunch(gemm->exec, gemm->stream), "cudaGraphLaunch");
	else
		multiply(gemm);
}
