/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The MIG instances of a card, which jobs see as GPUs of their own. Used by workers only. */
#ifndef NT_AGENT_GPU_MIG_H
#define NT_AGENT_GPU_MIG_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/gpu/nvml_abi.h"

enum {
	NT_MIG_INSTANCES = 16, /* of a card; further ones are not read. Cards have 7 */
};

/* The functions are all there, or none is used. */
struct nt_mig {
	bool is_there;
	int (*mode)(nt_nvml_device card, unsigned int *mode, unsigned int *pending);
	int (*most)(nt_nvml_device card, unsigned int *count);
	int (*by_index)(nt_nvml_device card, unsigned int index, nt_nvml_device *instance);
	int (*id)(nt_nvml_device instance, unsigned int *id);
};

struct nt_mig_instance {
	nt_nvml_device device; /* holds until the instance is destroyed */
	uint32_t id; /* of the GPU instance; compute instances may share one */
};

void nt_mig_open(struct nt_mig *mig, void *library);
/* True: the card is divided. Its instances may change from one reading to the next. */
bool nt_mig_list(const struct nt_mig *mig, nt_nvml_device card,
		 struct nt_mig_instance ret_instance[NT_MIG_INSTANCES], uint32_t *ret_count);

#endif
