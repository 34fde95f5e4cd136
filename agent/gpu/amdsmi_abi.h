/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is used of AMD SMI's ABI, as amdsmi.h has it: AMD's header is not needed to build the agent.
 * tests/gpu/test_amdsmi_header.sh compares it with releases of all three numbers below.
 *
 * Structs grew from release to release, and members moved. These are those whose used members did
 * not move. `room` is what the library may write beyond them: more than any of these releases does.
 */
#ifndef NT_AGENT_GPU_AMDSMI_ABI_H
#define NT_AGENT_GPU_AMDSMI_ABI_H

#include <stdint.h>

/* Of the library: they are passed, not read. */
typedef void *nt_amdsmi_socket;
typedef void *nt_amdsmi_device;

enum {
	/* The library's release, which is the number in its soname: ROCm 6.1 to 6.3, 6.4, and 7. */
	NT_AMDSMI_FIRST = 24,
	NT_AMDSMI_LAST = 26,

	NT_AMDSMI_SUCCESS = 0,
	NT_AMDSMI_DRIVER_NOT_LOADED = 34,
	NT_AMDSMI_INSUFFICIENT_SIZE = 41,
	NT_AMDSMI_INIT_GPUS = 1 << 1,
	NT_AMDSMI_CLOCK_GFX = 0,
	NT_AMDSMI_CLOCK_MEM = 4,
	NT_AMDSMI_MEMORY_VRAM = 0,
	NT_AMDSMI_BLOCK_XGMI = 1 << 7,
	NT_AMDSMI_ROOM = 4096, /* bytes */
};

struct nt_amdsmi_version {
	uint32_t release; /* the year, and the major version from 26 on: one series of numbers */
	uint32_t others[3];
	const char *build; /* of the library */
	uint8_t room[64];
};

/* One number: the function has 3 bits, the device 5, the bus 8, and the domain the rest. */
struct nt_amdsmi_bdf {
	uint64_t number;
};

struct nt_amdsmi_asic {
	char name[64]; /* and longer in later releases: it may not end here */
	uint8_t room[NT_AMDSMI_ROOM];
};

struct nt_amdsmi_clock {
	uint32_t mhz, least_mhz, most_mhz;
	uint8_t room[84];
};

struct nt_amdsmi_power_cap {
	uint64_t cap_uw;
	uint8_t room[248];
};

struct nt_amdsmi_errors {
	uint64_t corrected, uncorrected;
	uint8_t room[240];
};

/* A list of these is read: it has the library's size, and no room. */
struct nt_amdsmi_process {
	uint32_t pid;
	uint32_t unused[7];
} __attribute__((aligned(8)));

/* Of so many cycles of the firmware those in which a limit held the clock down. */
struct nt_amdsmi_residency {
	uint64_t cycles;
	uint64_t prochot, power, socket, regulator, memory;
};

/* All bits are set of what a card does not have. */
struct nt_amdsmi_metrics {
	uint8_t header[4];
	uint16_t edge_celsius, hotspot_celsius, memory_celsius;
	uint16_t regulator_celsius[3];
	uint16_t gfx_percent; /* of the time */
	uint16_t unused18[2];
	uint16_t mean_watts;
	uint64_t energy; /* in 2^-16 J */
	uint64_t unused32[10];
	uint64_t throttle; /* NT_AMDSMI_THROTTLE_…: any of several reasons */
	uint16_t watts;
	uint16_t unused122[23];
	uint64_t pcie_replays;
	uint64_t unused176[31];
	struct nt_amdsmi_residency residency; /* from ROCm 6.3 on */
	uint8_t room[4 * NT_AMDSMI_ROOM];
};

/* indep_throttle_status: SMU_THROTTLER_… of the kernel's amdgpu_smu.h. */
#define NT_AMDSMI_THROTTLE_POWER   UINT64_C(0x0000000000ff00ff) /* and current */
#define NT_AMDSMI_THROTTLE_THERMAL UINT64_C(0x0000ffff00000000) /* and PROCHOT */
#define NT_AMDSMI_THROTTLE_OTHER   UINT64_C(0xffff000000000000) /* package, firmware */

#endif
