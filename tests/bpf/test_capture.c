/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is multiplied while streams capture, with stand-ins that return what they are told. */
#include "tests/bpf/parts/gemm_calls.h"

enum {
	STREAM = 0x100,
	GRAPH = 0x8000,
	KEPT = 64,
	UNMATCHED = 903,
	WRONG_THREAD = 908,
	INVALIDATED = 901,
};

struct captures {
	struct harness h;
	struct nt_event_capture kept[KEPT];
	size_t count;
};

static struct stub cudart, yes;
static int *result; /* of cudart's calls */

static void keep(void *data, const struct nt_event_capture *capture)
{
	struct captures *c = data;

	if (capture->h.pid == (uint32_t)getpid() && c->count < KEPT)
		c->kept[c->count++] = *capture;
}

static void begin_in(struct captures *c, enum nt_attach_mode mode)
{
	struct nt_attach_options options = harness_options(mode);

	memset(c, 0, sizeof(*c));
	options.capture = keep;
	options.data = c;
	harness_init(&c->h, &options);
	assert_true(harness_attach(&c->h, &cudart, NT_LIBRARY_CUDART, UINT32_MAX) > 0);
	assert_int_equal(
		harness_attach(&c->h, &yes, (enum nt_library)NT_LIBRARY_CUBLAS, UINT32_MAX), 5);
}

static void capture_begins(int returned)
{
	const uint64_t words[STUB_ARGS] = {STREAM, 0};

	*result = returned;
	(void)stub_call(&cudart, "cudaStreamBeginCapture", words);
}

static void capture_ends(int returned)
{
	static uint64_t graph = GRAPH;
	const uint64_t words[STUB_ARGS] = {STREAM, (uintptr_t)&graph};

	*result = returned;
	(void)stub_call(&cudart, "cudaStreamEndCapture", words);
}

/* Each of 2 * 3 * 5 * 7 operations. */
static void multiply_times(int times, uint32_t type)
{
	for (int i = 0; i < times; i++) {
		fill(EX, false, type, SIM_COMPUTE_32F, 3, 5, 7, 1);
		(void)stub_call(&yes, "cublasGemmEx", args);
	}
}

static const struct nt_gemm_sum *captured_of(const struct nt_event_capture *capture, uint32_t type)
{
	static const struct nt_gemm_sum none;

	for (size_t i = 0; i < NT_GEMM_SUMS; i++)
		if (capture->sum[i].key == NT_GEMM_KEY(type, SIM_COMPUTE_32F))
			return &capture->sum[i];
	return &none;
}

static void a_capture_has_what_was_multiplied_in_it(void **state)
{
	enum nt_attach_mode mode = *(enum nt_attach_mode *)*state;
	static struct captures c;
	const struct nt_event_call *end;
	size_t events;

	if (!harness_has_mode(mode)) {
		print_message("skip: mode: this kernel has no %s mode\n",
			      nt_attach_mode_name(mode));
		skip();
	}
	begin_in(&c, mode);
	/* Before anything was multiplied at all. */
	capture_begins(0);
	capture_ends(0);
	multiply_times(3, SIM_TYPE_BF16);
	capture_begins(0);
	multiply_times(5, SIM_TYPE_BF16);
	multiply_times(7, SIM_TYPE_F16);
	capture_ends(0);
	multiply_times(2, SIM_TYPE_BF16);
	events = harness_poll(&c.h);
	assert_int_equal(events, 4);
	assert_int_equal(c.count, 2);
	assert_int_equal(captured_of(&c.kept[0], SIM_TYPE_BF16)->calls, 0);
	assert_int_equal(captured_of(&c.kept[1], SIM_TYPE_BF16)->calls, 5);
	assert_int_equal(captured_of(&c.kept[1], SIM_TYPE_BF16)->flops, 5 * 210);
	assert_int_equal(captured_of(&c.kept[1], SIM_TYPE_F16)->calls, 7);
	assert_int_equal(c.kept[1].unread, 0);
	assert_int_equal(c.kept[1].h.flags, 0);
	/* It names the call that ended it. */
	end = &c.h.event[3].call;
	assert_int_equal(c.kept[1].h.entry_ns, end->h.entry_ns);
	assert_int_equal(c.kept[1].h.tid, end->h.tid);
	assert_int_equal(c.kept[1].h.row, end->h.row);
	harness_release(&c.h);
}

static void captures_that_overlap_are_mixed(void **state)
{
	static struct captures c;

	(void)state;
	begin_in(&c, NT_ATTACH_AUTO);
	capture_begins(0);
	capture_begins(0);
	multiply_times(1, SIM_TYPE_BF16);
	capture_ends(0);
	harness_poll(&c.h);
	assert_int_equal(c.count, 0);
	capture_ends(0);
	/* The next one is alone. */
	capture_begins(0);
	multiply_times(2, SIM_TYPE_BF16);
	capture_ends(0);
	harness_poll(&c.h);
	assert_int_equal(c.count, 2);
	assert_int_equal(c.kept[0].h.flags, NT_CAPTURE_MIXED);
	assert_int_equal(c.kept[1].h.flags, 0);
	assert_int_equal(captured_of(&c.kept[1], SIM_TYPE_BF16)->calls, 2);
	harness_release(&c.h);
}

static void calls_that_fail_begin_and_end_what_they_do(void **state)
{
	static struct captures c;

	(void)state;
	begin_in(&c, NT_ATTACH_AUTO);
	/* One that began before the probes, or did not begin. */
	capture_ends(0);
	capture_begins(1);
	capture_ends(0);
	harness_poll(&c.h);
	assert_int_equal(c.count, 0);
	/* The capture goes on. */
	capture_begins(0);
	multiply_times(1, SIM_TYPE_BF16);
	capture_ends(UNMATCHED);
	capture_ends(WRONG_THREAD);
	multiply_times(1, SIM_TYPE_BF16);
	harness_poll(&c.h);
	assert_int_equal(c.count, 0);
	/* It ends without a graph: what it captured did not run either. */
	capture_ends(INVALIDATED);
	harness_poll(&c.h);
	assert_int_equal(c.count, 1);
	assert_int_equal(captured_of(&c.kept[0], SIM_TYPE_BF16)->calls, 2);
	harness_release(&c.h);
}

static void calls_that_are_in_no_sum_are_counted(void **state)
{
	static struct captures c;

	(void)state;
	begin_in(&c, NT_ATTACH_AUTO);
	for (uint32_t i = 0; i < NT_GEMM_SUMS; i++)
		multiply_times(1, i);
	capture_begins(0);
	multiply_times(1, NT_GEMM_SUMS); /* over the cap */
	multiply_times(2, 64); /* no type */
	multiply_times(4, NT_GEMM_SUMS - 1);
	capture_ends(0);
	harness_poll(&c.h);
	assert_int_equal(c.count, 1);
	assert_int_equal(c.kept[0].unread, 3);
	assert_int_equal(captured_of(&c.kept[0], NT_GEMM_SUMS - 1)->calls, 4);
	harness_release(&c.h);
}

static bool load_cudart(void)
{
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/libcudart-capture.so.12", stub_dir);
	if (!stub_compile(path, "c",
			  "int stub_result;\n"
			  "#define CALL(name) int name(void) { __asm__ volatile(\"\" ::: \"rbx\"); "
			  "return stub_result; }\n"
			  "CALL(cudaStreamBeginCapture) CALL(cudaStreamEndCapture)\n",
			  NULL) ||
	    !stub_load(&cudart, path))
		return false;
	result = dlsym(cudart.handle, "stub_result");
	return result != NULL;
}

int main(void)
{
	static enum nt_attach_mode session = NT_ATTACH_SESSION, perf = NT_ATTACH_PERF;
	const struct CMUnitTest tests[] = {
		{"a_capture_has_what_was_multiplied_in_it_in_session_mode",
		 a_capture_has_what_was_multiplied_in_it, NULL, NULL, &session},
		{"a_capture_has_what_was_multiplied_in_it_in_perf_mode",
		 a_capture_has_what_was_multiplied_in_it, NULL, NULL, &perf},
		cmocka_unit_test(captures_that_overlap_are_mixed),
		cmocka_unit_test(calls_that_fail_begin_and_end_what_they_do),
		cmocka_unit_test(calls_that_are_in_no_sum_are_counted),
	};
	int r;

	if (stub_only())
		return 0;
	if (!harness_can_load())
		return EXIT_SKIP;
	if (!stub_begin() || load() < 0 || !load_yes(&yes) || !load_cudart())
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
