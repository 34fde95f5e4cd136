/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions and structs of libamd_smi.so that the stand-in has, with AMD's ABI: of ROCm 6.2
 * (SIM_AMDSMI 24), 6.4 (25) and 7.0 (26). Members that nobody reads are gaps.
 */
#ifndef TESTS_SIM_LIB_HEALTH_AMDSMI_H
#define TESTS_SIM_LIB_HEALTH_AMDSMI_H

#include <stdint.h>

#ifndef SIM_AMDSMI
#define SIM_AMDSMI 26
#endif

struct amdsmi_device;

struct amdsmi_version {
#if SIM_AMDSMI < 26
	uint32_t year;
#endif
	uint32_t major, minor, release;
	const char *build;
};

struct amdsmi_asic_info {
	char market_name[256];
#if SIM_AMDSMI < 25
	char others[192];
#else
	char others[640];
#endif
};

struct amdsmi_clk_info {
	uint32_t clk, min_clk, max_clk;
	uint8_t clk_locked, clk_deep_sleep;
	uint32_t reserved[4];
};

struct amdsmi_power_cap_info {
	uint64_t power_cap, default_power_cap, dpm_cap, min_power_cap, max_power_cap, reserved[3];
};

struct amdsmi_error_count {
	uint64_t correctable_count, uncorrectable_count, deferred_count, reserved[5];
};

struct amdsmi_process_info {
	uint32_t process_id, pasid;
	uint64_t vram_usage, sdma_usage;
	uint32_t cu_occupancy;
};

struct amdsmi_gpu_metrics {
	uint8_t header[4];
	uint16_t temperature_edge, temperature_hotspot, temperature_mem, gap10[3];
	uint16_t average_gfx_activity, gap18[2], average_socket_power;
	uint64_t energy_accumulator;
	uint8_t gap32[80];
	uint64_t indep_throttle_status;
	uint16_t current_socket_power, gap122[23];
	uint64_t pcie_replay_count_acc;
	uint8_t gap176[248];
#if SIM_AMDSMI >= 25
	uint64_t accumulation_counter, prochot_residency_acc, ppt_residency_acc,
		socket_thm_residency_acc, vr_thm_residency_acc, hbm_thm_residency_acc;
#endif
#if SIM_AMDSMI == 25
	uint8_t gap472[1896];
#elif SIM_AMDSMI == 26
	uint8_t gap472[4072];
#endif
};

int amdsmi_init(uint64_t flags);
int amdsmi_shut_down(void);
int amdsmi_get_lib_version(struct amdsmi_version *version);
int amdsmi_status_code_to_string(int status, const char **text);
int amdsmi_get_socket_handles(uint32_t *count, void **socket);
int amdsmi_get_processor_handles(void *socket, uint32_t *count, struct amdsmi_device **device);
int amdsmi_get_gpu_device_bdf(const struct amdsmi_device *device, uint64_t *bdf);
int amdsmi_get_gpu_asic_info(const struct amdsmi_device *device, struct amdsmi_asic_info *asic);
int amdsmi_get_gpu_metrics_info(const struct amdsmi_device *device,
				struct amdsmi_gpu_metrics *metrics);
int amdsmi_get_clock_info(const struct amdsmi_device *device, int type,
			  struct amdsmi_clk_info *clock);
int amdsmi_get_power_cap_info(const struct amdsmi_device *device, uint32_t sensor,
			      struct amdsmi_power_cap_info *info);
int amdsmi_get_gpu_memory_total(const struct amdsmi_device *device, int type, uint64_t *bytes);
int amdsmi_get_gpu_memory_usage(const struct amdsmi_device *device, int type, uint64_t *bytes);
int amdsmi_get_gpu_total_ecc_count(const struct amdsmi_device *device,
				   struct amdsmi_error_count *errors);
int amdsmi_get_gpu_ecc_count(const struct amdsmi_device *device, uint64_t block,
			     struct amdsmi_error_count *errors);
int amdsmi_get_gpu_pci_replay_counter(const struct amdsmi_device *device, uint64_t *replays);
int amdsmi_get_gpu_compute_process_info(struct amdsmi_process_info *process, uint32_t *count);
int amdsmi_get_gpu_compute_process_gpus(uint32_t pid, uint32_t *index, uint32_t *count);

#endif
