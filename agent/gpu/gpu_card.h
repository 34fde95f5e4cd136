/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the driver says of the GPUs of a node. Flat, as a worker sends it to the agent. */
#ifndef NT_AGENT_GPU_GPU_CARD_H
#define NT_AGENT_GPU_GPU_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/host/gpu_total.h"

enum {
	NT_GPU_CARDS = 64, /* of a node, with its MIG instances; further ones are not read */
	NT_GPU_CARD_ID = 64, /* bytes of a UUID with its NUL */
	NT_GPU_CARD_MODEL = NT_GPU_MODEL, /* bytes of a model's name with its NUL */
	NT_GPU_CARD_PIDS = 32, /* processes of a card; further ones are not known */
	NT_GPU_CARD_WHOLE = 1000000, /* of a share */
};

/* From NT_GPU_CARD_POWER_CAPPED to NT_GPU_CARD_XIDS they count since the driver was loaded; XIDs since the worker began. */
enum nt_gpu_card_value {
	NT_GPU_CARD_CLOCK, /* MHz, of the processors */
	NT_GPU_CARD_CLOCK_MOST, /* MHz, the highest possible one */
	NT_GPU_CARD_MEMORY_CLOCK, /* MHz */
	NT_GPU_CARD_TEMPERATURE, /* degrees Celsius */
	NT_GPU_CARD_POWER, /* mW */
	NT_GPU_CARD_POWER_LIMIT, /* mW */
	NT_GPU_CARD_REASONS, /* why the clock is low: NT_GPU_REASON_… */
	NT_GPU_CARD_USED, /* percent of the time in which a kernel ran */
	NT_GPU_CARD_MEMORY_USED, /* bytes */
	NT_GPU_CARD_MEMORY_TOTAL, /* bytes */
	NT_GPU_CARD_POWER_CAPPED, /* ns below the possible clock, because of power */
	NT_GPU_CARD_THERMAL, /* the same, because of temperature */
	NT_GPU_CARD_ENERGY, /* mJ */
	NT_GPU_CARD_CORRECTED, /* ECC errors */
	NT_GPU_CARD_UNCORRECTED, /* ECC errors */
	NT_GPU_CARD_REMAPPED, /* rows of the memory */
	NT_GPU_CARD_PCIE_REPLAYS,
	NT_GPU_CARD_NVLINK_ERRORS,
	NT_GPU_CARD_XIDS, /* errors that the driver reported while the worker ran */
	NT_GPU_CARD_LAST_XID, /* number of the last one */
	/* Means of the time since the last reading, from here on. Shares are in millionths. */
	NT_GPU_CARD_SM_ACTIVE, /* of the multiprocessors' time: they had a warp */
	NT_GPU_CARD_SM_OCCUPANCY, /* of the warps that they can hold */
	NT_GPU_CARD_TENSOR_ACTIVE, /* of their time: tensor cores computed */
	NT_GPU_CARD_DRAM_ACTIVE, /* of the memory's possible bandwidth */
	NT_GPU_CARD_PCIE_SENT, /* bytes a second */
	NT_GPU_CARD_PCIE_RECEIVED,
	NT_GPU_CARD_NVLINK_SENT,
	NT_GPU_CARD_NVLINK_RECEIVED,
	NT_GPU_CARD_END,
};

/* nvmlClocksEventReasons of nvml.h. */
enum {
	NT_GPU_REASON_IDLE = 0x1,
	NT_GPU_REASON_POWER_CAP = 0x4,
	NT_GPU_REASON_HARDWARE = 0x8,
	NT_GPU_REASON_THERMAL = 0x20,
	NT_GPU_REASON_HARDWARE_THERMAL = 0x40,
	NT_GPU_REASON_POWER_BRAKE = 0x80,
};

struct nt_gpu_card {
	char id[NT_GPU_CARD_ID]; /* "GPU-…", "MIG-…" */
	char model[NT_GPU_CARD_MODEL]; /* "NVIDIA H100 80GB HBM3"; "": not known */
	uint32_t known; /* a bit per value; the others were not to be had */
	uint32_t pid[NT_GPU_CARD_PIDS]; /* that compute on it, in the worker's namespace */
	uint32_t pids, pids_over_cap;
	/* Not 0: an instance of MIG. Its health is its card's, its processes and memory are its own. */
	uint32_t is_instance;
	uint64_t value[NT_GPU_CARD_END];
};

struct nt_gpu_cards {
	uint32_t count, over_cap;
	uint32_t lost; /* cards that did not answer: fallen off the bus, being reset */
	struct nt_gpu_card card[NT_GPU_CARDS];
};

/* True if the values are possible: they may come from a compromised worker. */
bool nt_gpu_cards_are_sound(const struct nt_gpu_cards *cards);
void nt_gpu_card_set(struct nt_gpu_card *card, enum nt_gpu_card_value value, uint64_t to);
/* False: not known. */
bool nt_gpu_card_get(const struct nt_gpu_card *card, enum nt_gpu_card_value value,
		     uint64_t *ret_value);

#endif
