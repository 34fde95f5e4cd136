/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix multiplications while kernels are reported, at a mark like that of the library. */
#include <pthread.h>
#include <sys/syscall.h>

#include "plugin/mark.h"
#include "tests/bpf/parts/gemm_calls.h"

NT_MARK_SEMAPHORE(gpu_records);

enum {
	SPANS_KEPT = 2 * NT_GEMM_SPANS_MOST,
	WATCH_MS = NT_GEMM_WATCH_NS / 1000000,
};

struct watched {
	struct harness h;
	struct nt_rank_probe *probe;
	struct nt_event_gemm *span;
	struct nt_event_gpu batch; /* the last one */
	size_t spans, batches;
};

static void keep_span(void *data, const struct nt_event_gemm *span)
{
	struct watched *w = data;

	if (span->h.pid == (uint32_t)getpid() && w->spans < SPANS_KEPT)
		w->span[w->spans++] = *span;
}

static void keep_batch(void *data, const struct nt_event_gpu *batch)
{
	struct watched *w = data;

	if (batch->h.pid != (uint32_t)getpid())
		return;
	w->batch = *batch;
	w->batches++;
}

static __attribute__((noinline)) void report(void)
{
	static const struct nt_gpu_record record = {.kind = NT_GPU_RECORD_OPEN};

	NT_MARK(gpu_records, (uintptr_t)&record, 1, 1);
}

/* The mark of the row of this library. */
static struct nt_rank_probe *watch(struct watched *w, int library)
{
	nt_autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe_sites sites;
	struct nt_rank_probe *probe = NULL;

	assert_int_equal(nt_rank_probe_find(fd, library, &sites), 0);
	assert_int_equal(nt_rank_probe_new_at(nt_attach_loader(w->h.attach), fd, (uint32_t)getpid(),
					      &sites, &probe),
			 0);
	return probe;
}

static void begin_watched(struct watched *w, enum nt_attach_mode mode, int library)
{
	struct nt_attach_options options = harness_options(mode);

	*w = (struct watched){.span = calloc(SPANS_KEPT, sizeof(*w->span))};
	assert_non_null(w->span);
	options.gpu_batch = keep_batch;
	options.gemm = keep_span;
	options.data = w;
	harness_init(&w->h, &options);
	attach_all(&w->h);
	w->probe = watch(w, library);
}

static void end_watched(struct watched *w)
{
	nt_rank_probe_free(w->probe);
	harness_release(&w->h);
	free(w->span);
}

static void *call_in_thread(void *data)
{
	(void)data;
	call_random_lt();
	return NULL;
}

static void calls_are_sent_while_kernels_are_reported(void **state)
{
	enum nt_attach_mode mode = *(enum nt_attach_mode *)*state;
	uint64_t before_ns, after_ns;
	struct watched w;
	pthread_t thread;

	if (!harness_has_mode(mode)) {
		print_message("skip: mode: this kernel has no %s mode\n",
			      nt_attach_mode_name(mode));
		skip();
	}
	begin_watched(&w, mode, NT_LIBRARY_GPU);
	call_random();
	harness_poll(&w.h);
	assert_int_equal(w.spans, 0);
	report();
	before_ns = nt_clock_boot_ns();
	for (int i = 0; i < 10; i++)
		call_random(); /* one that makes another one is one */
	after_ns = nt_clock_boot_ns();
	/* Neither counts, so that their kernels are no known ones. */
	fill(EX, false, SIM_TYPE_BF16, SIM_COMPUTE_32F, 10, 10, 10, 1);
	args[0] = 0;
	(void)multiply_by("cublasGemmEx", false);
	fill(STRIDED, false, 0, 0, 10, 10, 10, 0);
	(void)multiply_by("cublasSgemmStridedBatched", false);
	harness_poll(&w.h);
	assert_int_equal(w.batches, 1);
	assert_int_equal(w.spans, 10);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(w.span[i].h.tid, syscall(SYS_gettid));
		assert_int_equal(w.span[i].thread, (uint32_t)pthread_self());
		assert_true(w.span[i].h.entry_ns >= (i ? w.span[i - 1].ret_ns : before_ns));
		assert_true(w.span[i].ret_ns > w.span[i].h.entry_ns);
		assert_true(w.span[i].ret_ns <= after_ns);
		assert_true(nt_probe_row(w.span[i].h.row)->gemm);
	}
	assert_int_equal(pthread_create(&thread, NULL, call_in_thread, NULL), 0);
	harness_poll(&w.h);
	assert_int_equal(pthread_join(thread, NULL), 0);
	harness_poll(&w.h);
	assert_int_equal(w.spans, 11);
	assert_int_equal(w.span[10].thread, (uint32_t)thread);
	end_watched(&w);
}

/* Until some time after the last batch, which none follows once the agent looks away. */
static void calls_are_not_sent_for_ever(void **state)
{
	const struct timespec wait = {.tv_sec = WATCH_MS / 1000 + 1};
	struct watched w;

	(void)state;
	begin_watched(&w, NT_ATTACH_AUTO, NT_LIBRARY_GPU);
	report();
	call_random();
	(void)nanosleep(&wait, NULL);
	call_random();
	harness_poll(&w.h);
	assert_int_equal(w.spans, 1);
	report();
	call_random();
	harness_poll(&w.h);
	assert_int_equal(w.spans, 2);
	end_watched(&w);
}

/* NCCL's library reports no launches of others. */
static void batches_of_communication_alone_ask_for_no_calls(void **state)
{
	struct watched w;

	(void)state;
	begin_watched(&w, NT_ATTACH_AUTO, NT_LIBRARY_NCCL_PROFILER);
	report();
	call_random();
	harness_poll(&w.h);
	assert_int_equal(w.batches, 1);
	assert_int_equal(w.spans, 0);
	end_watched(&w);
}

/* Of a period. What is beyond is in the next batch. */
static void more_calls_than_the_cap_are_counted_as_lost(void **state)
{
	enum { FLOOD = 20 * NT_GEMM_SPANS_MOST };
	uint64_t from, to, periods;
	struct harness *h;
	struct watched w;
	struct stub yes;

	(void)state;
	assert_true(load_yes(&yes));
	begin_watched(&w, NT_ATTACH_AUTO, NT_LIBRARY_GPU);
	h = &w.h;
	assert_int_equal(harness_attach(h, &yes, (enum nt_library)NT_LIBRARY_CUBLAS, UINT32_MAX),
			 5);
	fill(EX, false, SIM_TYPE_BF16, SIM_COMPUTE_32F, 1, 1, 1, 1);
	report();
	from = nt_clock_boot_ns() >> NT_GEMM_PERIOD_SHIFT;
	for (int i = 0; i < FLOOD; i++) {
		(void)stub_call(&yes, "cublasGemmEx", args);
		if (i % 100 == 0)
			harness_poll(h);
	}
	to = nt_clock_boot_ns() >> NT_GEMM_PERIOD_SHIFT;
	report();
	harness_poll(h);
	periods = to - from + 1;
	assert_int_equal(harness_stats(h).dropped[NT_EVENT_GEMM], w.batch.spans_lost);
	if (FLOOD > periods * NT_GEMM_SPANS_MOST)
		assert_true(w.batch.spans_lost >= FLOOD - periods * NT_GEMM_SPANS_MOST);
	else
		print_message("%d calls took %d periods\n", FLOOD, (int)periods);
	/* All that a period has room for is sent, and no call is without a count. */
	assert_true(w.batch.spans_lost <= FLOOD - NT_GEMM_SPANS_MOST);
	end_watched(&w);
	(void)dlclose(yes.handle);
}

/* A quarter of the ring: events of calls have the rest. */
static void calls_leave_the_rest_of_the_ring_to_others(void **state)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	const size_t ring_bytes = 1 << 16;
	struct watched w = {.span = calloc(SPANS_KEPT, sizeof(*w.span))};
	struct stub yes;
	size_t most;

	(void)state;
	assert_non_null(w.span);
	assert_true(load_yes(&yes));
	options.ring_bytes = ring_bytes;
	options.gpu_batch = keep_batch;
	options.gemm = keep_span;
	options.data = &w;
	harness_init(&w.h, &options);
	assert_int_equal(harness_attach(&w.h, &yes, (enum nt_library)NT_LIBRARY_CUBLAS, UINT32_MAX),
			 5);
	w.probe = watch(&w, NT_LIBRARY_GPU);
	fill(EX, false, SIM_TYPE_BF16, SIM_COMPUTE_32F, 1, 1, 1, 1);
	report();
	for (int i = 0; i < 1500; i++)
		(void)stub_call(&yes, "cublasGemmEx", args);
	report();
	harness_poll(&w.h);
	most = ring_bytes / 4 / (sizeof(struct nt_event_gemm) + 8);
	assert_in_range(w.spans, most / 2, most + 1);
	assert_int_equal(w.batches, 2);
	assert_int_equal(w.spans + w.batch.spans_lost, 1500);
	end_watched(&w);
	(void)dlclose(yes.handle);
}

int main(void)
{
	static enum nt_attach_mode session = NT_ATTACH_SESSION, perf = NT_ATTACH_PERF;
	const struct CMUnitTest tests[] = {
		{"calls_are_sent_while_kernels_are_reported_in_session_mode",
		 calls_are_sent_while_kernels_are_reported, NULL, NULL, &session},
		{"calls_are_sent_while_kernels_are_reported_in_perf_mode",
		 calls_are_sent_while_kernels_are_reported, NULL, NULL, &perf},
		cmocka_unit_test(calls_are_not_sent_for_ever),
		cmocka_unit_test(batches_of_communication_alone_ask_for_no_calls),
		cmocka_unit_test(more_calls_than_the_cap_are_counted_as_lost),
		cmocka_unit_test(calls_leave_the_rest_of_the_ring_to_others),
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
