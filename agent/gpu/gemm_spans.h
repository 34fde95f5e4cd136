/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * When the matrix multiplications of one process ran on the host, while its kernels are reported
 * (bpf/gemm_time.bpf.h): a kernel that was enqueued inside of one is part of it.
 */
#ifndef NT_AGENT_GPU_GEMM_SPANS_H
#define NT_AGENT_GPU_GEMM_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "common/base/cleanup.h"

enum {
	/* of a thread that are kept: kernels run later than they are enqueued */
	NT_GEMM_SPANS = 1 << 12,
	NT_GEMM_SPANS_THREADS = 16, /* that multiply */
};

/* What kernels took that do not communicate, and the part of those inside of multiplications. */
struct nt_gemm_time {
	uint64_t own_ns, inside_ns;
	bool is_partial; /* some of it is not known: both are of no use */
};

struct nt_gemm_spans;

NT_MUST_CHECK int nt_gemm_spans_new(struct nt_gemm_spans **ret_spans);
void nt_gemm_spans_free(struct nt_gemm_spans *spans);
NT_DEFINE_AUTO(nt_gemm_spans, nt_gemm_spans_free)
size_t nt_gemm_spans_bytes(const struct nt_gemm_spans *spans);

/*
 * A batch of records was handed over at now_ns. Multiplications are sent for NT_GEMM_WATCH_NS after
 * it. lost: of them so far, of this process. False: some were lost since the batch before.
 */
bool nt_gemm_spans_batch(struct nt_gemm_spans *spans, uint64_t now_ns, uint32_t lost);

/* All multiplications are observed from here on, after a time in which they were not. */
void nt_gemm_spans_resume(struct nt_gemm_spans *spans, uint64_t from_ns);

/* One multiplication. Those of a thread come in their order. */
void nt_gemm_spans_add(struct nt_gemm_spans *spans, const struct nt_event_gemm *event);

/*
 * A kernel took `ns`, which the thread enqueued at launch_ns. Added to *time if it is known what the
 * thread did then. False: it made too many multiplications since, or too many threads make some.
 */
bool nt_gemm_spans_kernel(const struct nt_gemm_spans *spans, uint32_t thread, uint64_t launch_ns,
			  uint64_t ns, struct nt_gemm_time *time);

#endif
