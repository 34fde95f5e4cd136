/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/mig.h"

#include "agent/gpu/library_symbol.h"

void nt_mig_open(struct nt_mig *mig, void *library)
{
	mig->is_there =
		nt_library_symbol(library, "nvmlDeviceGetMigMode", &mig->mode) &&
		nt_library_symbol(library, "nvmlDeviceGetMaxMigDeviceCount", &mig->most) &&
		nt_library_symbol(library, "nvmlDeviceGetMigDeviceHandleByIndex", &mig->by_index) &&
		nt_library_symbol(library, "nvmlDeviceGetGpuInstanceId", &mig->id);
}

bool nt_mig_list(const struct nt_mig *mig, nt_nvml_device card,
		 struct nt_mig_instance ret_instance[NT_MIG_INSTANCES], uint32_t *ret_count)
{
	unsigned int mode = 0, pending = 0, most = 0;

	*ret_count = 0;
	if (!mig->is_there || mig->mode(card, &mode, &pending) != NT_NVML_SUCCESS ||
	    mode != NT_NVML_MIG_ENABLED)
		return false;
	if (mig->most(card, &most) != NT_NVML_SUCCESS)
		most = 0;
	/* Indices without an instance are left out. */
	for (unsigned int i = 0; i < most && *ret_count < NT_MIG_INSTANCES; i++) {
		struct nt_mig_instance *instance = &ret_instance[*ret_count];
		unsigned int id = 0;

		if (mig->by_index(card, i, &instance->device) != NT_NVML_SUCCESS ||
		    mig->id(instance->device, &id) != NT_NVML_SUCCESS)
			continue;
		instance->id = id;
		++*ret_count;
	}
	return true;
}
