/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_library.h"

#include "agent/gpu/nvml.h"

#define NVML "libnvidia-ml.so.1"

static int open_nvml(const char *path, char error[NT_LIBRARY_ERROR], void **ret_state)
{
	struct nt_nvml *nvml = NULL;
	const int r = nt_nvml_open(path ? path : NVML, error, &nvml);

	if (r == 0)
		*ret_state = nvml;
	return r;
}

static void read_nvml(void *state, struct nt_gpu_cards *ret_cards)
{
	nt_nvml_read(state, ret_cards);
}

const struct nt_gpu_library nt_gpu_libraries[NT_GPU_VENDORS] = {
	[NT_GPU_NVIDIA] = {"/dev/nvidiactl", NVML, open_nvml, read_nvml},
};
