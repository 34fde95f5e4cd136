/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/gemm.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/sim/lib/cublas/cublas.h"
#include "tests/sim/world.h"

enum {
	SIZE = 1024,
	DEFAULT_ALGORITHM = -1,
};

struct sim_gemm {
	void *library, *handle;
	int (*create)(void **handle);
	int (*destroy)(void *handle);
	int (*gemm_ex)(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
		       const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
		       const void *beta, void *c, int type_c, int ldc, int compute, int algorithm);
};

struct sim_gemm *sim_gemm_open(void)
{
	struct sim_gemm *gemm = calloc(1, sizeof(*gemm));

	sim_must(!gemm, "memory");
	gemm->library = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
	sim_must(!gemm->library, "libcublas");
	*(void **)&gemm->create = dlsym(gemm->library, "cublasCreate_v2");
	*(void **)&gemm->destroy = dlsym(gemm->library, "cublasDestroy_v2");
	*(void **)&gemm->gemm_ex = dlsym(gemm->library, "cublasGemmEx");
	sim_must(!gemm->create || !gemm->destroy || !gemm->gemm_ex, "the functions of cuBLAS");
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

void sim_gemm_enqueue(struct sim_gemm *gemm, uint32_t count)
{
	static const float one = 1;

	for (uint32_t i = 0; i < count; i++)
		sim_must(gemm->gemm_ex(gemm->handle, 0, 0, SIZE, SIZE, SIZE, &one, NULL,
				       SIM_TYPE_BF16, SIZE, NULL, SIM_TYPE_BF16, SIZE, &one, NULL,
				       SIM_TYPE_BF16, SIZE, SIM_COMPUTE_32F, DEFAULT_ALGORITHM),
			 "cublasGemmEx");
}
