/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compiles only if agent/gpu/amdsmi_abi.h says what a release of amdsmi.h says. AMDSMI_LAYOUT: that, as
 * amdsmi_layout.py prints it; AMDSMI_RELEASE: the number of the library.
 */
#include AMDSMI_LAYOUT
#include <stddef.h>

#include "agent/gpu/amdsmi_abi.h"

#define SAME(ours, theirs) _Static_assert((unsigned long long)(ours) == (theirs), #theirs)
#define PLACE(ours, member, theirs, their_member)                                                  \
	_Static_assert(offsetof(struct ours, member) == PLACE_##theirs##_##their_member &&         \
			       sizeof(((struct ours *)0)->member) ==                               \
				       WIDTH_##theirs##_##their_member,                            \
		       #theirs "." #their_member)
#define BITS(theirs, member, bit, bits)                                                            \
	_Static_assert(BIT_##theirs##_##member == (bit) && BITS_##theirs##_##member == (bits),     \
		       #theirs "." #member)
/* The library may write all of its struct. */
#define ROOM(ours, theirs) _Static_assert(sizeof(struct ours) >= SIZE_##theirs, #theirs)

_Static_assert(AMDSMI_RELEASE >= NT_AMDSMI_FIRST && AMDSMI_RELEASE <= NT_AMDSMI_LAST, "is read");

SAME(NT_AMDSMI_SUCCESS, AMDSMI_STATUS_SUCCESS);
SAME(NT_AMDSMI_DRIVER_NOT_LOADED, AMDSMI_STATUS_DRIVER_NOT_LOADED);
SAME(NT_AMDSMI_INSUFFICIENT_SIZE, AMDSMI_STATUS_INSUFFICIENT_SIZE);
SAME(NT_AMDSMI_INIT_GPUS, AMDSMI_INIT_AMD_GPUS);
SAME(NT_AMDSMI_CLOCK_GFX, AMDSMI_CLK_TYPE_GFX);
SAME(NT_AMDSMI_CLOCK_MEM, AMDSMI_CLK_TYPE_MEM);
SAME(NT_AMDSMI_MEMORY_VRAM, AMDSMI_MEM_TYPE_VRAM);
SAME(NT_AMDSMI_BLOCK_XGMI, AMDSMI_GPU_BLOCK_XGMI_WAFL);

#if AMDSMI_RELEASE < 26
PLACE(nt_amdsmi_version, release, amdsmi_version_t, year);
#else
PLACE(nt_amdsmi_version, release, amdsmi_version_t, major);
#endif
ROOM(nt_amdsmi_version, amdsmi_version_t);
SAME(sizeof(struct nt_amdsmi_bdf), SIZE_amdsmi_bdf_t);
BITS(amdsmi_bdf_t, function_number, 0, 3);
BITS(amdsmi_bdf_t, device_number, 3, 5);
BITS(amdsmi_bdf_t, bus_number, 8, 8);
BITS(amdsmi_bdf_t, domain_number, 16, 48);
SAME(offsetof(struct nt_amdsmi_asic, name), PLACE_amdsmi_asic_info_t_market_name);
_Static_assert(sizeof(((struct nt_amdsmi_asic *)0)->name) <= WIDTH_amdsmi_asic_info_t_market_name,
	       "it may be longer");
ROOM(nt_amdsmi_asic, amdsmi_asic_info_t);
PLACE(nt_amdsmi_clock, mhz, amdsmi_clk_info_t, clk);
PLACE(nt_amdsmi_clock, most_mhz, amdsmi_clk_info_t, max_clk);
ROOM(nt_amdsmi_clock, amdsmi_clk_info_t);
PLACE(nt_amdsmi_power_cap, cap_uw, amdsmi_power_cap_info_t, power_cap);
ROOM(nt_amdsmi_power_cap, amdsmi_power_cap_info_t);
PLACE(nt_amdsmi_errors, corrected, amdsmi_error_count_t, correctable_count);
PLACE(nt_amdsmi_errors, uncorrected, amdsmi_error_count_t, uncorrectable_count);
ROOM(nt_amdsmi_errors, amdsmi_error_count_t);
PLACE(nt_amdsmi_process, pid, amdsmi_process_info_t, process_id);
SAME(sizeof(struct nt_amdsmi_process), SIZE_amdsmi_process_info_t);

PLACE(nt_amdsmi_metrics, edge_celsius, amdsmi_gpu_metrics_t, temperature_edge);
PLACE(nt_amdsmi_metrics, hotspot_celsius, amdsmi_gpu_metrics_t, temperature_hotspot);
PLACE(nt_amdsmi_metrics, memory_celsius, amdsmi_gpu_metrics_t, temperature_mem);
PLACE(nt_amdsmi_metrics, gfx_percent, amdsmi_gpu_metrics_t, average_gfx_activity);
PLACE(nt_amdsmi_metrics, mean_watts, amdsmi_gpu_metrics_t, average_socket_power);
PLACE(nt_amdsmi_metrics, energy, amdsmi_gpu_metrics_t, energy_accumulator);
PLACE(nt_amdsmi_metrics, throttle, amdsmi_gpu_metrics_t, indep_throttle_status);
PLACE(nt_amdsmi_metrics, watts, amdsmi_gpu_metrics_t, current_socket_power);
PLACE(nt_amdsmi_metrics, pcie_replays, amdsmi_gpu_metrics_t, pcie_replay_count_acc);
#ifdef PLACE_amdsmi_gpu_metrics_t_accumulation_counter
PLACE(nt_amdsmi_metrics, residency.cycles, amdsmi_gpu_metrics_t, accumulation_counter);
PLACE(nt_amdsmi_metrics, residency.prochot, amdsmi_gpu_metrics_t, prochot_residency_acc);
PLACE(nt_amdsmi_metrics, residency.power, amdsmi_gpu_metrics_t, ppt_residency_acc);
PLACE(nt_amdsmi_metrics, residency.socket, amdsmi_gpu_metrics_t, socket_thm_residency_acc);
PLACE(nt_amdsmi_metrics, residency.regulator, amdsmi_gpu_metrics_t, vr_thm_residency_acc);
PLACE(nt_amdsmi_metrics, residency.memory, amdsmi_gpu_metrics_t, hbm_thm_residency_acc);
#else
_Static_assert(SIZE_amdsmi_gpu_metrics_t <= offsetof(struct nt_amdsmi_metrics, residency),
	       "nothing is written there");
#endif
ROOM(nt_amdsmi_metrics, amdsmi_gpu_metrics_t);

#define HAS(name, ...)                                                                             \
	static __attribute__((unused)) uint32_t (*const has_##name)(__VA_ARGS__) = name

HAS(amdsmi_init, uint64_t);
HAS(amdsmi_shut_down, void);
HAS(amdsmi_get_lib_version, struct amdsmi_version_t *);
HAS(amdsmi_status_code_to_string, uint32_t, char **);
HAS(amdsmi_get_socket_handles, uint32_t *, nt_amdsmi_socket *);
HAS(amdsmi_get_processor_handles, nt_amdsmi_socket, uint32_t *, nt_amdsmi_device *);
HAS(amdsmi_get_gpu_device_bdf, nt_amdsmi_device, struct amdsmi_bdf_t *);
HAS(amdsmi_get_gpu_asic_info, nt_amdsmi_device, struct amdsmi_asic_info_t *);
HAS(amdsmi_get_gpu_metrics_info, nt_amdsmi_device, struct amdsmi_gpu_metrics_t *);
HAS(amdsmi_get_clock_info, nt_amdsmi_device, uint32_t, struct amdsmi_clk_info_t *);
HAS(amdsmi_get_power_cap_info, nt_amdsmi_device, uint32_t, struct amdsmi_power_cap_info_t *);
HAS(amdsmi_get_gpu_memory_total, nt_amdsmi_device, uint32_t, uint64_t *);
HAS(amdsmi_get_gpu_memory_usage, nt_amdsmi_device, uint32_t, uint64_t *);
HAS(amdsmi_get_gpu_total_ecc_count, nt_amdsmi_device, struct amdsmi_error_count_t *);
HAS(amdsmi_get_gpu_ecc_count, nt_amdsmi_device, uint64_t, struct amdsmi_error_count_t *);
HAS(amdsmi_get_gpu_pci_replay_counter, nt_amdsmi_device, uint64_t *);
HAS(amdsmi_get_gpu_compute_process_info, struct amdsmi_process_info_t *, uint32_t *);
HAS(amdsmi_get_gpu_compute_process_gpus, uint32_t, uint32_t *, uint32_t *);
