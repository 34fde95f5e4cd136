/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The marks of the libraries that report from inside a process (plugin/gpu_record.h). Both have one
 * named "gpu_records": the row says what is reported, all kernels or those of NCCL. NCCL's has another
 * one for what its proxies sent.
 */
#include "agent/probes/probe_impl.h"

#define RECORDS(library_, mark_, launches_)                                                        \
	{                                                                                          \
		.symbol = (mark_), .library = (enum nt_library)(library_),                         \
		.subject = NT_SUBJECT_GPU, .role = NT_ROLE_GPU_RECORDS, .op = NT_OP_UNKNOWN,       \
		NT_NO_COUNT, NT_NO_COMM, NT_NO_STREAM, NT_NO_DATA, NT_NO_MAKE, NT_NO_DEVICE,       \
		NT_NO_DEREF, .batched = true, .has_launches = (launches_),                         \
		.provider = "neutracer", .mark = (mark_)                                           \
	}

static const struct nt_probe rows[] = {
	RECORDS(NT_LIBRARY_GPU, "gpu_records", true),
	RECORDS(NT_LIBRARY_NCCL_PROFILER, "gpu_records", false),
	RECORDS(NT_LIBRARY_NCCL_SENDS, "nccl_sends", false),
};

const struct nt_probe_piece nt_probe_gpu = NT_PIECE(rows);
