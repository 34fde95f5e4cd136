/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * NVIDIA's management library, libnvidia-ml.so.1, loaded when it is there. Its calls can block for
 * as long as the driver does, so that only workers make them.
 *
 * Functions, not fields of nvmlDeviceGetFieldValues(): the numbers of the fields of throttled time
 * differ between nvml.h 12.9 (251 to 253) and 13.0 (269 to 271).
 */
#ifndef NT_AGENT_GPU_NVML_H
#define NT_AGENT_GPU_NVML_H

#include "agent/gpu/gpu_card.h"
#include "common/base/cleanup.h"

enum {
	NT_NVML_ERROR = 96, /* bytes of a message with its NUL */
};

struct nt_nvml;

/*
 * Loads and initialises the library; the caller frees it. -ENOENT: there is none; -ENODEV: it has no
 * driver or no GPU; -EPROTO: it lacks a function; -EIO. `error`: the reason as the library states it.
 */
NT_MUST_CHECK int nt_nvml_open(const char *path, char error[NT_NVML_ERROR],
			       struct nt_nvml **ret_nvml);
void nt_nvml_close(struct nt_nvml *nvml);
NT_DEFINE_AUTO(nt_nvml, nt_nvml_close)

/* Reads all cards. A value that a card lacks is not known. */
void nt_nvml_read(struct nt_nvml *nvml, struct nt_gpu_cards *ret_cards);

#endif
