/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Matrix multiplications through the stand-ins for cuBLAS and cuBLASLt, which have the real ABI and
 * keep a ledger: what the kernel side adds up must be what they computed.
 */
#include <sys/mman.h>

#include "tests/bpf/parts/gemm_calls.h"

/* ---- what is compared ------------------------------------------------------------------------ */

static struct nt_gemm_totals totals_of(const struct harness *h)
{
	struct nt_gemm_totals totals = {0};

	(void)nt_attach_gemms(h->attach, (uint32_t)getpid(), &totals);
	return totals;
}

static const struct nt_gemm_sum *sum_of(const struct nt_gemm_totals *totals, uint32_t type,
					uint32_t compute)
{
	static const struct nt_gemm_sum none;

	for (size_t i = 0; i < NT_GEMM_SUMS; i++)
		if (totals->sum[i].key == NT_GEMM_KEY(type, compute))
			return &totals->sum[i];
	return &none;
}

/* Only what came after `before`: the ledger and the totals are this process's. */
static void check_ledger(const struct nt_gemm_totals *totals, const struct sim_ledger_row *before,
			 size_t rows_before)
{
	const struct sim_ledger_row *row;
	const size_t rows = LT(cublasSimLedger)(&row);

	assert_true(rows > 0);
	for (size_t i = 0; i < rows; i++) {
		const struct nt_gemm_sum *sum = sum_of(totals, row[i].type, row[i].compute);
		const bool was = i < rows_before;

		if (sum->calls != row[i].calls - (was ? before[i].calls : 0) ||
		    sum->flops != row[i].flops - (was ? before[i].flops : 0))
			fail_msg("type %u, mode %u: %llu calls and %llu operations", row[i].type,
				 row[i].compute, (unsigned long long)sum->calls,
				 (unsigned long long)sum->flops);
	}
}

static void all_that_is_computed_is_added_up(void **state)
{
	static struct sim_ledger_row before[SIM_LEDGER_ROWS];
	enum nt_attach_mode mode = *(enum nt_attach_mode *)*state;
	struct nt_attach_options options = harness_options(mode);
	const struct sim_ledger_row *row;
	struct nt_gemm_totals totals;
	struct nt_process_counters counters = {0};
	struct harness h;
	size_t rows;
	uint64_t calls = 0, hits = 0;

	if (!harness_has_mode(mode)) {
		print_message("skip: mode: this kernel has no %s mode\n",
			      nt_attach_mode_name(mode));
		skip();
	}
	harness_init(&h, &options);
	attach_all(&h);
	totals = totals_of(&h);
	assert_int_equal(totals.sum[0].calls, 0);
	rows = LT(cublasSimLedger)(&row);
	memcpy(before, row, rows * sizeof(*row));
	for (int i = 0; i < CALLS; i++) {
		call_random();
		if (i % 3 == 0)
			call_random_lt();
	}
	totals = totals_of(&h);
	check_ledger(&totals, before, rows);
	assert_int_equal(totals.unread, 0);
	assert_int_equal(totals.over_cap, 0);
	for (size_t i = 0; i < NT_GEMM_SUMS; i++)
		calls += totals.sum[i].calls;
	assert_int_equal(calls, CALLS + (CALLS + 2) / 3);
	/* Nobody else launches. A call that makes another one launches for itself, too. */
	assert_true(nt_attach_counters(h.attach, (uint32_t)getpid(), &counters));
	assert_int_equal(totals.launches, 0);
	assert_int_equal(totals.driver_launches, counters.calls[NT_COUNTER_DRIVER_LAUNCH]);
	assert_true(mode == NT_ATTACH_PERF || totals.driver_launches > calls);
	/* They make no events. Each hit is known to the governor. */
	assert_int_equal(harness_poll(&h), 0);
	for (uint16_t i = 0; i < nt_probe_rows(); i++)
		if (nt_probe_row(i)->gemm)
			hits += counters.unseen[i];
	assert_true(hits >= calls); /* those inside of others, too */
	harness_release(&h);
}

/* ---- what is not counted --------------------------------------------------------------------- */

static void begin(struct harness *h)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);

	harness_init(h, &options);
	attach_all(h);
}

static uint64_t calls_of(const struct harness *h)
{
	const struct nt_gemm_totals totals = totals_of(h);
	uint64_t calls = 0;

	for (size_t i = 0; i < NT_GEMM_SUMS; i++)
		calls += totals.sum[i].calls;
	return calls;
}

static void a_call_that_fails_or_does_nothing_does_not_count(void **state)
{
	struct harness h;

	(void)state;
	begin(&h);
	fill(EX, false, SIM_TYPE_BF16, SIM_COMPUTE_32F, 10, 10, 10, 1);
	args[0] = 0;
	assert_int_equal(multiply_by("cublasGemmEx", false), SIM_CUBLAS_NOT_INITIALIZED);
	fill(PLAIN, false, 0, 0, (uint32_t)-5, 10, 10, 1);
	assert_int_equal(multiply_by("cublasSgemm_v2", false), SIM_CUBLAS_INVALID_VALUE);
	fill(STRIDED, false, 0, 0, 10, 10, 10, 0);
	assert_int_equal(multiply_by("cublasSgemmStridedBatched", false), SIM_CUBLAS_SUCCESS);
	assert_int_equal(calls_of(&h), 0);
	assert_int_equal(totals_of(&h).unread, 0);
	harness_release(&h);
}

static void launches_outside_of_calls_are_not_theirs(void **state)
{
	static const uint64_t kernel[8]; /* one that does nothing: no magic number */
	const uint64_t launch[STUB_ARGS] = {(uintptr_t)kernel, 1, 1, 1, 1, 1, 1};
	struct nt_process_counters counters;
	struct harness h;

	(void)state;
	begin(&h);
	fill(PLAIN, false, 0, 0, 10, 10, 10, 1);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(multiply_by("cublasSgemm_v2", false), 0);
		(void)stub_call(&cuda, "cuLaunchKernel", launch);
	}
	assert_int_equal(totals_of(&h).driver_launches, 5);
	assert_true(nt_attach_counters(h.attach, (uint32_t)getpid(), &counters));
	assert_int_equal(counters.calls[NT_COUNTER_DRIVER_LAUNCH], 10);
	harness_release(&h);
}

/* ---- hostile arguments ----------------------------------------------------------------------- */

static void begin_yes(struct harness *h, struct stub *yes)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);

	assert_true(load_yes(yes));
	harness_init(h, &options);
	assert_int_equal(harness_attach(h, yes, (enum nt_library)NT_LIBRARY_CUBLAS, UINT32_MAX), 5);
}

static void end_yes(struct harness *h, struct stub *yes)
{
	harness_release(h);
	(void)dlclose(yes->handle);
}

static void sizes_that_no_call_has_are_not_read(void **state)
{
	static const uint64_t sizes[][3] = {
		{1ULL << 63, 1, 1},          {1ULL << 40, 1ULL << 40, 1ULL << 40},
		{1ULL << 30, 1ULL << 26, 1}, {UINT64_MAX, UINT64_MAX, UINT64_MAX},
		{1, 1, 1ULL << 56},
	};
	const size_t count = sizeof(sizes) / sizeof(sizes[0]);
	struct harness h;
	struct stub yes;

	(void)state;
	begin_yes(&h, &yes);
	for (size_t i = 0; i < count; i++) {
		fill(PLAIN, true, 0, 0, sizes[i][0], sizes[i][1], sizes[i][2], 1);
		(void)stub_call(&yes, "cublasSgemm_v2_64", args);
		assert_int_equal(totals_of(&h).unread, i + 1);
	}
	assert_int_equal(calls_of(&h), 0);
	/* The largest that is read. */
	fill(PLAIN, true, 0, 0, 1ULL << 30, 1ULL << 25, 1, 1);
	(void)stub_call(&yes, "cublasSgemm_v2_64", args);
	assert_int_equal(totals_of(&h).unread, count);
	assert_int_equal(totals_of(&h).sum[0].flops, 1ULL << 56);
	/* A negative int, and a negative batch. */
	fill(PLAIN, false, 0, 0, (uint32_t)-1, 1, 1, 1);
	(void)stub_call(&yes, "cublasSgemm_v2", args);
	fill(STRIDED_EX, true, SIM_TYPE_BF16, SIM_COMPUTE_32F, 1, 1, 1, (uint64_t)-1);
	(void)stub_call(&yes, "cublasGemmStridedBatchedEx_64", args);
	assert_int_equal(totals_of(&h).unread, count + 2);
	end_yes(&h, &yes);
}

static void unknown_types_and_modes_are_not_read(void **state)
{
	static const uint32_t bad[][2] = {{64, 68}, {UINT32_MAX, 68}, {14, 63}, {14, 128}, {14, 0}};
	struct harness h;
	struct stub yes;

	(void)state;
	begin_yes(&h, &yes);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fill(EX, false, bad[i][0], bad[i][1], 1, 1, 1, 1);
		(void)stub_call(&yes, "cublasGemmEx", args);
		assert_int_equal(totals_of(&h).unread, i + 1);
	}
	assert_int_equal(calls_of(&h), 0);
	end_yes(&h, &yes);
}

/* The table has room for 16 pairs; what is beyond has its own count. */
static void more_types_than_the_cap_are_left_out(void **state)
{
	struct harness h;
	struct stub yes;

	(void)state;
	begin_yes(&h, &yes);
	for (uint32_t i = 0; i < NT_GEMM_SUMS + 3; i++) {
		fill(EX, false, i, SIM_COMPUTE_32F, 1, 1, 1, 1);
		(void)stub_call(&yes, "cublasGemmEx", args);
	}
	assert_int_equal(calls_of(&h), NT_GEMM_SUMS);
	assert_int_equal(totals_of(&h).over_cap, 3);
	assert_int_equal(totals_of(&h).unread, 0);
	end_yes(&h, &yes);
}

static void call_lt(const struct stub *yes, const void *operation, const void *a, const void *b,
		    const void *d)
{
	const uint64_t words[STUB_ARGS] = {1, (uintptr_t)operation, 0, 0, (uintptr_t)a,
					   0, (uintptr_t)b,         0, 0, 0,
					   0, (uintptr_t)d};

	(void)stub_call(yes, "cublasLtMatmul", words);
}

static void descriptors_that_do_not_fit_are_not_read(void **state)
{
	struct product good = describe(SIM_TYPE_BF16, SIM_COMPUTE_32F, 20, 30, 40, 2, 1, 0);
	struct product other = describe(SIM_TYPE_BF16, SIM_COMPUTE_32F, 20, 31, 40, 2, 1, 0);
	struct product huge = describe(SIM_TYPE_BF16, SIM_COMPUTE_32F, 1ULL << 63, 1ULL << 63,
				       1ULL << 63, 1, 0, 0);
	struct product turned = describe(SIM_TYPE_BF16, SIM_COMPUTE_32F, 20, 30, 40, 2, 3, 0);
	struct product untyped = describe(1000, SIM_COMPUTE_32F, 20, 30, 40, 2, 0, 0);
	uint8_t *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t unread = 0;
	struct harness h;
	struct stub yes;

	(void)state;
	assert_true(pages != MAP_FAILED);
	assert_int_equal(munmap(pages + PAGE, PAGE), 0);
	begin_yes(&h, &yes);
	call_lt(&yes, good.operation, good.a, good.b, good.d);
	assert_int_equal(calls_of(&h), 1);
	assert_int_equal(totals_of(&h).sum[0].flops, 2 * 20 * 30 * 40 * 2);
	call_lt(&yes, NULL, good.a, good.b, good.d);
	call_lt(&yes, good.operation, (void *)8, good.b, good.d);
	call_lt(&yes, good.operation, good.a, (void *)UINT64_MAX, good.d);
	/* The end of what is mapped. */
	call_lt(&yes, good.operation, good.a, good.b, pages + PAGE - 8);
	assert_int_equal(totals_of(&h).unread, unread += 4);
	call_lt(&yes, good.operation, good.a, other.b, good.d); /* N of B and of D differ */
	call_lt(&yes, good.operation, good.b, good.a, good.d);
	call_lt(&yes, good.operation, good.a, good.b, good.a); /* M of A and of D */
	call_lt(&yes, good.operation, good.a, good.d, good.d); /* K of A and of B */
	assert_int_equal(totals_of(&h).unread, unread += 4);
	call_lt(&yes, huge.operation, huge.a, huge.b, huge.d);
	call_lt(&yes, turned.operation, turned.a, turned.b, turned.d);
	call_lt(&yes, untyped.operation, untyped.a, untyped.b, untyped.d);
	call_lt(&yes, pages, pages, pages, pages); /* zeroes: no compute mode */
	assert_int_equal(totals_of(&h).unread, unread + 4);
	assert_int_equal(calls_of(&h), 1);
	end_yes(&h, &yes);
	forget(&good);
	forget(&other);
	forget(&huge);
	forget(&turned);
	forget(&untyped);
	(void)munmap(pages, PAGE);
}

/* ---- calls whose return is not seen ---------------------------------------------------------- */

static struct harness *attached;
static struct stub hooked;

static void detach(void)
{
	nt_attach_drop(attached->attach, hooked.st.st_dev, hooked.st.st_ino);
}

/* Deeper in the stack than what came before. */
static __attribute__((noinline)) void call_deeper(void)
{
	volatile char room[512];

	room[0] = 1;
	call_random_lt();
	assert_int_equal(room[0], 1);
}

/* The probes of cuBLAS go while it is inside a call: what follows, deeper, is not part of that one. */
static void a_call_whose_probes_are_gone_hides_no_others(void **state)
{
	char path[2 * PATH_MAX];
	struct harness h;

	(void)state;
	begin(&h);
	(void)snprintf(path, sizeof(path), "%s/libcublas-hook.so.12", stub_dir);
	assert_true(stub_compile(path, "c",
				 "void (*stub_hook)(void);\n"
				 "int cublasSgemm_v2(void) { __asm__ volatile(\"\" ::: \"rbx\"); "
				 "if (stub_hook) stub_hook(); return 0; }\n",
				 NULL));
	assert_true(stub_load(&hooked, path));
	assert_int_equal(
		harness_attach(&h, &hooked, (enum nt_library)NT_LIBRARY_CUBLAS, UINT32_MAX), 1);
	attached = &h;
	*hooked.hook = detach;
	fill(PLAIN, false, 0, 0, 10, 10, 10, 1);
	(void)stub_call(&hooked, "cublasSgemm_v2", args);
	for (int i = 0; i < 10; i++)
		call_deeper();
	assert_int_equal(calls_of(&h), 10);
	harness_release(&h);
	(void)dlclose(hooked.handle);
}

int main(void)
{
	static enum nt_attach_mode session = NT_ATTACH_SESSION, multi = NT_ATTACH_MULTI,
				   perf = NT_ATTACH_PERF;
	const struct CMUnitTest tests[] = {
		{"all_that_is_computed_is_added_up_in_session_mode",
		 all_that_is_computed_is_added_up, NULL, NULL, &session},
		{"all_that_is_computed_is_added_up_in_multi_mode", all_that_is_computed_is_added_up,
		 NULL, NULL, &multi},
		{"all_that_is_computed_is_added_up_in_perf_mode", all_that_is_computed_is_added_up,
		 NULL, NULL, &perf},
		cmocka_unit_test(a_call_that_fails_or_does_nothing_does_not_count),
		cmocka_unit_test(launches_outside_of_calls_are_not_theirs),
		cmocka_unit_test(sizes_that_no_call_has_are_not_read),
		cmocka_unit_test(unknown_types_and_modes_are_not_read),
		cmocka_unit_test(more_types_than_the_cap_are_left_out),
		cmocka_unit_test(descriptors_that_do_not_fit_are_not_read),
		cmocka_unit_test(a_call_whose_probes_are_gone_hides_no_others),
	};
	int r;

	if (stub_only())
		return 0;
	if (!harness_can_load())
		return EXIT_SKIP;
	if (!stub_begin() || load() < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
