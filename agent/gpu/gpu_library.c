/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_library.h"

#include "agent/gpu/amdsmi.h"
#include "agent/gpu/nvml.h"
#include "common/system/clock.h"

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

static int open_amdsmi(const char *path, char error[NT_LIBRARY_ERROR], void **ret_state)
{
	struct nt_amdsmi *amdsmi = NULL;
	const int r = nt_amdsmi_open(path, error, &amdsmi);

	if (r == 0)
		*ret_state = amdsmi;
	return r;
}

static void read_amdsmi(void *state, struct nt_gpu_cards *ret_cards)
{
	nt_amdsmi_read(state, nt_clock_mono_ns(), ret_cards);
}

const struct nt_gpu_library nt_gpu_libraries[NT_GPU_VENDORS] = {
	[NT_GPU_NVIDIA] = {"/dev/nvidiactl", NVML, open_nvml, read_nvml},
	[NT_GPU_AMD] = {"/dev/kfd", "libamd_smi.so", open_amdsmi, read_amdsmi},
};
