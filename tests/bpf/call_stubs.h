/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stand-in libraries of CUDA, NCCL and MPI, and probes on their calls. */
#ifndef NT_TESTS_BPF_CALL_STUBS_H
#define NT_TESTS_BPF_CALL_STUBS_H

#include "tests/bpf/harness.h"

static struct stub mpi, nccl, cudart;
static uint64_t args[STUB_ARGS];

/* No more than is called: perf links take long to detach. */
static inline void attach_gpu(struct harness *h)
{
	const uint32_t launches = 1U << NT_SUBJECT_LAUNCH;

	assert_true(harness_attach(h, &nccl, NT_LIBRARY_NCCL, UINT32_MAX) > 0);
	assert_true(harness_attach(h, &cudart, NT_LIBRARY_CUDART, launches) > 0);
}

static inline int load_libraries(void **state)
{
	(void)state;
	return stub_open(&mpi, NT_LIBRARY_MPI) && stub_open(&nccl, NT_LIBRARY_NCCL) &&
			       stub_open(&cudart, NT_LIBRARY_CUDART)
		       ? 0
		       : -1;
}

/* One attachment serves all tests of a mode: detaching is slow. */
static struct harness shared;

static inline int begin(void **state)
{
	enum nt_attach_mode mode = *(enum nt_attach_mode *)*state;
	struct nt_attach_options options = harness_options(mode);

	if (shared.attach && shared.mode != mode)
		harness_release(&shared);
	if (!shared.attach) {
		harness_init(&shared, &options);
		attach_gpu(&shared);
		assert_true(harness_attach(&shared, &mpi, NT_LIBRARY_MPI, UINT32_MAX) > 0);
	}
	(void)harness_poll(&shared);
	*state = &shared;
	return 0;
}

static inline int end_mode(void **state)
{
	(void)state;
	harness_release(&shared);
	return 0;
}

/* A test as a case of the mode, a variable of that name; ends: after each test, or NULL. */
#define IN_MODE(mode, test, ends)                                                                  \
	{                                                                                          \
#test "_in_" #mode "_mode", test, begin, ends, &mode                               \
	}

/*
 * Runs the tests in each mode of this kernel. TESTS(mode): the cases. Returns the exit status.
 */
#define RUN_IN_MODES(TESTS)                                                                        \
	({                                                                                         \
		static enum nt_attach_mode session = NT_ATTACH_SESSION, multi = NT_ATTACH_MULTI,   \
					   perf = NT_ATTACH_PERF;                                  \
		const struct CMUnitTest session_tests[] = {TESTS(session)};                        \
		const struct CMUnitTest multi_tests[] = {TESTS(multi)};                            \
		const struct CMUnitTest perf_tests[] = {TESTS(perf)};                              \
		int status = 0;                                                                    \
                                                                                                   \
		if (harness_has_mode(NT_ATTACH_SESSION))                                           \
			status |= cmocka_run_group_tests(session_tests, NULL, end_mode);           \
		if (harness_has_mode(NT_ATTACH_MULTI))                                             \
			status |= cmocka_run_group_tests(multi_tests, NULL, end_mode);             \
		else                                                                               \
			status |= cmocka_run_group_tests(perf_tests, NULL, end_mode);              \
		status;                                                                            \
	})

#endif
