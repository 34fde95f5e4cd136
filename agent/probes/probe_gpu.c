/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The mark of the libraries that report the GPU from inside a process (plugin/gpu_record.h). */
#include "agent/probes/probe_impl.h"

static const struct nt_probe rows[] = {
	{.symbol = "gpu_records",
	 .library = (enum nt_library)NT_LIBRARY_GPU,
	 .subject = NT_SUBJECT_GPU,
	 .role = NT_ROLE_GPU_RECORDS,
	 .op = NT_OP_UNKNOWN,
	 NT_NO_COUNT,
	 NT_NO_COMM,
	 NT_NO_STREAM,
	 NT_NO_DATA,
	 NT_NO_MAKE,
	 NT_NO_DEVICE,
	 NT_NO_DEREF,
	 .batched = true,
	 .provider = "neutracer",
	 .mark = "gpu_records"},
};

const struct nt_probe_piece nt_probe_gpu = NT_PIECE(rows);
