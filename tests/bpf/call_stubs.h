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

#endif
