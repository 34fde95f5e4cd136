/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * NVIDIA's management library, libnvidia-ml.so.1; see gpu_library.h. Used by workers only.
 *
 * Functions, not fields of nvmlDeviceGetFieldValues(): the numbers of the fields of throttled time
 * differ between nvml.h 12.9 (251 to 253) and 13.0 (269 to 271).
 */
#ifndef NT_AGENT_GPU_NVML_H
#define NT_AGENT_GPU_NVML_H

#include "agent/gpu/gpu_card.h"
#include "agent/gpu/library_error.h"
#include "common/base/cleanup.h"

struct nt_nvml;

/* As `open` of struct nt_gpu_library, but of this path; the caller frees the result. */
NT_MUST_CHECK int nt_nvml_open(const char *path, char error[NT_LIBRARY_ERROR],
			       struct nt_nvml **ret_nvml);
void nt_nvml_close(struct nt_nvml *nvml);
NT_DEFINE_AUTO(nt_nvml, nt_nvml_close)

void nt_nvml_read(struct nt_nvml *nvml, struct nt_gpu_cards *ret_cards);

#endif
