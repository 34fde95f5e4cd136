/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What bench/probes.c compares: each attaches something to a function, or nothing. */
#ifndef NT_BENCH_PROBE_VARIANTS_H
#define NT_BENCH_PROBE_VARIANTS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/probes/probe.h"

struct variant {
	const char *name;
	const char *symbol;
	enum {
		BARE,
		EMPTY, /* uprobe.multi, entry only */
		SESSION, /* entry and return */
		OURS,
		OURS_DETAIL, /* of a counted call; `script` names who is at level 1 */
		OURS_SPAN, /* of an interpreter or of events, attached to this process alone */
		BPFTRACE,
	} kind;
	const char *script; /* BPFTRACE; %s is the library. EMPTY, SESSION: the program */
	uint32_t subjects; /* OURS, OURS_DETAIL */
	enum nt_library as; /* OURS, OURS_DETAIL, OURS_SPAN */
	size_t anchor; /* index of the variant that it is a ratio to */
};

static const struct variant variants[] = {
	{"launch: no probe", "cudaLaunchKernel", BARE, NULL, 0, 0, 0},
	{"launch: empty entry probe", "cudaLaunchKernel", EMPTY, "empty", 0, 0, 1},
	{"launch: ours, counted", "cudaLaunchKernel", OURS, NULL, 1 << NT_SUBJECT_LAUNCH,
	 NT_LIBRARY_CUDART, 1},
	{"launch: bpftrace count() by pid", "cudaLaunchKernel", BPFTRACE,
	 "uprobe:%s:cudaLaunchKernel { @n[pid] = count(); }", 0, 0, 1},
	{"collective: no probe", "ncclAllReduce", BARE, NULL, 0, 0, 4},
	{"collective: empty entry probe", "ncclAllReduce", EMPTY, "empty", 0, 0, 5},
	{"collective: ours, entry with an event", "ncclAllReduce", OURS, NULL, 1 << NT_SUBJECT_COMM,
	 NT_LIBRARY_NCCL, 5},
	{"collective: bpftrace printf of four arguments", "ncclAllReduce", BPFTRACE,
	 "uprobe:%s:ncclAllReduce { printf(\"%%d %%lx %%lu %%d\\n\", tid, arg1, arg2, arg3); }", 0,
	 0, 5},
	{"blocking: no probe", "MPI_Allreduce", BARE, NULL, 0, 0, 8},
	{"blocking: empty session", "MPI_Allreduce", SESSION, "empty", 0, 0, 9},
	{"blocking: ours, entry and return with an event", "MPI_Allreduce", OURS, NULL,
	 1 << NT_SUBJECT_COMM, NT_LIBRARY_MPI, 9},
	{"blocking: bpftrace entry and return, histogram", "MPI_Allreduce", BPFTRACE,
	 "uprobe:%s:MPI_Allreduce { @t[tid] = nsecs; } "
	 "uretprobe:%s:MPI_Allreduce /@t[tid]/ { @d[pid] = hist(nsecs - @t[tid]); delete(@t[tid]); }",
	 0, 0, 9},
	{"  of it: a session that reads the clock twice", "MPI_Allreduce", SESSION, "clocks", 0, 0,
	 9},
	{"  of it: one that finds its thread's slot twice", "MPI_Allreduce", SESSION, "lookups", 0,
	 0, 9},
	{"  of it: one that reads 8 bytes of the caller's", "MPI_Allreduce", SESSION, "reading", 0,
	 0, 9},
	{"  of it: one that sends an event of six words", "MPI_Allreduce", SESSION, "event", 0, 0,
	 9},
	{"synchronise: ours, short calls only summed", "cudaStreamSynchronize", OURS, NULL,
	 1 << NT_SUBJECT_SYNC, NT_LIBRARY_CUDART, 9},
	{"collection of garbage: no probe", "collect_marked", BARE, NULL, 0, 0, 17},
	{"collection of garbage: empty entry probe", "collect_marked", EMPTY, "empty", 0, 0, 18},
	{"collection of garbage: ours, two marks", "collect_marked", OURS_SPAN, NULL, 0,
	 (enum nt_library)NT_LIBRARY_PYTHON, 18},
	{"query of an event: no probe", "cudaEventQuery", BARE, NULL, 0, 0, 20},
	{"query of an event: empty entry probe", "cudaEventQuery", EMPTY, "empty", 0, 0, 21},
	{"query of an event: ours, polled in a loop", "cudaEventQuery", OURS_SPAN, NULL, 0,
	 (enum nt_library)NT_LIBRARY_EVENT, 21},
	{"allocation of device memory: no probe", "cudaMalloc", BARE, NULL, 0, 0, 23},
	{"allocation of device memory: empty session", "cudaMalloc", SESSION, "empty", 0, 0, 24},
	{"allocation of device memory: ours, with an event", "cudaMalloc", OURS, NULL,
	 1 << NT_SUBJECT_ALLOC, NT_LIBRARY_CUDART, 24},
	{"multiplication: ours, of cuBLAS", "cublasGemmEx", OURS, NULL, 1 << NT_SUBJECT_GEMM,
	 (enum nt_library)NT_LIBRARY_CUBLAS, 9},
	{"multiplication: ours, by four descriptors", "cublasLtMatmul", OURS, NULL,
	 1 << NT_SUBJECT_GEMM, (enum nt_library)NT_LIBRARY_CUBLAS, 9},
	{"launch at level 1: no probe", "cudaLaunchKernel", BARE, NULL, 0, 0, 28},
	{"launch at level 1: empty entry probe", "cudaLaunchKernel", EMPTY, "empty", 0, 0, 29},
	{"launch at level 1: ours, of another process alone", "cudaLaunchKernel", OURS_DETAIL,
	 "other", 1 << NT_SUBJECT_LAUNCH, NT_LIBRARY_CUDART, 29},
	{"launch at level 1: ours, sampled out", "cudaLaunchKernel", OURS_DETAIL, "few",
	 1 << NT_SUBJECT_LAUNCH, NT_LIBRARY_CUDART, 29},
	{"launch at level 1: ours, each with an event", "cudaLaunchKernel", OURS_DETAIL, "each",
	 1 << NT_SUBJECT_LAUNCH, NT_LIBRARY_CUDART, 29},
};

enum {
	VARIANTS = sizeof(variants) / sizeof(variants[0]),
};

#define QUIET 0.03 /* of a ratio: the spread of a machine that does nothing else */

/* What the project wants of its probes: one variant at most so many times another. */
static const struct aim {
	const char *what;
	size_t variant, anchor;
	double most;
} aims[] = {
	{"counted launch, of an empty entry probe", 2, 1, 1.12},
	{"entry and return with an event, of an empty session", 10, 9, 1.30},
	{"entry and return with an event, of bpftrace's", 10, 11, 1.00},
};

/* The kernel's BPF_LINK_CREATE attributes for a multi link: newer than Debian 12's headers. */
struct multi_link {
	__u32 prog_fd, target_fd, attach_type, flags;
	__u64 path, offsets, ref_ctr_offsets, cookies;
	__u32 count, multi_flags, pid, pad;
};

#endif
