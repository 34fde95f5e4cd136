/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * GPU performance monitoring (GPM) through NVML, Hopper and later: how much of a card computes. A
 * sample holds counters; two of them give the means of the time between. Used by workers only.
 */
#ifndef NT_AGENT_GPU_GPM_H
#define NT_AGENT_GPU_GPM_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/gpu/gpu_card.h"
#include "agent/gpu/nvml_abi.h"

/* The functions are all there, or none is used. */
struct nt_gpm {
	bool is_there;
	int (*support)(nt_nvml_device device, struct nt_nvml_gpm_support *support);
	int (*allocate)(nt_nvml_gpm_sample *sample);
	int (*release)(nt_nvml_gpm_sample sample);
	int (*sample)(nt_nvml_device device, nt_nvml_gpm_sample sample);
	int (*metrics)(struct nt_nvml_gpm_request *request);
	struct nt_gpm_card {
		nt_nvml_gpm_sample earlier, later; /* NULL: the card has no GPM */
		bool has_earlier;
	} card[NT_GPU_CARDS];
};

void nt_gpm_open(struct nt_gpm *gpm, void *library);
/* Prepares a card, if it is supported. */
void nt_gpm_add(struct nt_gpm *gpm, uint32_t at, nt_nvml_device device);
/* Sets the values of the time since the last call; of the first call, and if it fails, none. */
void nt_gpm_read(struct nt_gpm *gpm, uint32_t at, nt_nvml_device device, struct nt_gpu_card *card);
void nt_gpm_close(struct nt_gpm *gpm);

#endif
