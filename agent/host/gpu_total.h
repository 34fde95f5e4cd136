/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the driver states of the GPUs of a process, since the agent reads it. */
#ifndef NT_AGENT_HOST_GPU_TOTAL_H
#define NT_AGENT_HOST_GPU_TOTAL_H

#include <stdint.h>

enum {
	NT_GPU_MODEL = 96, /* bytes of the name of a GPU's model with its NUL: as NVML has it */
};

struct nt_gpu_total {
	/* The clock was below the possible one: by temperature, a power cap, the hardware. */
	uint64_t thermal_ns, power_ns, hardware_ns;
	uint64_t uncorrected, xids; /* ECC errors; errors that the driver reported */
	uint32_t last_xid; /* 0: none */
	/* How long it is known what computed, and integrals over that time; see gpu_card.h. */
	uint64_t activity_ns, sm_ns, occupancy_ns, tensor_ns, dram_ns;
	uint64_t nvlink_bytes, pcie_bytes; /* in that time, both directions */
	/* Now; 0: unknown. The memory is that of the card, by all processes. */
	uint32_t clock_mhz, most_clock_mhz, celsius;
	uint64_t memory_used, memory_total; /* bytes */
	uint32_t cards;
	char model[NT_GPU_MODEL]; /* "": not known, or the process has several models */
};

/* Whether two processes compute on one card. Unknown: the driver does not state the card of both. */
enum nt_gpu_shared {
	NT_GPU_SHARED_UNKNOWN,
	NT_GPU_SHARED_NO,
	NT_GPU_SHARED_YES,
};

#endif
