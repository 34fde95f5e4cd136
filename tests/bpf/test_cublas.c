/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The real cuBLAS and cuBLASLt of CUDA 11, 12 and 13 (tests/bpf/wheels/wheels_cublas.txt). Their descriptors
 * need no GPU: what the kernel side reads of them must be what they were made with. Without a GPU the
 * multiplication fails, so a function that succeeds takes the descriptors in its place; the real
 * one is called too, and must not count. (That of 11.11 crashes.)
 */
#include <stdlib.h>

#include "tests/bpf/harness.h"

enum {
	DRAWS = 200,
	SIZE_MOST = 5000,
	/* library_types.h, cublas_api.h, cublasLt.h */
	TYPE_F32 = 0,
	COMPUTE_FIRST = 64,
	LT_TRANSA = 3,
	LT_TRANSB = 4,
	LT_BATCH = 5,
	LT_ORDER = 1,
	CUBLAS_FUNCTIONS_11 = 19, /* without those of 64-bit sizes */
	CUBLAS_FUNCTIONS = 38,
};

struct real {
	const char *blas, *lt; /* below the cache */
	int functions;
	bool checks_handle; /* its multiplication returns an error without one */
};

static const struct real cuda11 = {"nvidia-cublas-cu11-11.11.3.6/libcublas.so.11",
				   "nvidia-cublas-cu11-11.11.3.6/libcublasLt.so.11",
				   CUBLAS_FUNCTIONS_11, false};
static const struct real cuda12 = {"nvidia-cublas-cu12-12.9.1.4/libcublas.so.12",
				   "nvidia-cublas-cu12-12.9.1.4/libcublasLt.so.12",
				   CUBLAS_FUNCTIONS, true};
static const struct real cuda13 = {"nvidia-cublas-13.10.0.20/libcublas.so.13",
				   "nvidia-cublas-13.10.0.20/libcublasLt.so.13", CUBLAS_FUNCTIONS,
				   true};

static const enum nt_library cublas = (enum nt_library)NT_LIBRARY_CUBLAS;

static char cache[PATH_MAX];
static struct stub blas, lt, yes;
static uint32_t seed = 7;

static uint64_t draw(uint64_t most)
{
	seed = seed * 1664525 + 1013904223;
	return 1 + (seed >> 8) % most;
}

struct product {
	uint32_t type, compute, batch, turns_a, turns_b;
	uint64_t m, n, k;
	void *operation, *a, *b, *d;
};

/* The int that a function of the real library returns. */
static int call(const char *symbol, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	const uint64_t args[STUB_ARGS] = {a, b, c, d, e};

	assert_non_null(dlsym(lt.handle, symbol));
	return (int)stub_call(&lt, symbol, args);
}

static void *make_layout(const struct product *p, uint64_t rows, uint64_t columns)
{
	const int32_t by_rows = 1, order = draw(2) == 1 ? by_rows : 0;
	void *layout = NULL;

	assert_int_equal(call("cublasLtMatrixLayoutCreate", (uintptr_t)&layout, p->type, rows,
			      columns, order ? columns : rows),
			 0);
	assert_int_equal(call("cublasLtMatrixLayoutSetAttribute", (uintptr_t)layout, LT_BATCH,
			      (uintptr_t)&p->batch, sizeof(p->batch), 0),
			 0);
	assert_int_equal(call("cublasLtMatrixLayoutSetAttribute", (uintptr_t)layout, LT_ORDER,
			      (uintptr_t)&order, sizeof(order), 0),
			 0);
	return layout;
}

static struct product make_product(void)
{
	/* bf16, f16, f32, f64, i8, e4m3 with a mode that it has. */
	static const uint32_t types[][2] = {{14, 68}, {2, 64}, {0, 77}, {1, 70}, {3, 72}, {28, 68}};
	const uint32_t *type = types[draw(6) - 1];
	struct product p = {.type = type[0],
			    .compute = type[1],
			    .batch = (uint32_t)draw(64),
			    .turns_a = (uint32_t)draw(2) - 1,
			    .turns_b = (uint32_t)draw(2) - 1,
			    .m = draw(SIZE_MOST),
			    .n = draw(SIZE_MOST),
			    .k = draw(SIZE_MOST)};

	assert_int_equal(call("cublasLtMatmulDescCreate", (uintptr_t)&p.operation, p.compute,
			      TYPE_F32, 0, 0),
			 0);
	assert_int_equal(call("cublasLtMatmulDescSetAttribute", (uintptr_t)p.operation, LT_TRANSA,
			      (uintptr_t)&p.turns_a, sizeof(p.turns_a), 0),
			 0);
	assert_int_equal(call("cublasLtMatmulDescSetAttribute", (uintptr_t)p.operation, LT_TRANSB,
			      (uintptr_t)&p.turns_b, sizeof(p.turns_b), 0),
			 0);
	p.a = make_layout(&p, p.turns_a ? p.k : p.m, p.turns_a ? p.m : p.k);
	p.b = make_layout(&p, p.turns_b ? p.n : p.k, p.turns_b ? p.k : p.n);
	p.d = make_layout(&p, p.m, p.n);
	return p;
}

static void free_product(struct product *p)
{
	(void)call("cublasLtMatmulDescDestroy", (uintptr_t)p->operation, 0, 0, 0, 0);
	(void)call("cublasLtMatrixLayoutDestroy", (uintptr_t)p->a, 0, 0, 0, 0);
	(void)call("cublasLtMatrixLayoutDestroy", (uintptr_t)p->b, 0, 0, 0, 0);
	(void)call("cublasLtMatrixLayoutDestroy", (uintptr_t)p->d, 0, 0, 0, 0);
}

static uint64_t multiply(const struct stub *library, const struct product *p)
{
	const uint64_t args[STUB_ARGS] = {0, (uintptr_t)p->operation, 0, 0, (uintptr_t)p->a,
					  0, (uintptr_t)p->b,         0, 0, (uintptr_t)p->d,
					  0, (uintptr_t)p->d};

	return (uint32_t)stub_call(library, "cublasLtMatmul", args);
}

static struct nt_gemm_totals totals_of(const struct harness *h)
{
	struct nt_gemm_totals totals = {0};

	(void)nt_attach_gemms(h->attach, (uint32_t)getpid(), &totals);
	return totals;
}

static struct nt_gemm_sum sum_of(const struct harness *h, const struct product *p)
{
	const struct nt_gemm_totals totals = totals_of(h);

	for (size_t i = 0; i < NT_GEMM_SUMS; i++)
		if (totals.sum[i].key == NT_GEMM_KEY(p->type, p->compute))
			return totals.sum[i];
	return (struct nt_gemm_sum){0};
}

static uint64_t hits(const struct harness *h)
{
	const uint16_t row = harness_row("cublasLtMatmul", cublas);
	struct nt_process_counters counters = {0};

	(void)nt_attach_counters(h->attach, (uint32_t)getpid(), &counters);
	return counters.unseen[row];
}

static void check_product(const struct harness *h, const struct real *real)
{
	struct product p = make_product();
	const struct nt_gemm_sum before = sum_of(h, &p);
	const uint64_t hits_before = hits(h);
	struct nt_gemm_sum after;

	assert_int_equal(multiply(&yes, &p), 0);
	after = sum_of(h, &p);
	if (after.calls != before.calls + 1 ||
	    after.flops - before.flops != 2 * p.m * p.n * p.k * p.batch)
		fail_msg("type %u, mode %u, %llu x %llu x %llu, batch %u, %u%u: %llu operations",
			 p.type, p.compute, (unsigned long long)p.m, (unsigned long long)p.n,
			 (unsigned long long)p.k, p.batch, p.turns_a, p.turns_b,
			 (unsigned long long)(after.flops - before.flops));
	/* Entered, and refused for want of a handle. */
	if (real->checks_handle) {
		assert_int_not_equal(multiply(&lt, &p), 0);
		assert_int_equal(hits(h), hits_before + 2);
		assert_int_equal(sum_of(h, &p).calls, after.calls);
	}
	free_product(&p);
}

static void load(const struct real *real)
{
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", cache, real->lt);
	if (!stub_load(&lt, path))
		fail_msg("%s", dlerror());
	(void)snprintf(path, sizeof(path), "%s/%s", cache, real->blas);
	if (!stub_load(&blas, path))
		fail_msg("%s", dlerror());
	(void)snprintf(path, sizeof(path), "%s/libcublasLt.so.%d", stub_dir, real->functions);
	assert_true(stub_compile(path, "c",
				 "int cublasLtMatmul(void) { __asm__ volatile(\"\" ::: \"rbx\"); "
				 "return 0; }\n",
				 NULL));
	assert_true(stub_load(&yes, path));
}

static void descriptors_of_the_real_library_are_read_as_they_were_made(void **state)
{
	const struct real *real = *state;
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	struct harness h;

	load(real);
	harness_init(&h, &options);
	assert_int_equal(harness_attach(&h, &blas, cublas, UINT32_MAX), real->functions);
	assert_int_equal(harness_attach(&h, &lt, cublas, UINT32_MAX), 1);
	assert_int_equal(harness_attach(&h, &yes, cublas, UINT32_MAX), 1);
	assert_int_equal(harness_stats(&h).refused_slow, 0);
	assert_int_equal(harness_stats(&h).failed, 0);
	for (int i = 0; i < DRAWS; i++)
		check_product(&h, real);
	assert_int_equal(totals_of(&h).unread, 0);
	harness_release(&h);
	(void)dlclose(yes.handle);
}

/* Its size is a reason not to fetch it in a test of every day. */
static bool fetch(void)
{
	const char *at = getenv("NT_CACHE") ?: getenv("XDG_CACHE_HOME");
	char path[2 * PATH_MAX];
	FILE *out;
	bool ok;

	(void)snprintf(path, sizeof(path), "%s%s/wheels/%s", at ?: getenv("HOME") ?: "",
		       getenv("NT_CACHE") ? "" : at ? "/neutracer" : "/.cache/neutracer", cuda13.lt);
	if (!getenv("NT_LONG") && access(path, R_OK) < 0)
		return false;
	out = popen("tests/bpf/wheels/wheels.sh wheels_cublas.txt", "r");
	ok = out && fgets(cache, sizeof(cache), out);
	if (out && pclose(out) != 0)
		return false;
	cache[strcspn(cache, "\n")] = '\0';
	return ok;
}

#define OF(real)                                                                                   \
	{                                                                                          \
		"descriptors_of_" #real "_are_read_as_they_were_made",                             \
			descriptors_of_the_real_library_are_read_as_they_were_made, NULL, NULL,    \
			(void *)&(real)                                                            \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {OF(cuda11), OF(cuda12), OF(cuda13)};
	int r;

	if (!harness_can_load())
		return EXIT_SKIP;
	if (!fetch()) {
		printf("skip: download: the real cuBLAS is not here (NT_LONG=1 fetches 1.4 GB)\n");
		return EXIT_SKIP;
	}
	if (!stub_begin())
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
