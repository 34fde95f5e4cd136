/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The mark of the libraries that report the GPU from inside a process (plugin/gpu_record.h). Both have
 * one of that name: the row says what is reported, all kernels or those of NCCL.
 */
#include "agent/probes/probe_impl.h"

#define RECORDS(library_)                                                                          \
	{                                                                                          \
		.symbol = "gpu_records", .library = (enum nt_library)(library_),                   \
		.subject = NT_SUBJECT_GPU, .role = NT_ROLE_GPU_RECORDS, .op = NT_OP_UNKNOWN,       \
		NT_NO_COUNT, NT_NO_COMM, NT_NO_STREAM, NT_NO_DATA, NT_NO_MAKE, NT_NO_DEVICE,       \
		NT_NO_DEREF, .batched = true, .provider = "neutracer", .mark = "gpu_records"       \
	}

static const struct nt_probe rows[] = {
	RECORDS(NT_LIBRARY_GPU),
	RECORDS(NT_LIBRARY_NCCL_PROFILER),
};

const struct nt_probe_piece nt_probe_gpu = NT_PIECE(rows);
