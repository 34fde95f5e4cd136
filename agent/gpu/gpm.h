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

enum {
	NT_GPM_WHOLE = UINT32_MAX, /* the card is not divided by MIG */
};

/* The functions are all there, or none is used; the one of instances may be missing. */
struct nt_gpm {
	bool is_there;
	int (*support)(nt_nvml_device device, struct nt_nvml_gpm_support *support);
	int (*allocate)(nt_nvml_gpm_sample *sample);
	int (*release)(nt_nvml_gpm_sample sample);
	int (*sample)(nt_nvml_device device, nt_nvml_gpm_sample sample);
	int (*instance_sample)(nt_nvml_device device, unsigned int instance,
			       nt_nvml_gpm_sample sample);
	int (*metrics)(struct nt_nvml_gpm_request *request);
	uint64_t readings;
	struct nt_gpm_card {
		char id[NT_GPU_CARD_ID];
		uint64_t reading; /* the last one that had it; 0: the entry is free */
		nt_nvml_gpm_sample earlier, later; /* NULL: the card has no GPM */
		bool has_earlier;
	} card[NT_GPU_CARDS];
};

void nt_gpm_open(struct nt_gpm *gpm, void *library);
/* A reading of all cards begins. Those that the last one did not have make room. */
void nt_gpm_begin(struct nt_gpm *gpm);
/*
 * Sets the values of the time since the last reading; in its first one, and if it fails, none. A
 * card is known by its id. instance: of MIG, on this device, or NT_GPM_WHOLE.
 */
void nt_gpm_read(struct nt_gpm *gpm, nt_nvml_device device, uint32_t instance,
		 struct nt_gpu_card *card);
void nt_gpm_close(struct nt_gpm *gpm);

#endif
