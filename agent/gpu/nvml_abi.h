/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is used of NVML's ABI, as nvml.h has it: NVIDIA's header is not needed to build the agent.
 * tests/gpu/test_nvml_header.sh compares it with two releases of that header.
 */
#ifndef NT_AGENT_GPU_NVML_ABI_H
#define NT_AGENT_GPU_NVML_ABI_H

typedef struct nvmlDevice_st *nt_nvml_device;
typedef struct nvmlEventSet_st *nt_nvml_event_set;
typedef struct nvmlGpmSample_st *nt_nvml_gpm_sample;

enum {
	NT_NVML_SUCCESS = 0,
	NT_NVML_INSUFFICIENT_SIZE = 7,
	NT_NVML_DRIVER_NOT_LOADED = 9,
	NT_NVML_NOT_SUPPORTED = 3,
	NT_NVML_GPU_IS_LOST = 15,
	NT_NVML_RESET_REQUIRED = 16,
	NT_NVML_CLOCK_SM = 1,
	NT_NVML_CLOCK_MEM = 2,
	NT_NVML_TEMPERATURE_GPU = 0,
	NT_NVML_TEMPERATURE_VERSION = 1 << 24 | 12, /* the size of the struct below it */
	NT_NVML_ECC_CORRECTED = 0,
	NT_NVML_ECC_UNCORRECTED = 1,
	NT_NVML_ECC_VOLATILE = 0,
	NT_NVML_POLICY_POWER = 0,
	NT_NVML_POLICY_THERMAL = 1,
	NT_NVML_EVENT_XID = 8,
	NT_NVML_LINKS = 36, /* of a card at most; releases before 13 have 18 */
	NT_NVML_LINK_COUNTERS = 4, /* replays, recoveries, errors of flits and of data */
	NT_NVML_MIG_ENABLED = 1,
	NT_NVML_GPM_VERSION = 1, /* of both structs of GPM */
	NT_NVML_GPM_SM_ACTIVE = 2,
	NT_NVML_GPM_SM_OCCUPANCY = 3,
	NT_NVML_GPM_TENSOR = 5,
	NT_NVML_GPM_DRAM = 10,
	NT_NVML_GPM_PCIE_SENT = 20,
	NT_NVML_GPM_PCIE_RECEIVED = 21,
	NT_NVML_GPM_NVLINK_RECEIVED = 60,
	NT_NVML_GPM_NVLINK_SENT = 61,
	NT_NVML_GPM_METRICS = 512, /* room: releases have 98 to 477, and the version stays */
};

struct nt_nvml_temperature {
	unsigned int version;
	int sensor, celsius;
};

struct nt_nvml_utilization {
	unsigned int gpu, memory; /* percent */
};

struct nt_nvml_memory {
	unsigned long long total, free, used; /* bytes */
};

struct nt_nvml_violation {
	unsigned long long reference_us, violation_ns;
};

struct nt_nvml_event {
	nt_nvml_device device;
	unsigned long long type, data; /* data: of an XID, its number */
	unsigned int gpu_instance, compute_instance;
};

struct nt_nvml_gpm_support {
	unsigned int version, is_supported;
};

struct nt_nvml_gpm_metric {
	unsigned int id;
	int result; /* of this metric: the value holds if it is 0 */
	double value;
	char *name[3]; /* short, long, unit: of the library */
};

struct nt_nvml_gpm_request {
	unsigned int version, metrics;
	nt_nvml_gpm_sample earlier, later;
	struct nt_nvml_gpm_metric metric[NT_NVML_GPM_METRICS];
};

struct nt_nvml_process {
	unsigned int pid;
	unsigned long long memory; /* bytes */
	unsigned int gpu_instance, compute_instance;
};

#endif
