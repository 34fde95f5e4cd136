/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls of the stand-ins for cuBLAS and cuBLASLt, which have the real ABI and keep a ledger. */
#ifndef NT_TESTS_BPF_PARTS_GEMM_CALLS_H
#define NT_TESTS_BPF_PARTS_GEMM_CALLS_H

#include <stdlib.h>

#include "tests/bpf/harness.h"
#include "tests/sim/lib/cublas/cublas.h"

#define LIBRARIES "build/sim/lib/"

enum {
	CALLS = 4000,
	SIZE_MOST = 300,
	GARBAGE = 0x5eedf00d, /* in the upper half of an int argument */
	PAGE = 4096,
};

/* The arguments' order in cublas_api.h; `type`: of those that do not take one. */
enum form {
	PLAIN,
	BATCHED,
	STRIDED,
	TYPED,
	EX,
	BATCHED_EX,
	STRIDED_EX,
};

static const struct {
	const char *name;
	enum form form;
	uint32_t type, compute;
} functions[] = {
	{"cublasSgemm_v2", PLAIN, SIM_TYPE_F32, SIM_COMPUTE_32F},
	{"cublasDgemm_v2", PLAIN, SIM_TYPE_F64, SIM_COMPUTE_64F},
	{"cublasCgemm_v2", PLAIN, SIM_TYPE_C32, SIM_COMPUTE_32F},
	{"cublasZgemm_v2", PLAIN, SIM_TYPE_C64, SIM_COMPUTE_64F},
	{"cublasHgemm", PLAIN, SIM_TYPE_F16, SIM_COMPUTE_16F},
	{"cublasSgemmBatched", BATCHED, SIM_TYPE_F32, SIM_COMPUTE_32F},
	{"cublasDgemmBatched", BATCHED, SIM_TYPE_F64, SIM_COMPUTE_64F},
	{"cublasCgemmBatched", BATCHED, SIM_TYPE_C32, SIM_COMPUTE_32F},
	{"cublasZgemmBatched", BATCHED, SIM_TYPE_C64, SIM_COMPUTE_64F},
	{"cublasHgemmBatched", BATCHED, SIM_TYPE_F16, SIM_COMPUTE_16F},
	{"cublasSgemmStridedBatched", STRIDED, SIM_TYPE_F32, SIM_COMPUTE_32F},
	{"cublasDgemmStridedBatched", STRIDED, SIM_TYPE_F64, SIM_COMPUTE_64F},
	{"cublasCgemmStridedBatched", STRIDED, SIM_TYPE_C32, SIM_COMPUTE_32F},
	{"cublasZgemmStridedBatched", STRIDED, SIM_TYPE_C64, SIM_COMPUTE_64F},
	{"cublasHgemmStridedBatched", STRIDED, SIM_TYPE_F16, SIM_COMPUTE_16F},
	{"cublasSgemmEx", TYPED, SIM_TYPE_BF16, SIM_COMPUTE_32F},
	{"cublasGemmEx", EX, SIM_TYPE_BF16, SIM_COMPUTE_32F},
	{"cublasGemmEx", EX, SIM_TYPE_F32, SIM_COMPUTE_TF32},
	{"cublasGemmBatchedEx", BATCHED_EX, SIM_TYPE_I8, SIM_COMPUTE_32I},
	{"cublasGemmStridedBatchedEx", STRIDED_EX, SIM_TYPE_F16, SIM_COMPUTE_32F},
	{"cublasGemmStridedBatchedEx", STRIDED_EX, SIM_TYPE_BF16, SIM_COMPUTE_32F},
};

static struct stub blas, lt, cuda;
static void *handle, *lt_handle;
static uint64_t args[STUB_ARGS];
static uint32_t seed = 1;

static inline uint64_t draw(uint64_t most)
{
	seed = seed * 1664525 + 1013904223;
	return 1 + (seed >> 8) % most;
}

static inline uint64_t word(uint64_t value, bool is_wide)
{
	return is_wide ? value : (uint64_t)GARBAGE << 32 | (uint32_t)value;
}

/* The words of a call, from the signature. */
static inline void fill(enum form form, bool is_wide, uint32_t type, uint32_t compute, uint64_t m,
			uint64_t n, uint64_t k, uint64_t batch)
{
	const uint64_t size[] = {m, n, k};

	memset(args, 0x7f, sizeof(args));
	args[0] = (uintptr_t)handle;
	args[1] = args[2] = word(0, false);
	for (size_t i = 0; i < 3; i++)
		args[3 + i] = word(size[i], is_wide);
	if (form == BATCHED)
		args[14] = word(batch, is_wide);
	if (form == STRIDED || form == BATCHED_EX)
		args[17] = word(batch, is_wide);
	if (form == STRIDED_EX)
		args[20] = word(batch, is_wide);
	if (form >= TYPED)
		args[8] = word(type, false);
	if (form == EX)
		args[17] = word(compute, false);
	if (form == BATCHED_EX)
		args[18] = word(compute, false);
	if (form == STRIDED_EX)
		args[21] = word(compute, false);
}

static inline uint64_t multiply_by(const char *name, bool is_wide)
{
	char symbol[64];

	(void)snprintf(symbol, sizeof(symbol), "%s%s", name, is_wide ? "_64" : "");
	assert_non_null(dlsym(blas.handle, symbol));
	return (uint32_t)stub_call(&blas, symbol, args);
}

static inline void call_random(void)
{
	const size_t i = draw(sizeof(functions) / sizeof(functions[0])) - 1;
	const bool is_wide = draw(2) == 1;

	fill(functions[i].form, is_wide, functions[i].type, functions[i].compute, draw(SIZE_MOST),
	     draw(SIZE_MOST), draw(SIZE_MOST), draw(16));
	assert_int_equal(multiply_by(functions[i].name, is_wide), SIM_CUBLAS_SUCCESS);
}

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

#define LT(name) ((typeof(&(name)))dlsym(lt.handle, #name))

struct product {
	void *operation, *a, *b, *d;
};

static inline struct product describe(uint32_t type, uint32_t compute, uint64_t m, uint64_t n,
				      uint64_t k, uint32_t batch, uint32_t turns_a,
				      uint32_t turns_b)
{
	struct product p = {0};
	void **const layout[] = {&p.a, &p.b, &p.d};

	assert_int_equal(LT(cublasLtMatmulDescCreate)(&p.operation, (int)compute, SIM_TYPE_F32), 0);
	assert_int_equal(LT(cublasLtMatmulDescSetAttribute)(p.operation, SIM_LT_TRANSA, &turns_a,
							    sizeof(turns_a)),
			 0);
	assert_int_equal(LT(cublasLtMatmulDescSetAttribute)(p.operation, SIM_LT_TRANSB, &turns_b,
							    sizeof(turns_b)),
			 0);
	assert_int_equal(LT(cublasLtMatrixLayoutCreate)(&p.a, (int)type, turns_a ? k : m,
							turns_a ? m : k, 1024),
			 0);
	assert_int_equal(LT(cublasLtMatrixLayoutCreate)(&p.b, (int)type, turns_b ? n : k,
							turns_b ? k : n, 1024),
			 0);
	assert_int_equal(LT(cublasLtMatrixLayoutCreate)(&p.d, (int)type, m, n, 1024), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(LT(cublasLtMatrixLayoutSetAttribute)(*layout[i], SIM_LT_BATCH,
								      &batch, sizeof(batch)),
				 0);
	return p;
}

static inline void forget(struct product *p)
{
	(void)LT(cublasLtMatmulDescDestroy)(p->operation);
	(void)LT(cublasLtMatrixLayoutDestroy)(p->a);
	(void)LT(cublasLtMatrixLayoutDestroy)(p->b);
	(void)LT(cublasLtMatrixLayoutDestroy)(p->d);
}

static inline int multiply(const struct product *p)
{
	return LT(cublasLtMatmul)(lt_handle, p->operation, NULL, NULL, p->a, NULL, p->b, NULL, NULL,
				  p->d, NULL, p->d, NULL, NULL, 0, NULL);
}

static inline void call_random_lt(void)
{
	static const uint32_t types[][2] = {{SIM_TYPE_BF16, SIM_COMPUTE_32F},
					    {SIM_TYPE_E4M3, SIM_COMPUTE_32F},
					    {SIM_TYPE_C32, SIM_COMPUTE_32F}};
	const uint32_t *type = types[draw(3) - 1];
	struct product p =
		describe(type[0], type[1], draw(SIZE_MOST), draw(SIZE_MOST), draw(SIZE_MOST),
			 (uint32_t)draw(9), (uint32_t)draw(3) - 1, (uint32_t)draw(3) - 1);

	assert_int_equal(multiply(&p), SIM_CUBLAS_SUCCESS);
	forget(&p);
}

static inline void attach_all(struct harness *h)
{
	const enum nt_library cublas = (enum nt_library)NT_LIBRARY_CUBLAS;
	/* Perf links take 0.1 s each to detach. */
	const uint32_t driver = 1U << NT_SUBJECT_DRIVER;

	assert_int_equal(harness_attach(h, &blas, cublas, UINT32_MAX), 38);
	assert_int_equal(harness_attach(h, &lt, cublas, UINT32_MAX), 1);
	if (h->mode != NT_ATTACH_PERF)
		assert_true(harness_attach(h, &cuda, NT_LIBRARY_CUDA, driver) > 0);
}

/*
 * A library of the same names in which every call succeeds, whatever its arguments: these are the
 * process's own.
 */
static inline bool load_yes(struct stub *yes)
{
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/libcublas.so.12", stub_dir);
	return stub_compile(
		       path, "c",
		       "#define YES(name) int name(void) { __asm__ volatile(\"\" ::: \"rbx\"); "
		       "return 0; }\n"
		       "YES(cublasSgemm_v2) YES(cublasSgemm_v2_64) YES(cublasGemmEx)\n"
		       "YES(cublasGemmStridedBatchedEx_64) YES(cublasLtMatmul)\n",
		       NULL) &&
	       stub_load(yes, path);
}

static inline int load(void)
{
	int (*create)(void **handle);

	if (!stub_load(&cuda, LIBRARIES "libcuda.so.1") ||
	    !stub_load(&lt, LIBRARIES "libcublasLt.so.12") ||
	    !stub_load(&blas, LIBRARIES "libcublas.so.12")) {
		print_error("%s\n", dlerror());
		return -1;
	}
	create = (int (*)(void **))dlsym(blas.handle, "cublasCreate_v2");
	return create(&handle) || LT(cublasLtCreate)(&lt_handle) ? -1 : 0;
}

#endif
